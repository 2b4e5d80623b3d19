"""Backoff: doubling with jitter."""

from __future__ import annotations

import random

import pytest

from triplicate.errors import ArgumentError
from triplicate.runtime import Backoff


def test_backoff_doubles_up_to_its_maximum_with_jitter_and_starts_again() -> None:
    backoff = Backoff(0.1, 1.0, random.Random(1))
    delays = [backoff.next_s() for _ in range(8)]
    for delay_s, step_s in zip(delays, [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0], strict=True):
        assert step_s / 2 <= delay_s <= step_s
    assert backoff.attempts == 8
    assert len(set(delays)) == 8
    backoff.reset()
    assert backoff.attempts == 0
    assert backoff.next_s() <= 0.1
    for first_s, maximum_s in ((0, 1), (2, 1)):
        with pytest.raises(ArgumentError):
            Backoff(first_s, maximum_s, random.Random(1))
