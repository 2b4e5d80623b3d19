"""A writer that ends fails the first waiter for room; the others wait for ever."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import AdmissionWindow

TESTS = [
    "tests/unit/runtime/test_window.py::test_a_window_that_ends_fails_every_waiter",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def fail(self: AdmissionWindow, error: BaseException) -> None:
        if self._waiters:
            self._waiters.popleft().fail(error)

    patch(AdmissionWindow, "fail", fail)
