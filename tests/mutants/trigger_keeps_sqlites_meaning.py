"""CREATE TRIGGER stores the statements as they are written, with SQLite's meaning."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import plans

TESTS = ["tests/unit/sql/pg/rewrite/test_create_trigger.py::test_a_trigger_has_postgresqls_meaning"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(plans, "trigger_parts", lambda _statement: None)
