"""A trigger's statements name no columns by keywords, which PostgreSQL allows and SQLite does not."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.rewrite import create_trigger

TESTS = ["tests/unit/sql/pg/rewrite/test_create_trigger.py::test_columns_may_be_named_by_keywords"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(create_trigger, "quote_reserved", lambda statement: statement)
