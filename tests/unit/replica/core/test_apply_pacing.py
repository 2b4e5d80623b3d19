"""How applications of a follower are spaced: bounded, longer under load, and not at all where entries are rare."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triplicate.replica.core.apply_pacing import AWAITED_FACTOR, INTERVAL_FACTOR, INTERVAL_MAX_S, ApplyPacing

ROUNDING_S = 1e-6
DURATIONS = st.floats(0.0, 0.2)
ARRIVALS = st.lists(st.floats(0.0, 0.2), min_size=1, max_size=60)


class Application(NamedTuple):
    began: float
    ended: float
    entries: list[float]
    """Times at which they arrived."""


def follow(arrivals: Sequence[float], durations: Sequence[float], limit: int) -> list[Application]:
    """Applications of a follower that applies at most `limit` entries at once. Entry n arrives at `arrivals[n]`, ascending."""
    pacing, now, following, made = ApplyPacing(), 0.0, 0, list[Application]()
    while following < len(arrivals):
        now += pacing.wait_s(now)
        now = max(now, arrivals[following])
        arrived = [time for time in arrivals[following:] if time <= now][:limit]
        ended = now + durations[len(made) % len(durations)]
        pacing.applied(now, ended, is_behind=len(arrived) == limit)
        made.append(Application(now, ended, arrived))
        following += len(arrived)
        now = ended
    return made


def times_of(gaps: Sequence[float]) -> list[float]:
    return [sum(gaps[: index + 1]) for index in range(len(gaps))]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ARRIVALS, st.lists(DURATIONS, min_size=1, max_size=10), st.integers(1, 10))
def test_each_entry_is_applied_once_in_order_and_within_the_bound(gaps: list[float], durations: list[float], limit: int) -> None:
    arrivals = times_of(gaps)
    made = follow(arrivals, durations, limit)
    assert [time for one in made for time in one.entries] == arrivals
    for before, one in zip([None, *made], made, strict=False):
        # Only entries beyond the limit of the application before may have waited for longer, and for that one alone.
        waited = one.began - max(one.entries[0], before.ended if before is not None else 0.0)
        assert waited <= INTERVAL_MAX_S + ROUNDING_S
        if before is not None and len(before.entries) == limit:
            assert waited <= ROUNDING_S


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ARRIVALS, st.lists(DURATIONS, min_size=1, max_size=10))
def test_an_entry_that_arrives_after_a_pause_is_applied_at_once(gaps: list[float], durations: list[float]) -> None:
    made = follow(times_of(gaps), durations, 100)
    for before, one in pairwise(made):
        if one.entries[0] >= before.began + INTERVAL_MAX_S and one.entries[0] >= before.ended:
            assert one.began <= one.entries[0] + ROUNDING_S


def test_the_first_entry_does_not_wait() -> None:
    assert ApplyPacing().wait_s(0.0) == 0.0
    assert ApplyPacing().wait_s(-5.0) == 0.0


def test_under_load_an_application_holds_many_entries() -> None:
    arrivals = [index / 1000 for index in range(1000)]
    made = follow(arrivals, [0.001], 64)
    assert INTERVAL_FACTOR * 0.9 <= len(arrivals) / len(made) <= 64


def test_a_follower_that_is_behind_does_not_wait() -> None:
    pacing = ApplyPacing()
    pacing.applied(10.0, 10.001, is_behind=True)
    assert pacing.wait_s(10.001) == 0.0
    pacing.applied(10.001, 10.002, is_behind=False)
    assert pacing.wait_s(10.002) > 0.0


def test_a_clock_that_was_set_back_delays_by_the_bound_at_most() -> None:
    pacing = ApplyPacing()
    pacing.applied(1000.0, 1000.1, is_behind=False)
    assert pacing.wait_s(0.0) == INTERVAL_MAX_S


@given(DURATIONS)
def test_where_a_session_waits_at_most_half_of_the_time_goes_to_applications(took: float) -> None:
    pacing = ApplyPacing()
    pacing.applied(10.0, 10.0 + took, is_behind=False)
    usual = pacing.wait_s(10.0 + took)
    pacing.hurry()
    awaited = pacing.wait_s(10.0 + took)
    assert awaited <= usual
    assert abs(awaited - min((AWAITED_FACTOR - 1) * took, max(0.0, INTERVAL_MAX_S - took))) <= ROUNDING_S
