"""A single refused connection counts as a dead peer, so a listener that is being replaced costs a leader its lead."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import failure_detector

TESTS = [
    "tests/unit/replica/test_failure_detector.py::test_a_peer_is_gone_when_its_address_refuses_after_it_was_reached[answers6-False]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(failure_detector, "REFUSALS", 1)
