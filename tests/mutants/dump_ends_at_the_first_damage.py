"""A dump of a journal file ends at the first damaged group, and the groups behind it are not printed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.core.journal_format import GroupScanner
from triplicate.bookie.offline.journal_dump import _JournalDump

TESTS = ["tests/unit/bookie/offline/test_journal_dump.py::test_a_damaged_group_is_reported_and_the_next_one_printed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def nothing(dump: _JournalDump, scanner: GroupScanner, offset: int, sequence: int) -> None:
        return None

    patch(_JournalDump, "_later_group", nothing)
