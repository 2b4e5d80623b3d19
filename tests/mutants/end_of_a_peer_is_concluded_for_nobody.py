"""The end of a peer is concluded, and its state dropped, while nobody waits for it: the next wait never ends."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica.failure_detector import FailureDetector, PeerLoss, _Peer

TESTS = ["tests/unit/replica/test_failure_detector.py::test_a_refusal_that_comes_between_two_waits_is_not_lost"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    connect = FailureDetector._connect

    async def concluding(self: FailureDetector, address: str, peer: _Peer, host: str, port: int) -> None:
        await connect(self, address, peer, host, port)
        if peer.is_gone and not peer.waiters:
            self._conclude(address, peer, PeerLoss())

    patch(FailureDetector, "_connect", concluding)
