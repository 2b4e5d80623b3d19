"""now() is the time of the statement, so two statements of one transaction see two times."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.transaction_time import TransactionTime

TESTS = ["tests/unit/sql/pg/protocol/test_server.py::test_now_is_one_time_for_all_of_a_transaction"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(TransactionTime, "transaction_us", property(lambda self: self.statement_us))
