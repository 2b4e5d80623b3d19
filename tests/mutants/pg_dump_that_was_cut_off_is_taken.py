"""A dump of PostgreSQL's that ends before its last comment is taken for a whole one."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup.core.dump_text import StatementSplitter

TESTS = [
    "tests/unit/sql/backup/test_pg_dump.py::test_a_damaged_or_foreign_dump_is_refused_with_its_line",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    note = StatementSplitter._note

    def complete(self: StatementSplitter, comment: str) -> None:
        note(self, comment)
        self.is_complete = True

    patch(StatementSplitter, "_note", complete)
