"""The judge of the histories of stores expects that a compare-and-set does not compare."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.histories import store_model
from benchmarks.histories.store_model import Answer, Step

TESTS = [
    "tests/unit/benchmarks/histories/test_store_model.py::test_what_a_store_must_not_answer_is_reported[of_a_compare_and_set_that_does_not_compare]",
    "tests/unit/benchmarks/histories/test_store_clients.py::test_the_history_of_a_server_is_linearizable_and_has_every_kind_of_operation",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = store_model.apply_step

    def apply_step(present: int | None, step: Step) -> tuple[Answer, int | None]:
        return (True, step.value) if step.command == "cas" else right(present, step)

    patch(store_model, "apply_step", apply_step)
