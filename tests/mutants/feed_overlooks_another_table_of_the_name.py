"""A feed from a version on delivers a table's changes to a consumer whose rows are those of the table that had its name then."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed.lineage import Ancestry

TESTS = [
    "tests/unit/spark/change_feed/test_feed.py::test_a_version_at_which_another_table_had_the_name_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Ancestry, "name_had_another", False)
