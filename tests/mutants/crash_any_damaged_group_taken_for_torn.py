"""Replay treats any damaged journal group as torn, without searching for an intact group behind it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/crash/test_flips.py::test_no_flipped_bit_of_a_journal_is_returned_as_good"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import GroupScanner

    def look_away(self: GroupScanner, chunk: bytes, position: int, bad_offset: int, sequence: int) -> None:
        return

    patch(GroupScanner, "_refuse_later_group", look_away)
