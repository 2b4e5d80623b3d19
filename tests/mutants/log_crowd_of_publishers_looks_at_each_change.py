"""Every publisher that waits for room in the queue reads the queue again at each change."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/log/publishing/test_request_server.py::test_a_crowd_of_publishers_does_not_crowd_the_metadata"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.log.publishing import request_queue
    from triplicate.runtime import Clock, sleep

    async def at_once(clock: Clock, seconds: float) -> None:
        await sleep(clock, 0.0)

    patch(request_queue, "sleep", at_once)
