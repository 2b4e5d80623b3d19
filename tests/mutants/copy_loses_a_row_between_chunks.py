"""A row of COPY's data that is cut between two messages is lost."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values.copy_lines import CopyRows, LineReader

TESTS = [
    "tests/unit/sql/pg/protocol/test_copy_commands.py::test_rows_are_stored_when_the_data_are_complete",
    "tests/property/test_copy_lines.py::test_what_is_written_is_read_again",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    read = LineReader._read

    def without_rest(self: LineReader, block: bytes, rest: bytes) -> CopyRows:
        return read(self, block, b"")

    patch(LineReader, "_read", without_rest)
