"""`up` restarts a process that ends at each start without growing pauses."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/cli/supervision/test_supervisor.py::test_a_process_that_ends_at_each_start_is_tried_at_intervals_that_grow_to_a_bound"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.supervision.supervisor import Supervisor

    def schedule(self: Supervisor, name: str, now: float) -> float:
        self._due[name] = now + 0.5
        return 0.5

    patch(Supervisor, "_schedule", schedule)
