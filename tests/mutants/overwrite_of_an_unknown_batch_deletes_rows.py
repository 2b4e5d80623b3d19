"""A stream that overwrites a table commits a batch that has no application, and could delete its successor's rows."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.datasource import WriterCommitMessage

from triplicate.spark.tables import table_writing

TESTS = ["tests/unit/spark/tables/test_table_writing.py::test_a_stream_deletes_no_rows_in_a_batch_that_cannot_be_known_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def committed(self: table_writing.StreamTableWriter, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        table_writing.commit(self._write, self._write.options.application, batchId, messages)

    patch(table_writing.StreamTableWriter, "commit", committed)
