"""A read of single entries waits for a hanging replica until the read time-out."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.read.range_read import RangeRead

TESTS = [
    "tests/unit/client/test_read_hedged.py::test_a_reading_does_not_wait_for_a_bookie_that_hangs[0-settings1-3]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(RangeRead, "_hedge_overdue", lambda self: None)
