"""A worker names the new bookie in the metadata first, and copies the entries afterwards."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("named_copies_are_complete",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.ledger_copier import CopyJob, LedgerCopier

    async def claims(self: LedgerCopier, job: CopyJob) -> None:
        """The copies are left to a later repair."""

    patch(LedgerCopier, "copy", claims)
