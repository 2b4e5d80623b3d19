"""What a group that found no space has left in its journal file stays there, and the next file's first group takes its number."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.journal.journal import Journal

TESTS = ["tests/unit/bookie/test_full_disk.py::test_a_group_that_found_no_space_is_not_built_upon"]


def cut_broken_off(self: Journal) -> None:
    if self._broken_off is not None:
        self._broken_off[0].close()
        self._broken_off = None


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Journal, "_cut_broken_off", cut_broken_off)
