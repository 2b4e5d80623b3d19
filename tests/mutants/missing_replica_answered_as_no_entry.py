"""A bookie that may have lost a ledger with its disk answers "no entry" for it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_request_processor_v3.py::test_a_ledger_whose_entries_may_be_missing_is_unknown_never_a_no"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerHandle
    from triplicate.bookie.server.read_processor import ReadProcessor
    from triplicate.wire import Status

    entry = ReadProcessor._entry

    def a_no(self: ReadProcessor, handle: LedgerHandle, entry_id: int) -> tuple[Status, bytes | None]:
        status, body = entry(self, handle, entry_id)
        return (Status.NO_ENTRY if status is Status.UNKNOWN_LEDGER_STATE else status), body

    patch(ReadProcessor, "_entry", a_no)
