"""Statements of embedded sessions wait for the writer and the log without it being counted."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_in_process_session.py::test_statements_are_counted_with_their_rows_errors_and_waits"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.in_process_counts import CountedStatement

    def go_on(self: CountedStatement) -> None:
        self._counts.waits.clear()
        self._began_s = self._counts.now()

    patch(CountedStatement, "go_on", go_on)
