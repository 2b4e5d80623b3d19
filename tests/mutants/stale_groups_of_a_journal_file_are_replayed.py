"""Groups of a reused journal file's earlier life are replayed, because their file number is not checked."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/journal/test_journal_files.py::test_a_crash_at_any_step_of_using_files_again_loses_no_group_and_brings_none_back",
    "tests/property/test_journal_format_reused.py::test_only_groups_of_this_life_are_found_in_a_reused_file",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import GROUP_HEADER, GROUP_HEADER_BYTES, GroupScanner

    header_at = GroupScanner._header_at

    def any_number(self: GroupScanner, offset: int, block: bytes) -> tuple[int, int, int, int, int, int] | None:
        ours = self._file_number
        if len(block) >= GROUP_HEADER_BYTES:
            self._file_number = GROUP_HEADER.unpack_from(block)[3]
        try:
            return header_at(self, offset, block)
        finally:
            self._file_number = ours

    patch(GroupScanner, "_header_at", any_number)
