"""A window of groups is committed and answered with its first acknowledgement, while others of its groups are at the log."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.group_window import GroupWindow

TESTS = [
    "tests/unit/sql/engine/test_leadership_group_windows.py::test_nothing_of_a_window_is_answered_or_visible_before_all_of_it_is_acknowledged",
    "tests/unit/sql/engine/test_leadership_group_windows.py::test_a_group_is_not_answered_as_stored_when_another_of_its_window_fails",
    "tests/property/test_group_window_over_a_log.py::test_answers_and_rows_follow_the_acknowledgements",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def after_the_first(self: GroupWindow[object]) -> bool:
        return len(self._unacknowledged) < max(len(self._groups), 1)

    patch(GroupWindow, "may_be_committed", property(after_the_first))
