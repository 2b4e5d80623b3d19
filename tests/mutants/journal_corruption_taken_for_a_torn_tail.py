"""Replay ends at the first damaged group without searching for an intact one behind it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/test_bookie_crashes.py::test_a_damaged_group_in_the_middle_of_the_journal_stops_the_start_and_changes_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import GroupScanner

    def look_away(self: GroupScanner, chunk: bytes, position: int, bad_offset: int, sequence: int) -> None:
        return

    patch(GroupScanner, "_refuse_later_group", look_away)
