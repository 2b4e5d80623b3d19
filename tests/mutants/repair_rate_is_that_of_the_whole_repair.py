"""The rate of a repair is that since its beginning, so that one that hangs seems to go on."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery.core import repair_rate

TESTS = [
    "tests/unit/autorecovery/core/test_repair_rate.py::test_the_rate_is_that_of_the_window_and_not_of_the_whole_repair",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(repair_rate, "WINDOW_S", 1e9)
