"""When the end of a certificate is a problem."""

from __future__ import annotations

import pytest

from triplicate.cli.overview.core.certificate_expiry import DAY_S, expiry_problem


@pytest.mark.parametrize(
    ("days", "problem"),
    [
        (400, ""),
        (14, ""),
        (13.9, "expires in 14 days"),
        (2, "expires in 2 days"),
        (1, "expires in 24 hours"),
        (0, "has expired"),
        (-0.5, "has expired"),
        (-3, "expired 3 days ago"),
    ],
)
def test_an_expiry_within_two_weeks_is_a_problem(days: float, problem: str) -> None:
    assert expiry_problem(1e9 + days * DAY_S, 1e9) == problem
