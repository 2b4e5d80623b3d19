"""The share of the time in which background work may run."""

from __future__ import annotations

import pytest

from triplicate.autorecovery.core.duty_cycle import seconds_until_open


@pytest.mark.parametrize(
    ("elapsed_s", "share", "expected"),
    [(0.0, 0.25, 0.0), (0.24, 0.25, 0.0), (0.25, 0.25, 0.75), (0.75, 0.25, 0.25), (3.0, 0.25, 0.0), (3.5, 0.25, 0.5), (0.999, 1.0, 0.0)],
)
def test_work_runs_in_the_first_part_of_each_period(elapsed_s: float, share: float, expected: float) -> None:
    assert seconds_until_open(elapsed_s, share, 1.0) == pytest.approx(expected)
