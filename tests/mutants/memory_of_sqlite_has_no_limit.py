"""SQLite takes any memory, so that one statement ends the process."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage import memory_limit

TESTS = ["tests/unit/sql/storage/test_memory_limit.py::test_a_statement_that_needs_too_much_memory_fails_alone"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(memory_limit, "limit_memory", lambda max_bytes: max_bytes)
