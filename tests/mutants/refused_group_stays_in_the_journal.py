"""The partial bytes of a group that found no space stay in the journal, and the next file's first group reuses its number."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.journal.group_writer import GroupWriter

TESTS = ["tests/unit/bookie/test_disk_guard.py::test_a_group_that_found_no_space_is_not_built_upon"]


def close_only(self: GroupWriter, size_bytes: int) -> None:
    self.close()


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(GroupWriter, "_remove_tail", close_only)
