"""Cancelling a wait counts as the end of its function, so the lane's next function runs beside it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/runtime/test_worker_pool.py::test_a_cancelled_wait_does_not_end_its_function"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.runtime.ports import Worker
    from triplicate.runtime.worker_pool import SerialWorker, WorkerPool

    start = WorkerPool._start

    def start_and_trust_the_wait(self: WorkerPool, lane: SerialWorker, worker: Worker) -> None:
        answer = lane._jobs[0][0]
        start(self, lane, worker)
        answer.add_done_callback(lambda ended: self.enqueue(lane) if ended.cancelled() and lane._jobs else None)

    patch(WorkerPool, "_start", start_and_trust_the_wait)
