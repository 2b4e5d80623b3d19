"""A reader waits until NaN, a time that never comes and that leaves the loop's timers out of order."""

from collections.abc import Callable

from triplicate.log.reading import log_consumer, record_reader
from triplicate.runtime import Clock, deadline_after

TESTS = ["tests/unit/log/test_consumers.py::test_a_consumer_takes_no_boolean_for_a_number_and_no_wait_that_is_not_a_number"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(clock: Clock, timeout_s: float | None) -> float | None:
        return deadline_after(clock, 0.0 if timeout_s != timeout_s else timeout_s)

    patch(log_consumer, "deadline_after", broken)
    patch(record_reader, "deadline_after", broken)
