"""A copy of a database ends within the rows of its last transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.core import records
from triplicate.sql.core.records import Transaction
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.storage import applier

TESTS = ["tests/unit/sql/backup/test_past_copy.py::test_a_copy_is_as_the_database_was_behind_each_transaction"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    decode = records.decode_transaction

    def first_operations(record: bytes, tables: Sequence[TableShape]) -> Transaction:
        transaction = decode(record, tables)
        if len(transaction.operations) > 2:
            del transaction.operations[-1]
        return transaction

    patch(applier, "decode_transaction", first_operations)
