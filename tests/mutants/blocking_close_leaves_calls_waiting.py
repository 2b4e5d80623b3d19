"""A loop is closed while coroutines of other threads run on it, and these threads wait for ever."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/blocking/test_background_loop.py::test_calls_of_other_threads_end_when_the_loop_is_closed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.blocking import background_loop

    async def leave_all() -> None:
        return

    patch(background_loop, "_end_all", leave_all)
