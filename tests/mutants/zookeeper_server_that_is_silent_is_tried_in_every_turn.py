"""A ZooKeeper server that hangs is waited for in every turn, while the others elect a leader and serve."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.metadata.drivers.zookeeper_session import ServerAddress, _OneSession

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_session_silence.py::test_a_server_that_accepts_a_connection_and_is_silent_is_passed_over",
    "tests/unit/metadata/drivers/test_zookeeper_session_silence.py::test_a_server_that_was_left_for_its_silence_is_passed_over",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def to_try(self: _OneSession, servers: Sequence[ServerAddress]) -> list[ServerAddress]:
        return list(servers)

    patch(_OneSession, "to_try", to_try)
