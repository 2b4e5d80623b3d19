"""A probe that could be sent counts as answered, so a stopped process, whose kernel still accepts data, continues to lead."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import failure_detector

TESTS = [
    "tests/unit/replica/test_failure_detector.py::test_a_peer_is_silent_when_it_leaves_questions_open_after_it_answered_one[answers0-True]",
    "tests/simulation/test_databases.py::test_a_leader_that_hangs_is_replaced_though_its_session_and_its_connections_live",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    sent = failure_detector._ProbeConnection.probe

    def probe(self: failure_detector._ProbeConnection) -> None:
        sent(self)
        self._answered()

    patch(failure_detector._ProbeConnection, "probe", probe)
