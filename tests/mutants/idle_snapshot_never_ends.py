"""A read-only transaction may stay idle for ever."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.reader_pool import ReaderPool

TESTS = [
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_an_idle_transaction_that_reads_is_ended",
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_an_open_result_that_nobody_fetches_is_ended",
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_a_statement_that_reads_for_too_long_is_interrupted",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def never(self: ReaderPool) -> None:
        return

    patch(ReaderPool, "_schedule_check", never)
