"""A task for several logs that fails leaves the ledgers that it has sealed."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_routing.py::test_a_task_that_fails_deletes_what_it_has_sealed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from types import TracebackType

    from triplicate.spark.logs.routing import TaskLedgers

    leave = TaskLedgers.__exit__

    def broken(self: TaskLedgers, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.sealed = []
        leave(self, kind, error, trace)

    patch(TaskLedgers, "__exit__", broken)
