"""A process that starts while its lock is probed is refused."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import real_disk

TESTS = ["tests/unit/runtime/test_real_disk.py::test_a_lock_that_is_probed_just_then_is_got_all_the_same"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(real_disk, "LOCK_ATTEMPTS", 1)
