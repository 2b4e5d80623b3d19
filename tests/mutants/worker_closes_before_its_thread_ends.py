"""A worker's `close` returns while its thread is still ending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.runtime.real import RealWorker

TESTS = ["tests/unit/runtime/test_real_worker.py::test_no_thread_of_a_worker_is_left_when_its_close_returns"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def close(worker: RealWorker) -> None:
        worker._work.put(None)
        if worker._running is not None:
            await asyncio.shield(worker._running.ended)

    patch(RealWorker, "close", close)
