"""A statement that views and subqueries make too large is prepared, which nothing interrupts."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.authorizer import Authorizer

TESTS = ["tests/unit/sql/executor/test_authorizer.py::test_a_statement_that_views_and_subqueries_make_too_large_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Authorizer, "_check_size", lambda self, tokens, characters_max: None)
