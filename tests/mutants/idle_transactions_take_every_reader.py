"""Idle transactions may hold every reader connection while others wait."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.reader_pool import ReaderPool

TESTS = [
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_idle_transactions_leave_readers_to_single_statements_and_give_way_to_others"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def keep(self: ReaderPool, idle_s: float) -> None:
        return

    patch(ReaderPool, "_end_longest_idle", keep)
