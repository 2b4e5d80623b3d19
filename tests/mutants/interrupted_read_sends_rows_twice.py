"""The rows that a read had on the event loop when it was interrupted are answered, and those from the thread after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from triplicate.sql.core.interface import Prepared, Row, Value
from triplicate.sql.executor import short_reads
from triplicate.sql.executor.interrupts import StopFlag
from triplicate.sql.executor.reader_connection import ReaderConnection

TESTS = [
    "tests/unit/sql/engine/test_session_short_reads.py::test_a_result_over_a_limit_is_whole_and_comes_once",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    start = ReaderConnection.start
    interrupted: list[Row] = []

    def short_result(cursor: apsw.Cursor) -> list[Row] | None:
        interrupted.clear()
        for row in cursor:
            interrupted.append(row)
            if len(interrupted) > 200:
                return None
        rows = list(interrupted)
        interrupted.clear()
        return rows

    def start_after(
        self: ReaderConnection, prepared: Prepared, parameters: Sequence[Value], stop: StopFlag
    ) -> tuple[apsw.Cursor | None, list[Row]]:
        cursor, rows = start(self, prepared, parameters, stop)
        sent = list(interrupted)
        interrupted.clear()
        return cursor, sent + rows

    patch(short_reads, "_short_result", short_result)
    patch(ReaderConnection, "start", start_after)
