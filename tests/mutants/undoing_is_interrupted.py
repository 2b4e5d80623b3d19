"""A connection's own work around a statement is interrupted with the statement, so that the leader ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from triplicate.sql.executor.interrupts import StatementLimit

TESTS = ["tests/unit/sql/executor/test_interrupts.py::test_a_statement_of_a_transaction_that_is_interrupted_is_undone_whole"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(StatementLimit, "paused", lambda self: nullcontext())
