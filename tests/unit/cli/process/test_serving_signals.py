"""Signals that end a program by default, and end no server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from triplicate.cli.process import serving

NUMBERS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture
def fatal() -> Iterator[list[int]]:
    """The signals that would have ended the process."""
    met: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: met.append(number)) for number in NUMBERS}
    yield met
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_process_outlives_signals_that_mean_no_end(fatal: list[int]) -> None:
    hung_up: list[bool] = []
    serving.outlive_hangup(lambda: hung_up.append(True))
    for number in NUMBERS:
        os.kill(os.getpid(), number)
    assert fatal == []
    assert hung_up == [True]
