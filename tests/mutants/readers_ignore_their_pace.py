"""Catch-up reads are not throttled while adds arrive."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_read_throttle.py::test_beside_adds_a_reader_has_its_share_of_the_time_and_no_more"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.read_throttle import ReadThrottle

    async def never(self: ReadThrottle, *, urgent: bool) -> bool:
        return False

    patch(ReadThrottle, "wait", never)
