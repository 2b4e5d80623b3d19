"""A task scope does not cancel its children in the order of spawning."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import TaskScope

TESTS = ["tests/unit/runtime/test_task_scope.py::test_children_are_cancelled_in_the_order_of_spawning"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def cancel(scope: TaskScope) -> None:
        scope._closing = True
        for task in reversed(list(scope._children.values())):
            task.cancel()

    patch(TaskScope, "cancel", cancel)
