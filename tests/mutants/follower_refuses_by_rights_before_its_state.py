"""A follower refuses a statement by rights that are older than the state that its readers see."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_session_rights.py::test_a_grant_that_readers_see_on_a_follower_holds_there"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.sql_database import SqlDatabase

    async def at_once(database: SqlDatabase) -> None:
        """Nothing is awaited."""

    patch(SqlDatabase, "_report_application", at_once)
