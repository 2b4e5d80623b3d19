"""The search for schema changes reads a part of the log as a whole, however large its records are."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed import schema_history

TESTS = ["tests/unit/spark/change_feed/test_schema_history.py::test_records_of_large_transactions_are_passed_over"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(schema_history, "SCAN_BYTES", 1 << 40)
