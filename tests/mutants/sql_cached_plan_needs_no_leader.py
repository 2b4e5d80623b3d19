"""A follower accepts a change at Parse if its plan is cached."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.interface import Prepared
from triplicate.sql.engine.session import SqlSession

TESTS = ["tests/unit/sql/engine/test_session.py::test_a_statement_that_was_prepared_before_is_refused_as_a_new_one_would_be"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def accept(self: SqlSession, prepared: Prepared) -> None:
        return None

    patch(SqlSession, "check_prepared", accept)
