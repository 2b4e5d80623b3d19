"""An address that refused just before a wait is gone for it, although the process has started again and leads since."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica.failure_detector import REFUSALS, FailureDetector, _Peer
from triplicate.runtime import TaskScope

TESTS = [
    "tests/unit/replica/test_failure_detector_waits.py::test_a_process_that_has_started_again_is_not_gone_by_earlier_refusals",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    probe = FailureDetector._probe_peer

    def concluding(self: FailureDetector, scope: TaskScope, address: str, peer: _Peer) -> float:
        since_attempt_s = self._host.clock.elapsed() - peer.attempted_s
        if peer.refusals >= REFUSALS and peer.is_awaited and not peer.is_connecting and since_attempt_s <= self._interval_s:
            self._conclude_end(address, peer)
        return probe(self, scope, address, peer)

    patch(FailureDetector, "_probe_peer", concluding)
