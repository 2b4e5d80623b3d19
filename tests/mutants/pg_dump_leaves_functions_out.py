"""What a database does not have is left out of a dump without a word, as if it only said who owns something."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup.core.dump_definitions import DumpDefinitions
from triplicate.sql.backup.core.dump_text import DumpStatement

TESTS = [
    "tests/unit/sql/backup/test_pg_dump.py::test_what_a_database_does_not_have_is_named_by_its_line_before_anything_is_stored",
    "tests/unit/sql/backup/core/test_dump_definitions.py::test_what_cannot_be_is_refused_with_its_line",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    add = DumpDefinitions.add

    def silent(self: DumpDefinitions, dumped: DumpStatement) -> None:
        add(self, dumped)
        self.refusals.clear()

    patch(DumpDefinitions, "add", silent)
