"""A consumer saves after NaN seconds: never."""

from collections.abc import Callable

from triplicate.log import consumers

TESTS = ["tests/unit/log/test_consumers.py::test_an_interval_of_saves_that_cannot_be_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(consumers, "check_seconds", lambda what, seconds: seconds)
