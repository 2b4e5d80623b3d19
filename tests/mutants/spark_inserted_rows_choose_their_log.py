"""Rows that are inserted into a table go to the log that they were read from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

TESTS = ["tests/unit/spark/logs/test_routing.py::test_rows_of_a_table_do_not_choose_their_log"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from dataclasses import replace

    import pyarrow as pa

    from triplicate.spark.core.log_options import WriteOptions
    from triplicate.spark.logs import writing
    from triplicate.spark.logs.routing import by_log

    def broken(rows: pa.RecordBatch, write: WriteOptions) -> Iterator[tuple[str, pa.RecordBatch]]:
        return by_log(rows, replace(write, into_table=False, log=""))

    patch(writing, "by_log", broken)
