"""A reader that ran a short statement on the event loop keeps its limits in its thread, where long statements run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from triplicate.sql.executor.reader_connection import ReaderConnection
from triplicate.sql.executor.short_reads import CHECKED_STEPS, ROW_BYTES, StepLimit

TESTS = [
    "tests/unit/sql/executor/test_reader_connection.py::test_the_limits_of_the_loop_end_with_the_call",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    @contextmanager
    def limited(self: ReaderConnection, opened: Any) -> Iterator[None]:
        connection = opened.connection
        connection.set_progress_handler(StepLimit(connection).is_reached, CHECKED_STEPS)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, ROW_BYTES)
        yield

    patch(ReaderConnection, "_limited", limited)
