"""The refusal of an attempt to connect that began before a wait ends it, although the process may have started again since."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica.failure_detector import REFUSALS, _Peer

TESTS = ["tests/unit/replica/test_failure_detector_waits.py::test_a_refusal_of_an_attempt_from_before_a_wait_does_not_end_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(_Peer, "is_gone", property(lambda peer: peer.reached_s is not None and peer.refusals >= REFUSALS))
