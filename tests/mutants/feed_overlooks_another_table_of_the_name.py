"""A feed with a start version delivers changes of a new table to a consumer that holds rows of the earlier table of that name."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed.lineage import Ancestry

TESTS = [
    "tests/unit/spark/change_feed/test_feed.py::test_a_version_at_which_another_table_had_the_name_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Ancestry, "name_had_another", False)
