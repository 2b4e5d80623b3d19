"""An imported serial column goes on behind its greatest number, not behind the greatest one that PostgreSQL had given."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import pg_dump

TESTS = [
    "tests/unit/sql/backup/test_pg_dump.py::test_a_dump_becomes_a_database_that_goes_on",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(pg_dump, "set_counters", lambda *_: None)
