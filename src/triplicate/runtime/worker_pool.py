"""Many sequential workers on few threads: each runs one function at a time, in order, on any free thread."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from triplicate.errors import HandleClosed
from triplicate.runtime.oneshot import resolve_all
from triplicate.runtime.ports import Worker

Result = TypeVar("Result")
_Job = tuple["asyncio.Future[Any]", contextvars.Context, Callable[..., Any], tuple[Any, ...]]


class WorkerPool:
    """Shares the threads of some workers between any number of `SerialWorker`s.

    The pool runs on the loop and adds no thread of its own, so it works on the simulator's workers as on real ones. Serial workers are
    served in turn, one function each. A function that runs for long occupies one thread, and delays only its own serial worker.

    Args:
        new_worker: makes one worker, for example `Host.new_worker`.
        name: prefix of the threads' names.
        threads: limit of the functions that run at a time, at least 1.
    """

    def __init__(self, new_worker: Callable[[str], Worker], name: str, threads: int) -> None:
        self._name = name
        self._workers = [new_worker(f"{name}-{number}") for number in range(threads)]
        # A worker starts its thread with its first function. The worker used last is used first, so that little work needs few threads.
        self._idle = list(reversed(self._workers))
        self._ready: deque[SerialWorker] = deque()
        self._closed = False
        self._waiting_for_end: list[asyncio.Future[None]] = []

    @property
    def waiting(self) -> int:
        """Serial workers that have work and no thread."""
        return len(self._ready)

    def serial_worker(self, name: str) -> SerialWorker:
        """A worker of its own for one purpose."""
        return SerialWorker(self, name)

    async def close(self) -> None:
        """Refuse further work, wait for what was accepted, then end the threads. Idempotent."""
        self._closed = True
        if not self._all_idle():
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting_for_end.append(ended)
            await ended
        for worker in self._workers:
            await worker.close()

    # For `SerialWorker`.

    def enqueue(self, serial_worker: SerialWorker) -> None:
        """Queue a serial worker that has work and does not run.

        Raises:
            HandleClosed: the pool is closed.
        """
        if self._closed:
            raise HandleClosed(f"the workers {self._name} are closed")
        if self._idle and not self._ready:
            self._start(serial_worker, self._idle.pop())
        else:
            self._ready.append(serial_worker)

    def _all_idle(self) -> bool:
        return not self._ready and len(self._idle) == len(self._workers)

    def _dispatch(self) -> None:
        while self._ready and self._idle:
            self._start(self._ready.popleft(), self._idle.pop())

    def _start(self, serial_worker: SerialWorker, worker: Worker) -> None:
        answer, context, function, arguments = serial_worker.jobs.popleft()
        context.run(worker.run, function, *arguments, answer=answer)
        answer.add_done_callback(partial(self._ended, serial_worker, worker))

    def _ended(self, serial_worker: SerialWorker, worker: Worker, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled():
            # The wait has ended, and the function may still run. The worker runs another function only after it.
            worker.run(_nothing).add_done_callback(partial(self._ended, serial_worker, worker))
            return
        self._idle.append(worker)
        if serial_worker.finished():
            self._ready.append(serial_worker)
        if self._ready:
            self._dispatch()
        if self._closed and self._all_idle():
            resolve_all(self._waiting_for_end)


def _nothing() -> None:
    """Run behind a function that nothing waits for any more."""


class SerialWorker:
    """Implements `Worker` on a pool. Callers limit the queue by waiting for their results."""

    def __init__(self, pool: WorkerPool, name: str) -> None:
        self._pool = pool
        self._name = name
        self.jobs: deque[_Job] = deque()
        """For the pool: functions that have not been started, in order."""
        self._running = False
        self._closed = False
        self._idle: list[asyncio.Future[None]] = []

    def run(self, function: Callable[..., Result], *args: Any, answer: asyncio.Future[Result] | None = None) -> asyncio.Future[Result]:
        """See `Worker.run`.

        Raises:
            HandleClosed: the worker or its pool is closed.
        """
        if self._closed:
            raise HandleClosed(f"worker {self._name} is closed")
        if answer is None:
            answer = asyncio.get_running_loop().create_future()
        self.jobs.append((answer, contextvars.copy_context(), function, args))
        if not self._running:
            self._running = True
            try:
                self._pool.enqueue(self)
            except HandleClosed:
                self._running = False
                self.jobs.clear()
                raise
        return answer

    async def close(self) -> None:
        """Refuse further functions and wait for those that were accepted. The threads stay. Idempotent."""
        self._closed = True
        if self._running:
            idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await idle

    # For `WorkerPool`.

    def finished(self) -> bool:
        """Note that a function has ended. Returns whether another one is queued."""
        if self.jobs:
            return True
        self._running = False
        if self._idle:
            resolve_all(self._idle)
        return False
