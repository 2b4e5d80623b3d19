"""How long the no-op of an idle writer waits: as usual where entries are rare, for the next entry where they are frequent."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triplicate.log.core.noop_delay import INTERVALS_WAITED, RECENT_INTERVALS, NoopDelay

USUAL_S = 0.0005
LONGEST_S = 0.02


def delay_after(gaps: list[float], longest_s: float = LONGEST_S) -> float:
    delay, now = NoopDelay(USUAL_S, longest_s), 100.0
    for gap in gaps:
        now += gap
        delay.appended(now)
    return delay.delay_s()


def test_frequent_entries_are_waited_for() -> None:
    assert delay_after([0.003] * (RECENT_INTERVALS + 1)) == pytest.approx(INTERVALS_WAITED * 0.003)
    assert delay_after([0.0001] * (RECENT_INTERVALS + 1)) == USUAL_S
    assert delay_after([0.015] * (RECENT_INTERVALS + 1)) == LONGEST_S


def test_the_first_entries_after_a_pause_are_not_waited_for() -> None:
    frequent = [0.003] * (RECENT_INTERVALS + 1)
    assert delay_after([]) == delay_after(frequent[:RECENT_INTERVALS]) == USUAL_S
    for following in range(RECENT_INTERVALS):
        assert delay_after([*frequent, 1.0, *frequent[:following]]) == USUAL_S
    assert delay_after([*frequent, 1.0, *frequent[:RECENT_INTERVALS]]) > USUAL_S


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(0.0, 0.1), max_size=30), st.sampled_from([0.0, LONGEST_S]))
def test_the_delay_is_bounded(gaps: list[float], longest_s: float) -> None:
    assert USUAL_S <= delay_after(gaps, longest_s) <= max(USUAL_S, longest_s)
