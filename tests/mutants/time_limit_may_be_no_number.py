"""The wait for an embedded store ends after NaN seconds: never, where nobody leads it."""

from collections.abc import Callable

from triplicate.embedded import usable_copy
from triplicate.runtime import Clock

TESTS = ["tests/unit/embedded/test_usable_copy.py::test_a_copy_that_is_not_served_is_waited_for_with_a_limit"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def broken(clock: Clock, limit_s: float) -> float:
        return clock.monotonic() + (0.0 if limit_s != limit_s else limit_s)

    patch(usable_copy, "deadline_after", broken)
