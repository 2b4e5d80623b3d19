"""A write without a name is repeated after the answer to its COMMIT was lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.spark.cluster.table_changes import _BatchAttempt

TESTS = [
    "tests/unit/spark/tables/test_table_writing.py::test_a_commit_whose_answer_is_lost_is_repeated_and_changes_the_table_once",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    run = _BatchAttempt.run

    def forgetting(self: _BatchAttempt, *given: Any, **named: Any) -> bool:
        try:
            return run(self, *given, **named)
        finally:
            self.is_committing = False

    patch(_BatchAttempt, "run", forgetting)
