"""A transaction's statement continues after the leadership has ended, and delays the node's return to following."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import SqlError
from triplicate.sql.engine.interactive_transaction import InteractiveTransaction

TESTS = ["tests/unit/sql/engine/test_leadership.py::test_a_statement_that_runs_when_the_leadership_is_lost_is_interrupted"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def nothing(self: InteractiveTransaction, reason: SqlError) -> None:
        return

    patch(InteractiveTransaction, "interrupt", nothing)
