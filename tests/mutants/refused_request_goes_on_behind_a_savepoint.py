"""A transaction whose request must not run continues after ROLLBACK TO, so the request runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.sql.engine.session import SqlSession

TESTS = ["tests/unit/sql/engine/test_session.py::test_a_refused_request_cannot_go_on_behind_a_savepoint"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    hold_writer = SqlSession._hold_writer

    async def forgiving(self: SqlSession, tag: str) -> Any:
        try:
            return await hold_writer(self, tag)
        finally:
            self._block.doom(doomed=False)

    patch(SqlSession, "_hold_writer", forgiving)
