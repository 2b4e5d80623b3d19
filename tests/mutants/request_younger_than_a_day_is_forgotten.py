"""Results of requests go with the number of records behind them, as if the log had no time."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql import kept

TESTS = ["tests/unit/sql/test_kept.py::test_a_request_is_not_run_again_within_a_day_however_many_records_follow"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = kept.record_kept

    def also_by_position(connection: apsw.Connection, facts: kept.BatchFacts) -> None:
        original(connection, facts)
        kept._forget_by_position(connection, facts.end - kept.KEPT_POSITIONS)

    patch(kept, "record_kept", also_by_position)
