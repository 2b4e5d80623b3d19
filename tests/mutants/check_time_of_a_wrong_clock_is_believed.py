"""A clock that was a year ahead for a moment puts the auditor's checks off for a year."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.autorecovery import auditor

TESTS = [
    "tests/unit/autorecovery/test_auditor.py::test_a_time_that_a_wrong_clock_wrote_does_not_put_a_check_off",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def is_in_the_future(now_ms: int, last_ms: int) -> bool:
        return False

    patch(auditor, "is_in_the_future", is_in_the_future)
