"""The failure of a task that no caller awaits disappears."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import TaskScope

TESTS = [
    "tests/unit/runtime/test_task_scope.py::test_a_child_that_fails_while_the_block_is_left_is_raised",
    "tests/unit/runtime/test_task_scope.py::test_a_long_lived_scope_raises_its_first_failure_once_from_aclose",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(TaskScope, "_raise_failure", lambda scope: None)
