"""Results of requests are discarded by the number of later records alone, without regard to their age."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.storage import transaction_history

TESTS = ["tests/unit/sql/storage/test_transaction_history.py::test_a_request_is_not_run_again_within_a_day_however_many_records_follow"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = transaction_history.record_history

    def also_by_position(connection: apsw.Connection, facts: transaction_history.CommitRecord) -> None:
        original(connection, facts)
        transaction_history._delete_by_position(connection, facts.end - transaction_history.KEPT_POSITIONS)

    patch(transaction_history, "record_history", also_by_position)
