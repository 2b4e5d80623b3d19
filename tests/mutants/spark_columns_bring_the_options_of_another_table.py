"""A subset of a table's columns selects the table's options, so an INSERT into another table writes to the first one's log."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_log_source.py::test_columns_of_a_table_that_come_to_another_do_not_bring_its_options"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.core import table_options
    from triplicate.spark.logs.log_source import TriplicateDataSource

    def given(self: TriplicateDataSource, wanted: object, known: object) -> object:
        columns = [(field.name, field.metadata) for field in wanted.fields]  # type: ignore[attr-defined]
        return table_options.effective(self.options, table_options.options_in(columns), known)  # type: ignore[arg-type]

    patch(TriplicateDataSource, "_given", given)
