"""A read on the event loop that has more rows than the limit is answered with the rows up to the limit."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from triplicate.sql.core.interface import Row
from triplicate.sql.executor import short_reads

TESTS = [
    "tests/unit/sql/engine/test_session_short_reads.py::test_a_result_over_a_limit_is_whole_and_comes_once",
    "tests/unit/sql/executor/test_loop_reader.py::test_a_result_of_too_many_rows_or_bytes_is_not_cut",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def short_result(cursor: apsw.Cursor) -> list[Row]:
        rows: list[Row] = []
        for row in cursor:
            if len(rows) == 200:
                cursor.close(True)
                break
            rows.append(row)
        return rows

    patch(short_reads, "_short_result", short_result)
