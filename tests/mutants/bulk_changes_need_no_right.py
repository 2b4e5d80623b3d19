"""Runs of a prepared change and COPY go to the engine without a check of rights."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_session_rights.py::test_a_bulk_change_checks_the_rights"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.interface import Prepared
    from triplicate.sql.engine.session import SqlSession

    async def check_rights(self: SqlSession, prepared: Prepared, *, locks: bool = False) -> None:
        return None

    patch(SqlSession, "check_rights", check_rights)
