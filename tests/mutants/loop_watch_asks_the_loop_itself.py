"""A stall is measured by the loop that stands still, so its place is not known, and nothing is reported while it lasts."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime.loop_watch import LoopWatch

TESTS = ["tests/unit/runtime/test_loop_watch.py::test_a_callback_that_keeps_the_loop_is_reported_with_its_place_while_it_lasts"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def afterwards(self: LoopWatch, asked: float, answered: object) -> None:
        answered.wait()  # type: ignore[attr-defined]

    patch(LoopWatch, "_follow", afterwards)
