"""The judge of the histories of stores accepts a transaction whose watched key was changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.histories import store_model
from benchmarks.histories.store_model import Unchanged
from triplicate_simulator.checkers.linearizability import RegisterOperation

TESTS = [
    "tests/unit/benchmarks/histories/test_store_model.py::test_what_a_store_must_not_answer_is_reported[of_a_watched_key_that_is_not_watched]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = store_model.apply_parts

    def apply_parts(state: Any, operation: RegisterOperation) -> tuple[bool, Any]:
        parts = tuple(part for part in operation.arguments if not isinstance(part, Unchanged))
        return right(state, replace(operation, arguments=parts))

    patch(store_model, "apply_parts", apply_parts)
