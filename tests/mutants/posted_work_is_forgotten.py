"""The background loop keeps nothing alive that was posted to it: the garbage collector may end it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

TESTS = ["tests/unit/blocking/test_background_loop.py::test_what_was_begun_ends_before_the_close_returns"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.blocking.background_loop import BackgroundLoop

    def post(self: BackgroundLoop, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._submit(coroutine)

    patch(BackgroundLoop, "post", post)
