"""A bookie whose disks were replaced answers "no such entry" for every ledger that it does not have (BookKeeper issue 2612)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("replaced_bookies_deny_nothing",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.limbo import Limbo

    async def is_in_limbo(self: Limbo, ledger_id: int) -> bool:
        return False

    patch(Limbo, "is_in_limbo", is_in_limbo)
