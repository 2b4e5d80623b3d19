"""A peer that refuses connections counts as dead although it was never reached, so a firewall deposes every leader."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import failure_detector

TESTS = [
    "tests/unit/replica/test_failure_detector.py::test_a_peer_is_gone_when_its_address_refuses_after_it_was_reached[answers3-False]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(failure_detector._Peer, "is_gone", property(lambda self: self.refusals >= failure_detector.REFUSALS))
