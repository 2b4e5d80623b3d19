"""A process that runs and never answers again is only reported."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.cli.supervision import supervisor

TESTS = [
    "tests/unit/cli/supervision/test_supervisor.py::test_a_process_that_is_silent_for_long_is_reported_then_writes_its_stacks_and_is_killed"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(supervisor, "ROUNDS_MIN", 1_000_000)
