"""A peer whose connection has ended is dialled when the interval is over, and not at once."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import FailureDetector
from triplicate.replica.failure_detector import _Peer

TESTS = [
    "tests/unit/replica/test_failure_detector_waits.py::test_a_connection_that_ends_is_made_again_at_once",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def ended(self: FailureDetector, peer: _Peer) -> None:
        peer.silence.reset(self._host.clock.elapsed())

    patch(FailureDetector, "_ended", ended)
