"""A read of the last-add-confirmed answers "no entry" if the last entry is unreadable, as Apache's bookie does."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/server/test_request_processor_v3.py::test_the_last_add_confirmed_of_nothing_is_no_entry_and_of_damage_an_io_error",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerHandle
    from triplicate.bookie.server.read_processor import ReadProcessor
    from triplicate.wire import ReadLacRequest, ReadLacResponse, Status

    read_lac = ReadProcessor._read_lac

    def forced(self: ReadProcessor, request: ReadLacRequest, handle: LedgerHandle) -> ReadLacResponse:
        found = read_lac(self, request, handle)
        if found.last_entry_body is None:
            found.status = Status.NO_ENTRY
        return found

    patch(ReadProcessor, "_read_lac", forced)
