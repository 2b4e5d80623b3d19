"""A stream's batch is published without application and number, so a repeat is not recognised."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.log import PublishResult, StagedLedger
from triplicate.spark.cluster.access import LogAccess

TESTS = [
    "tests/unit/spark/test_logs_exactly_once.py::test_a_driver_that_is_killed_before_any_step_loses_and_doubles_nothing",
    "tests/unit/spark/test_logs_exactly_once.py::test_drivers_that_are_stopped_replaced_and_woken_publish_each_record_once",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    publish = LogAccess.publish

    def unnamed(logs: LogAccess, log: str, ledgers: Sequence[StagedLedger], **named: object) -> PublishResult:
        return publish(logs, log, ledgers, application=None, batch=None)

    patch(LogAccess, "publish", unnamed)
