"""A leader's end is concluded while the metadata break, and is not concluded again: its node stays until its session ends."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import FailureDetector

TESTS = [
    "tests/unit/replica/test_failure_detector_waits.py::test_the_end_of_a_process_that_came_to_nothing_is_concluded_again",
    "tests/unit/replica/test_failure_detector_waits.py::test_a_silence_that_came_to_nothing_goes_on_and_is_confirmed_on_a_new_connection",
    "tests/unit/replica/test_failure_detector_waits.py::test_a_conclusion_that_comes_together_with_a_cancellation_is_not_lost[False]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(FailureDetector, "_retract", lambda self, address, concluded, silent_at=None: None)
