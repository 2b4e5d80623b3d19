"""The option that names the columns of a read has no effect."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/logs/test_log_source.py::test_columns_that_are_named_are_the_only_ones_in_their_order"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.core import source_schema

    patch(source_schema, "log_columns", lambda *, include_headers, include_metadata, names: source_schema.LOG_COLUMNS)
