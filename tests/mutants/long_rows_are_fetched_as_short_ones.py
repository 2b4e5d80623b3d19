"""A batch of rows has any size, so that a result of long rows fills the memory of its node."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import short_reads

TESTS = ["tests/unit/sql/executor/test_short_reads.py::test_a_cursor_gives_long_rows_a_few_at_a_time"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(short_reads, "BATCH_BYTES", 2**60)
