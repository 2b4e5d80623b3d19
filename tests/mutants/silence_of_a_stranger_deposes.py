"""A peer that never answered a question counts as silent: what swallows questions, a firewall, deposes every leader."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import peers
from triplicate.replica.silence import SilenceWatch

TESTS = [
    "tests/unit/replica/test_peers.py::test_a_peer_is_silent_when_it_leaves_questions_open_after_it_answered_one[answers3-False]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def made(self: peers._Peer, watch: SilenceWatch) -> None:
        make(self, watch)
        self.has_answered = True

    make = peers._Peer.__init__
    patch(peers._Peer, "__init__", made)
