"""A node that was cut off acts upon the silence of that time when it returns, before the leader could answer."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import FailureDetector
from triplicate.replica.failure_detector import _Peer

TESTS = [
    "tests/unit/replica/test_failure_detector_waits.py::test_a_silence_of_which_nobody_knew_ends_with_the_answer_on_a_new_connection",
    "tests/unit/replica/test_failure_detector_waits.py::test_an_attempt_to_connect_from_before_a_wait_does_not_count_for_it",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def begin_wait(self: FailureDetector, peer: _Peer) -> None:
        self._wake.set()

    patch(FailureDetector, "_begin_wait", begin_wait)
