"""The judge of the histories takes all operations for concurrent: a leader may answer after its lease with what was replaced."""

from __future__ import annotations

from collections.abc import Callable

from triplicate_simulator.checkers.linearizability import RegisterOperation

TESTS = [
    "tests/unit/benchmarks/histories/test_store_model.py::test_what_a_store_must_not_answer_is_reported[of_a_lease_that_ended]",
    "tests/unit/benchmarks/histories/test_judge.py::test_registers",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(RegisterOperation, "begin", property(lambda operation: (0.0, 0)))
