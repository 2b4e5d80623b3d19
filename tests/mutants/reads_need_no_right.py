"""Reads, of which most run on the event loop, are not checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = ["tests/unit/sql/engine/test_session_rights.py::test_each_way_to_run_a_statement_checks_the_rights[prepared]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.interface import Cursor, Prepared, Value
    from triplicate.sql.engine.session import SqlSession

    async def read_as(self: SqlSession, role: str, prepared: Prepared, parameters: Sequence[Value], version: int | None) -> Cursor:
        return await self._read(prepared, parameters, version)

    patch(SqlSession, "_read_as", read_as)
