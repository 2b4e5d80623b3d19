"""Pauses between portions of reads have no upper bound after a slow portion."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_read_throttle.py::test_a_reader_goes_on_however_small_its_share_is"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    import math

    from triplicate.bookie.server import read_throttle

    patch(read_throttle, "PAUSE_MAX_S", math.inf)
