"""How much of many similar cases a test tries: half of them in `make test`, all where a test is run by itself and in `make check-deep`."""

from __future__ import annotations

import os

SHARE = float(os.environ.get("EXAMPLES_SHARE", "1"))
"""The share of the cases that are tried; `scripts/run_tests.py` sets it."""


def examples(most: int) -> int:
    """How many inputs a test draws that draws `most` where time does not matter."""
    return max(1, round(most * SHARE))


def stride(least: int) -> int:
    """The distance between two of the steps that a test tries, which is `least` where time does not matter."""
    return max(least, round(least / SHARE))
