"""The event loop reads a schema within the limits of a statement, so one of 1,000 tables is never read there."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.short_reads import StepLimit

TESTS = ["tests/unit/sql/executor/test_loop_reader.py::test_what_a_thread_has_read_of_a_large_schema_is_not_read_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(StepLimit, "begin_schema", StepLimit.begin)
