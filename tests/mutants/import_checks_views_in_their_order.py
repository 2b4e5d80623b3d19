"""An import refuses a view whose query uses a later one, or cannot be computed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import plain_files
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import WriterConnection

TESTS = ["tests/unit/sql/backup/test_plain_files.py::test_an_imported_file_is_a_database_that_goes_on"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def checking(path: str, ids: TransactionIds, **_: bool) -> WriterConnection:
        return WriterConnection(path, ids)

    patch(plain_files, "WriterConnection", checking)
