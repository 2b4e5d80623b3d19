"""A peer that never answered a probe counts as silent, so a firewall that drops probes deposes every leader."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import failure_detector
from triplicate.replica.core.silence import SilenceTimer

TESTS = [
    "tests/unit/replica/test_failure_detector.py::test_a_peer_is_silent_when_it_leaves_questions_open_after_it_answered_one[answers3-False]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def made(self: failure_detector._Peer, watch: SilenceTimer) -> None:
        make(self, watch)
        self.has_answered = True

    make = failure_detector._Peer.__init__
    patch(failure_detector._Peer, "__init__", made)
