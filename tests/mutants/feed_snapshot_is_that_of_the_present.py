"""A change feed's snapshot that is planned again is read as of the present, not as of the position in the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from triplicate.spark.change_feed import change_source

TESTS = [
    "tests/unit/spark/change_feed/test_feed_snapshot.py::test_a_planned_snapshot_is_read_as_of_its_position_in_the_present_columns",
    "tests/unit/spark/change_feed/test_feed_snapshot.py::test_a_driver_that_is_killed_at_any_step_loses_and_doubles_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    snapshot = change_source._Feed.snapshot

    def present(self: Any, logs: Any, stop: Any) -> Any:
        return snapshot(self, logs, replace(stop, version=logs.bounds(self.log)[1]))

    patch(change_source._Feed, "snapshot", present)
