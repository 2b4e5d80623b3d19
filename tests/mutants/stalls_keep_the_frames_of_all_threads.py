"""The watch of the loop refers to its own frame, so what runs at a stall is kept until the garbage collector comes."""

from __future__ import annotations

import sys
from collections.abc import Callable

from triplicate.runtime import loop_watch

TESTS = ["tests/unit/runtime/test_loop_watch.py::test_the_report_of_a_stall_keeps_nothing_of_what_ran"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(loop_watch, "_other_frames", sys._current_frames)
