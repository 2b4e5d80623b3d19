"""A leader that ends while the metadata are unreachable is probed only after they are back."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import failure_detector

TESTS = [
    "tests/unit/replica/test_failure_detector_waits.py::test_refusals_count_while_nobody_waits",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(failure_detector, "LINGER_S", 0.0)
