"""The size of a transaction is checked only after all its rows are captured."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.spooled_changes import SpooledChanges

TESTS = [
    "tests/unit/sql/executor/test_writer_connection_large_transactions.py::test_a_statement_beyond_the_limit_stops_long_before_its_end",
    "tests/unit/sql/executor/test_writer_connection_large_transactions.py::test_a_call_of_many_rows_stops_at_the_limit_of_a_transaction",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(SpooledChanges, "_refusal", lambda self, size, end: None)
