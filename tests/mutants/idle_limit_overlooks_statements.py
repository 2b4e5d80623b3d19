"""A transaction that holds the writer is ended for idleness although its client has sent statements since the timer was set."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import SqlError
from triplicate.sql.engine.interactive_transaction import InteractiveTransaction

TESTS = [
    "tests/unit/sql/engine/test_interactive_transaction.py::test_the_idle_limit_counts_from_the_end_of_the_last_statement",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def expire(self: InteractiveTransaction) -> None:
        self.expire(SqlError("25P03", "the transaction held the writer and was idle"))

    patch(InteractiveTransaction, "_check_idle", expire)
