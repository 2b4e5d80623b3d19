"""The lag of a follower in seconds."""

from __future__ import annotations

from triplicate.sql.core.follower_lag import SHOWN_S, FollowerLag


def test_the_lag_is_that_of_the_last_application() -> None:
    lag = FollowerLag()
    assert lag.seconds(0.0) == 0.0
    lag.applied(100.0, 7_500_000, 5_000_000)
    assert lag.seconds(100.0) == lag.seconds(100.0 + SHOWN_S) == 2.5
    lag.applied(101.0, 8_000_000, 7_750_000)
    assert lag.seconds(101.0) == 0.25


def test_a_log_at_rest_has_no_lag() -> None:
    lag = FollowerLag()
    lag.applied(100.0, 7_500_000, 5_000_000)
    assert lag.seconds(100.1 + SHOWN_S) == 0.0


def test_a_leader_whose_clock_is_ahead_makes_no_negative_lag() -> None:
    lag = FollowerLag()
    lag.applied(100.0, 5_000_000, 7_500_000)
    assert lag.seconds(100.0) == 0.0
