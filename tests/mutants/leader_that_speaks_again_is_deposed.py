"""A leader that was found silent is deposed although it answers again before its election node is deleted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import FailureDetector

TESTS = [
    "tests/unit/replica/test_election.py::test_a_leader_that_speaks_again_while_its_sign_is_being_taken_down_stays",
    "tests/unit/replica/test_failure_detector.py::test_a_peer_that_was_found_silent_is_heard_when_it_speaks_again",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica import election, failure_detector

    patch(election, "_spoken", lambda loss: failure_detector._never())
    patch(FailureDetector, "spoken", lambda self, address: failure_detector._never())
