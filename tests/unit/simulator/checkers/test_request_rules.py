"""The judge of refused decommissions, held to histories written by hand."""

from __future__ import annotations

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.request_rules import REQUEST_CHECKERS, DecommissionRefused


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (None, None, ""),
        (b"plain", b"plain", ""),
        (None, b"leaving", "b-2 had the request None before, and has b'leaving'"),
        (b"plain", None, "b-2 had the request b'plain' before, and has None"),
        (b"plain", b"leaving", "b-2 had"),
    ],
)
def test_a_refused_decommission_leaves_the_requests_as_they_were(before: bytes | None, after: bytes | None, reason: str) -> None:
    history = History()
    history.add(DecommissionRefused(1.0, {"b-1": None, "b-2": before}, {"b-1": None, "b-2": after}))
    (verdict,) = judge(history, REQUEST_CHECKERS)
    assert verdict.decided == 1
    assert [reason in violation for violation in verdict.violations] == [True] * bool(reason)
