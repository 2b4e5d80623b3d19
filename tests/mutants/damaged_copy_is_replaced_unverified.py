"""A worker replaces a damaged copy with the first copy that it reads, without verifying that one."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/autorecovery/test_ledger_repair_damaged_copies.py::test_an_entry_without_an_intact_copy_is_named_and_stays_listed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.autorecovery.ledger_copier import CopyJob, LedgerCopier
    from triplicate.errors import BookieError

    async def read(self: LedgerCopier, job: CopyJob, entry_id: int) -> bytes:
        for bookie_id in job.sources(entry_id, ()):
            body = await self._copies._body(self._codec.ledger_id, entry_id, bookie_id)
            if body is not None:
                return body
        raise BookieError("no copy")

    patch(LedgerCopier, "_read", read)
