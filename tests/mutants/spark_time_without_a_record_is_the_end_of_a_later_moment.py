"""A stream whose starting time has no record does not keep the end at which it began."""

from __future__ import annotations

from collections.abc import Callable, Mapping

TESTS = ["tests/unit/spark/logs/test_reading_times.py::test_a_stream_that_begins_at_the_end_for_want_of_a_record_begins_there_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.cluster.access import LogAccess
    from triplicate.spark.cluster.progress import LogState
    from triplicate.spark.core.given_options import StartingPoint
    from triplicate.spark.core.log_options import LogReadOptions
    from triplicate.spark.logs import streaming

    find = streaming.find_start  # type: ignore[attr-defined]

    def broken(logs: LogAccess, read: LogReadOptions, point: StartingPoint, states: Mapping[str, LogState]) -> tuple[StartingPoint, bool]:
        return find(logs, read, point, states)[0], False

    patch(streaming, "find_start", broken)
