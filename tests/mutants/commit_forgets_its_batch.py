"""A Spark commit publishes without the application's name and batch number, so a second run adds its records again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.log import StagedLedger
from triplicate.spark.cluster.access import LogAccess

TESTS = [
    "tests/unit/spark/logs/test_writing.py::test_a_version_that_runs_again_adds_nothing_and_leaves_nothing",
    "tests/unit/spark/logs/test_writing.py::test_a_stream_batch_that_comes_again_adds_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def publish(self: LogAccess, log: str, ledgers: Sequence[StagedLedger], *, application: str | None, batch: int | None) -> bool:
        return not self._loop.call(self._logs.publish(log, ledgers)).already

    patch(LogAccess, "publish", publish)
