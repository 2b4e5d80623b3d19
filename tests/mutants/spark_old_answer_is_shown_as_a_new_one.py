"""The last answer of a cluster that does not answer any more is shown for ever."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/spark/test_lag_listener.py::test_an_error_is_logged_once_and_leaves_the_rows_of_the_progress"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.spark.lag_listener import LagListener

    ask = LagListener.ask

    def broken(self: LagListener) -> None:
        before = self._asked
        ask(self)
        if self._failed:
            self._asked = before

    patch(LagListener, "ask", broken)
