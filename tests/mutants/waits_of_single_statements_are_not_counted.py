"""The waits of statements that are transactions of their own are not counted."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/pg/protocol/test_activity_rows.py::test_the_waits_of_a_statement_are_shown"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership

    patch(Leadership, "_count_waits", lambda self, groups: None)
