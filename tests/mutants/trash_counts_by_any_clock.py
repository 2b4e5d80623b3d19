"""The periods of the trash begin and end by the clock of whichever process looks, right or wrong."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata import trash

TESTS = ["tests/unit/bookie/storage/test_garbage_trash.py::test_a_wrong_clock_neither_ends_a_period_nor_begins_one_in_the_past"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(trash, "CLOCKS_APART_MAX_MS", 1 << 62)
