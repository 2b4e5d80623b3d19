"""A group whose append has failed is answered as if nothing of it had been sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triplicate.sql.engine.leadership import Leadership

TESTS = [
    "tests/unit/sql/engine/test_leadership_group_windows.py::test_a_group_is_not_answered_as_stored_when_another_of_its_window_fails",
    "tests/property/test_group_window_over_a_log.py::test_the_end_of_a_leadership_leaves_no_answer_that_the_log_may_contradict",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    fail_statements = Leadership._fail_statements

    def as_unsent(self: Leadership, statements: Sequence[Any], pending: object) -> None:
        fail_statements(self, statements, None)

    patch(Leadership, "_fail_statements", as_unsent)
