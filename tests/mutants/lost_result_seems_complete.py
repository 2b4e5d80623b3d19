"""A result that was ended before its last row seems to have no further rows."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.cursors import StreamCursor

TESTS = ["tests/unit/sql/engine/test_session_results.py::test_a_result_that_was_ended_early_is_not_taken_for_one_at_its_end"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    close = StreamCursor.close

    async def quietly(self: StreamCursor, *, keep_rows: bool = False) -> None:
        await close(self, keep_rows=keep_rows)
        self._is_lost = False

    patch(StreamCursor, "close", quietly)
