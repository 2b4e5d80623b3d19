"""The judge of owners that have ended, held to histories written by hand."""

from __future__ import annotations

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.owner_rules import OWNER_CHECKERS, OwnerEnded


@pytest.mark.parametrize("succeeded", [True, False])
def test_a_log_whose_writer_has_ended_is_free(succeeded: bool) -> None:
    history = History()
    history.add(OwnerEnded(1.0, "l", "first", "second", succeeded))
    (verdict,) = judge(history, OWNER_CHECKERS)
    assert verdict.decided == 1
    assert ["first has ended there, and still owns it" in violation for violation in verdict.violations] == [True] * (not succeeded)
