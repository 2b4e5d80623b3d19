"""A bookie grants reads beside adds the same share of the time, however rarely adds wait for a sync: repairs take twice as long."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.server.read_throttle import ReadThrottle

TESTS = ["tests/unit/bookie/server/test_read_throttle.py::test_reads_beside_rare_adds_have_a_larger_share"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ReadThrottle, "share", property(lambda throttle: throttle._settings.read_share_beside_writes))
