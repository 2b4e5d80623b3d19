"""A task with several small segments reads only the first of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

TESTS = ["tests/unit/spark/logs/test_writing.py::test_with_a_target_of_zero_every_task_keeps_its_ledger_and_few_tasks_read_them"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.cluster.access import LogAccess
    from triplicate.spark.cluster.arrow import EntryRange
    from triplicate.spark.logs.reading import LogPart

    def first(self: LogPart, logs: LogAccess) -> Iterator[EntryRange]:
        return logs.entries(self.ranges[0])

    patch(LogPart, "entries", first)
