"""The change feed identifies a table by its name alone, and mixes tables that had this name one after the other."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed.lineage import Ancestry, LocatedChange
from triplicate.sql.core.schema_changes import TableCreated, TableDropped, TableRenamed

TESTS = [
    "tests/unit/spark/change_feed/test_feed.py::test_a_table_made_again_under_a_name_has_only_its_own_rows",
    "tests/unit/spark/change_feed/test_feed.py::test_a_renamed_table_has_its_history_and_its_old_name_none",
    "tests/property/test_feed_rebuild.py::test_a_table_rebuilt_from_its_feed_equals_the_table",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    step = Ancestry.step

    def by_name(self: Ancestry, located: LocatedChange) -> None:
        if not isinstance(located.change, TableCreated | TableDropped | TableRenamed):
            step(self, located)

    patch(Ancestry, "step", by_name)
