"""A leader's end is concluded for a wait that was just cancelled: nobody gets the conclusion, and its node stays until its session ends."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica.failure_detector import _Peer

TESTS = ["tests/unit/replica/test_failure_detector_waits.py::test_a_conclusion_that_comes_together_with_a_cancellation_is_not_lost"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(_Peer, "is_awaited", property(lambda peer: bool(peer.waiters)))
