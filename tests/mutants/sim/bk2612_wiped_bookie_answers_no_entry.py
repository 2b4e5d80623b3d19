"""A bookie whose disks were replaced answers about everything it does not have with "no such entry" (BookKeeper issue 2612)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("replaced_bookies_deny_nothing",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.limbo import Limbo

    async def is_in_limbo(self: Limbo, ledger_id: int) -> bool:
        return False

    patch(Limbo, "is_in_limbo", is_in_limbo)
