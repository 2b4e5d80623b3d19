"""A ledger whose entries may be missing here (the disk was replaced) gets "no entry" for what is not there."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/test_v3_operations.py::test_a_ledger_whose_entries_may_be_missing_is_unknown_never_a_no"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.ledgers import LedgerHandle
    from triplicate.bookie.reads import Reads
    from triplicate.wire import Status

    entry = Reads._entry

    def a_no(self: Reads, handle: LedgerHandle, entry_id: int) -> tuple[Status, bytes | None]:
        status, body = entry(self, handle, entry_id)
        return (Status.NO_ENTRY if status is Status.UNKNOWN_LEDGER_STATE else status), body

    patch(Reads, "_entry", a_no)
