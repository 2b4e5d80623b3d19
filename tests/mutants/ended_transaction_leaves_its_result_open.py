"""A transaction that was ended keeps its open result, which holds the write-ahead log back."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.writer_connection import WriterConnection

TESTS = [
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_a_result_of_a_transaction_that_was_ended_holds_the_write_ahead_log_back_no_longer",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(WriterConnection, "_close_results", lambda self: None)
