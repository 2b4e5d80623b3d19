"""The change feed looks up a renamed column under its new name in older rows, and gives NULL."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed.lineage import Ancestry, ColumnSource, LocatedChange
from triplicate.sql.core.schema_changes import ColumnRenamed, fold

TESTS = [
    "tests/unit/spark/change_feed/test_feed.py::test_values_of_a_renamed_column_are_under_its_present_name",
    "tests/unit/spark/change_feed/test_feed.py::test_columns_that_exchange_their_names_keep_their_values",
    "tests/property/test_feed_rebuild.py::test_a_table_rebuilt_from_its_feed_equals_the_table",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    step = Ancestry.step

    def forgetful(self: Ancestry, located: LocatedChange) -> None:
        step(self, located)
        if isinstance(located.change, ColumnRenamed) and fold(located.change.table) == self._name:
            renamed = fold(located.change.column)
            self._sources = [ColumnSource(None) if fold(one.column or "") == renamed else one for one in self._sources]

    patch(Ancestry, "step", forgetful)
