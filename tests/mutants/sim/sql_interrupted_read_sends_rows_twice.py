"""The rows that a read had on the event loop when it was interrupted are sent, and those from the thread after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "databases"
CHECKERS = ("reads_are_whole",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.executor import short_reads
    from triplicate.sql.executor.reader_connection import ReaderConnection

    start = ReaderConnection.start
    interrupted: list[Any] = []

    def short_result(cursor: Any) -> list[Any] | None:
        interrupted.clear()
        for row in cursor:
            interrupted.append(row)
            if len(interrupted) > short_reads.FIRST_ROWS:
                return None
        rows = list(interrupted)
        interrupted.clear()
        return rows

    def start_after(self: ReaderConnection, *arguments: Any) -> tuple[Any, list[Any]]:
        cursor, rows = start(self, *arguments)
        sent = list(interrupted)
        interrupted.clear()
        return cursor, sent + rows

    patch(short_reads, "_short_result", short_result)
    patch(ReaderConnection, "start", start_after)
