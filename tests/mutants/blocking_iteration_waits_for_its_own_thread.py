"""An iteration that the garbage collector ends on the loop's thread blocks that thread until the loop has run, which it never does."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/blocking/test_background_loop.py::test_a_call_on_the_threads_own_loop_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.blocking import BackgroundLoop

    patch(BackgroundLoop, "_is_own_thread", False)
