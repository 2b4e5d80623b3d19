"""A read that exceeds the limits of the event loop stays open there, and its snapshot keeps the write-ahead log from being emptied."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.core.interface import Row
from triplicate.sql.executor import short_reads

TESTS = [
    "tests/unit/sql/executor/test_loop_reader.py::test_no_snapshot_is_kept",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original, kept = short_reads._short_result, []

    def short_result(cursor: apsw.Cursor) -> list[Row] | None:
        rows = original(cursor)
        if rows is None:
            again = cursor.connection.execute("select id from t")
            next(again)
            kept.append(again)
        return rows

    patch(short_reads, "_short_result", short_result)
