"""Schema events lead to the schema version of the query's columns, so other tables' changes make repeated events look newer."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.spark.change_feed.lineage import Lineage

TESTS = [
    "tests/unit/spark/change_feed/test_feed_events.py::test_events_that_come_again_lead_to_the_same_version_whatever_happened_to_other_tables",
    "tests/property/test_feed_rebuild.py::test_a_table_rebuilt_from_its_feed_equals_the_table",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(Lineage, "last_carried", property(lambda self: self.anchor))
