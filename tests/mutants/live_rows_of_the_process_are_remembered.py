"""A session of the process reads the rows of a live table once, and answers with them ever after."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_in_process_session.py::test_live_tables_are_read_by_their_names"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.in_process_session import InProcessSession

    live_rows, known = InProcessSession._live_rows, dict[str, str]()

    async def remembered(self: InProcessSession, table: str) -> str:
        if table not in known:
            known[table] = await live_rows(self, table)
        return known[table]

    patch(InProcessSession, "_live_rows", remembered)
