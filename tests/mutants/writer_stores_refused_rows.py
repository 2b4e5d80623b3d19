"""The writer does not check the rows of a change that is a transaction of its own: it is stored, and answered with an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.sql.executor.statement_batches import AutocommitRequest, AutocommitResult
from triplicate.sql.executor.writer_connection import WriterConnection

TESTS = [
    "tests/unit/sql/executor/test_writer_connection.py::test_a_change_whose_rows_are_refused_is_undone_and_its_neighbours_are_not",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = WriterConnection.run_request

    def unchecked(self: WriterConnection, request: AutocommitRequest) -> AutocommitResult:
        return original(self, replace(request, check_rows=None))

    patch(WriterConnection, "run_request", unchecked)
