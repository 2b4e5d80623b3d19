"""The rate of a repair follows the last seconds."""

from __future__ import annotations

from triplicate.autorecovery.core.repair_rate import WINDOW_S, RepairRate


def test_the_rate_is_that_of_the_window_and_not_of_the_whole_repair() -> None:
    rate = RepairRate()
    assert rate.observe(100.0, 0, 0) == (0.0, 0.0)
    assert rate.observe(110.0, 100, 1000) == (10.0, 100.0)
    # From here on nothing is copied.
    assert rate.observe(120.0, 100, 1000) == (5.0, 50.0)
    assert rate.observe(110.0 + WINDOW_S, 100, 1000) == (0.0, 0.0)
    assert rate.observe(140.0 + WINDOW_S, 400, 7000) == (300 / 30, 6000 / 30)


def test_counts_of_one_moment_give_no_rate() -> None:
    rate = RepairRate()
    rate.observe(1.0, 0, 0)
    assert rate.observe(1.0, 5, 5) == (0.0, 0.0)
