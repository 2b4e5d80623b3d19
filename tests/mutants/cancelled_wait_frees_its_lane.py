"""Cancelling a wait counts as the end of its function, so the lane's next function runs beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

TESTS = ["tests/unit/runtime/test_worker_pool.py::test_a_cancelled_wait_does_not_end_its_function"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.runtime.ports import Worker
    from triplicate.runtime.worker_pool import SerialWorker, WorkerPool

    ended = WorkerPool._ended

    def trust_the_wait(self: WorkerPool, lane: SerialWorker, worker: Worker, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled() and lane.jobs:
            self.enqueue(lane)
        ended(self, lane, worker, answer)

    patch(WorkerPool, "_ended", trust_the_wait)
