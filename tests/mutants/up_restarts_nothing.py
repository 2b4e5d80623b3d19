"""`up` reports that a process has ended without restarting it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/cli/supervision/test_supervisor.py::test_a_process_that_ends_is_started_again_at_once",
    "tests/unit/cli/supervision/test_supervisor.py::test_a_start_that_is_refused_is_reported_and_tried_again[error0]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.cli.supervision.supervisor import Supervisor

    def schedule(self: Supervisor, name: str, now: float) -> float:
        return 0.5

    patch(Supervisor, "_schedule", schedule)
