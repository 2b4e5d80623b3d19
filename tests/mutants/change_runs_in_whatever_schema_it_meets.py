"""A change that waited in the queue runs although the schema has changed since it was prepared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.core.interface import CheckRows, Cursor, Prepared, Value
from triplicate.sql.engine.session import SqlSession

TESTS = ["tests/unit/sql/engine/test_session.py::test_a_change_is_run_in_the_schema_it_was_prepared_for_and_in_no_other"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = SqlSession._change

    async def in_any(
        self: SqlSession, prepared: Prepared, parameters: Sequence[Value], schema_version: int | None, check_rows: CheckRows | None
    ) -> Cursor:
        return await original(self, prepared, parameters, None, check_rows)

    patch(SqlSession, "_change", in_any)
