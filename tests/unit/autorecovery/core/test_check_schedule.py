"""When the periodic checks are due."""

from __future__ import annotations

import pytest

from triplicate.autorecovery.core.check_schedule import FIRST_CHECK_AFTER_S, is_in_the_future, seconds_until_check

NOW_MS = 1_000_000_000


@pytest.mark.parametrize(
    ("last_ms", "interval_s", "elected_for_s", "expected"),
    [
        (NOW_MS - 10_000, 60, 0.0, 50.0),
        (NOW_MS - 60_000, 60, 0.0, 0.0),
        (NOW_MS - 600_000, 60, 0.0, 0.0),
        (NOW_MS + 600_000, 60, 0.0, 60.0),
        (None, 60, 0.0, FIRST_CHECK_AFTER_S),
        (None, 60, FIRST_CHECK_AFTER_S, 0.0),
        (NOW_MS - 600_000, 0, 1000.0, None),
        (None, 0, 1000.0, None),
    ],
)
def test_a_check_is_due_an_interval_after_its_last_run(
    last_ms: int | None, interval_s: int, elected_for_s: float, expected: float | None
) -> None:
    assert seconds_until_check(NOW_MS, last_ms, interval_s, elected_for_s) == expected


@pytest.mark.parametrize(("ahead_s", "expected"), [(-60, False), (0, False), (60, False), (61, True), (3600, True)])
def test_a_last_run_is_in_the_future_if_no_difference_of_clocks_explains_it(ahead_s: int, expected: bool) -> None:
    assert is_in_the_future(NOW_MS, NOW_MS + 1000 * ahead_s) is expected
