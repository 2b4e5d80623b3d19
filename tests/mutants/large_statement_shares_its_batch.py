"""Statements run behind one that is written in parts, in the same batch."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.batch_builder import AIM_ENTRY_BYTES, BatchBuilder

TESTS = [
    "tests/unit/sql/executor/test_writer_connection_large_transactions.py::test_a_large_statement_runs_alone_in_its_batch",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(BatchBuilder, "is_full", property(lambda self: self.size_bytes > AIM_ENTRY_BYTES))
