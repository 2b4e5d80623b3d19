"""A watch wakes only present waiters, so a change between making the watch and waiting is lost."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import watches

TESTS = ["tests/unit/metadata/core/test_tree_contract.py::test_a_change_between_making_a_watch_and_waiting_is_not_lost[memory]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(watches.LocalWatch, "wake", lambda watch: watch._release())
