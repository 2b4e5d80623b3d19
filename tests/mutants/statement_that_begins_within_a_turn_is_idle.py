"""A statement counts as running only while its begin is later than the last end, by a clock that stands still in a turn."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_in_process_session.py::test_a_statement_that_begins_in_the_turn_of_the_one_before_is_shown_as_running"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.in_process_counts import CountedStatement

    go_on = CountedStatement.go_on

    def compared(self: CountedStatement) -> None:
        record = self._counts.record
        ended_s = record.ended_s
        go_on(self)
        if ended_s is not None and record.began_s <= ended_s:
            record.ended_s = ended_s

    patch(CountedStatement, "go_on", compared)
