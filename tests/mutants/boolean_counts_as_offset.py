"""A consumer saves True as its position, which counts as 1."""

from collections.abc import Callable

from triplicate.log.reading import log_consumer

TESTS = ["tests/unit/log/test_consumers.py::test_a_consumer_takes_no_boolean_for_a_number_and_no_wait_that_is_not_a_number"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(log_consumer, "check_offset", int)
