"""A forked child gives work to the loop of its parent, whose thread it does not have."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.blocking import BackgroundLoop

TESTS = ["tests/unit/blocking/test_background_loop.py::test_a_call_in_a_forked_child_is_an_error_and_the_parent_goes_on"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(BackgroundLoop, "_is_forked", property(lambda loop: False))
