"""A transaction that begins to write releases its reader while results on it are still open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.sql.engine.session import SqlSession

TESTS = [
    "tests/unit/sql/executor/test_reader_pool_limits.py::test_a_result_that_is_too_large_to_keep_shows_nobody_else_its_old_snapshot",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    hold_writer = SqlSession._hold_writer

    async def late(self: SqlSession, tag: str) -> Any:
        cursors, self._results.cursors = self._results.cursors, {}
        try:
            return await hold_writer(self, tag)
        finally:
            self._results.cursors = cursors

    patch(SqlSession, "_hold_writer", late)
