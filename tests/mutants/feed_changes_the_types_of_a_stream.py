"""A stream of an earlier release, whose sink holds strings, goes on with dates and decimals: one column in two types."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed import change_source

TESTS = [
    "tests/unit/spark/cluster/test_column_values.py::test_a_stream_of_an_earlier_release_goes_on_with_strings_or_says_so",
    "tests/unit/spark/cluster/test_column_values.py::test_a_batch_that_an_earlier_release_planned_is_not_read_in_other_types",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(change_source._Feed, "check_types", lambda _self, _start: None)
