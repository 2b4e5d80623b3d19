"""A read of the last-add-confirmed says "no entry" where the last entry cannot be read, as Apache's bookie does."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/test_v3_operations.py::test_the_last_add_confirmed_of_nothing_is_no_entry_and_of_damage_an_io_error",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.ledgers import LedgerHandle
    from triplicate.bookie.reads import Reads
    from triplicate.wire import ReadLacRequest, ReadLacResponse, Status

    read_lac = Reads._read_lac

    def forced(self: Reads, request: ReadLacRequest, handle: LedgerHandle) -> ReadLacResponse:
        found = read_lac(self, request, handle)
        if found.last_entry_body is None:
            found.status = Status.NO_ENTRY
        return found

    patch(Reads, "_read_lac", forced)
