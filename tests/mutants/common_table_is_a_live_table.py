"""A common table expression with the name of a live table gets that table's rows."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.rewrite import catalogue_queries
from triplicate.sql.pg.rewrite.live_uses import live_uses

TESTS = ["tests/unit/sql/pg/rewrite/test_catalogue_queries.py::test_a_common_table_expression_hides_a_live_table"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(catalogue_queries, "live_uses", lambda parts, users, common: live_uses(parts, users))
