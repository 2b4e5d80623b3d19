"""A rebuild of the index drops a damaged last block of an entry log even if its header says that it was complete."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/crash/test_flips.py::test_no_flipped_bit_of_an_entry_log_is_returned_as_good"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.entry_log_format import BlockInfo, EntryLogScanner

    def nothing(self: EntryLogScanner, offset: int) -> BlockInfo | None:
        return None

    patch(EntryLogScanner, "broken_block", nothing)
