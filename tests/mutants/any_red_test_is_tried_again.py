"""A red unit test runs again until it is green."""

from __future__ import annotations

from collections.abc import Callable

from scripts import run_tests

TESTS = ["tests/unit/scripts/test_run_tests.py::test_a_red_test_of_real_processes_is_tried_once_more_alone"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = run_tests.Part.__init__

    def with_processes(part: run_tests.Part, *arguments: object, **options: object) -> None:
        real(part, *arguments, **{**options, "has_processes": True})  # type: ignore[arg-type]

    patch(run_tests.Part, "__init__", with_processes)
