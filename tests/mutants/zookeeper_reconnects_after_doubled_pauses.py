"""The pauses between two turns through ZooKeeper's servers double, and are as long as an election."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import zookeeper_session

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_session_silence.py::test_the_pause_before_the_next_turn_is_a_small_part_of_the_time_without_a_server",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(zookeeper_session, "RECONNECT_GROWTH", 2.0)
