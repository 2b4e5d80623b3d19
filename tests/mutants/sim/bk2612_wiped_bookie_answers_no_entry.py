"""A bookie whose disks were replaced answers about everything it does not have with "no such entry" (BookKeeper issue 2612)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("replaced_bookies_deny_nothing",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.doubts import Doubts

    async def about(self: Doubts, ledger_id: int) -> bool:
        return False

    patch(Doubts, "about", about)
