"""The change feed gives NULL for an added column in older rows, although the table has the column's default."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core import schema_changes

TESTS = [
    "tests/unit/spark/change_feed/test_feed.py::test_rows_of_before_have_the_default_of_an_added_column",
    "tests/unit/spark/change_feed/test_feed.py::test_rows_that_were_delivered_before_get_the_default_of_a_new_column_by_an_event",
    "tests/property/test_feed_rebuild.py::test_a_table_rebuilt_from_its_feed_equals_the_table",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(schema_changes, "_converted", lambda _sql, _definition, _options: None)
