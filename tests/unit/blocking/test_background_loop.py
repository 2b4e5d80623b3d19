"""Calls of several threads on one loop: none waits for ever when the loop is closed, or for itself."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import os
import select
import signal
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from triplicate.blocking import BackgroundLoop, OpenOnLoop
from triplicate.errors import HandleClosed

LIMIT_S = 10.0


def in_thread(work: Callable[[], Any]) -> concurrent.futures.Future[Any]:
    """Call a function on a daemon thread, so that a hang of it fails the test and not the run."""
    done: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done


def test_calls_of_other_threads_end_when_the_loop_is_closed() -> None:
    loop, waits = BackgroundLoop("test"), threading.Event()

    async def wait() -> None:
        waits.set()
        await asyncio.get_running_loop().create_future()

    waiting = in_thread(lambda: loop.call(wait()))
    started = loop.start(lambda: asyncio.get_running_loop().create_future())
    assert waits.wait(LIMIT_S)
    in_thread(loop.close).result(LIMIT_S)
    for future in (waiting, started):
        with pytest.raises(HandleClosed, match="was closed"):
            future.result(LIMIT_S)


def test_calls_that_meet_the_close_end_too() -> None:
    for _ in range(20):
        loop = BackgroundLoop("test")
        begin = threading.Barrier(3)

        def call(loop: BackgroundLoop = loop, begin: threading.Barrier = begin) -> None:
            begin.wait(LIMIT_S)
            while True:
                loop.call(asyncio.sleep(0))

        def close(loop: BackgroundLoop = loop, begin: threading.Barrier = begin) -> None:
            begin.wait(LIMIT_S)
            loop.close()

        calling = [in_thread(call) for _ in range(2)]
        in_thread(close).result(LIMIT_S)
        for each in calling:
            with pytest.raises(HandleClosed):
                each.result(LIMIT_S)


def test_what_was_begun_ends_before_the_close_returns() -> None:
    loop, ended, began = BackgroundLoop("test"), list[str](), threading.Event()

    async def work() -> None:
        try:
            began.set()
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            ended.append("ended")

    loop.post(work())
    assert began.wait(LIMIT_S)
    # Nobody but the loop knows of this work.
    gc.collect()
    in_thread(loop.close).result(LIMIT_S)
    assert ended == ["ended"]
    assert not loop._posted


def test_a_call_on_the_threads_own_loop_is_refused() -> None:
    loop = BackgroundLoop("test")
    try:
        with pytest.raises(HandleClosed, match="wait for itself"):
            in_thread(lambda: loop.run(lambda: loop.call(asyncio.sleep(0)))).result(LIMIT_S)
    finally:
        in_thread(loop.close).result(LIMIT_S)


def test_an_iteration_that_the_loops_thread_collects_as_garbage_is_closed() -> None:
    loop, closed = BackgroundLoop("test"), threading.Event()

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            for number in range(10_000):
                yield number
        finally:
            closed.set()

    def leave() -> None:
        iteration = loop.iterate(numbers)
        assert next(iteration) == 0
        cycle: list[Any] = [iteration]
        cycle.append(cycle)

    gc.collect()
    gc.disable()
    try:
        leave()
        in_thread(lambda: loop.run(gc.collect)).result(LIMIT_S)
        assert closed.wait(LIMIT_S)
    finally:
        gc.enable()
        in_thread(loop.close).result(LIMIT_S)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_call_in_a_forked_child_is_an_error_and_the_parent_goes_on() -> None:
    """The child has no thread that would answer, and waited for ever."""
    loop = BackgroundLoop("test")

    async def answer() -> int:
        return 7

    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            loop.call(answer())
            os.write(write, b"answered")
        except HandleClosed as error:
            loop.post(answer())
            loop.close()
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], LIMIT_S)
    said = os.read(read, 1000).decode() if ready else "nothing"
    os.close(read)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert said == (f"this connection was opened by process {os.getpid()}, and does not work in its fork {child}: open one in the child")
    assert loop.call(answer()) == 7
    loop.close()


class Slow(OpenOnLoop):
    """Something whose end takes until the test allows it."""

    def __init__(self) -> None:
        self.allowed, self.begun, self.ended = threading.Event(), threading.Event(), 0
        self.loop = BackgroundLoop()
        self._open(self.loop, self._scene)

    @asynccontextmanager
    async def _scene(self) -> AsyncIterator[None]:
        yield
        self.begun.set()
        await asyncio.get_running_loop().run_in_executor(None, self.allowed.wait)
        self.ended += 1


def test_a_second_thread_that_closes_does_not_end_the_loop_under_the_first() -> None:
    slow = Slow()
    first = threading.Thread(target=slow.close)
    first.start()
    assert slow.begun.wait(LIMIT_S)
    slow.close()
    assert slow.loop.call(asyncio.sleep(0, "runs")) == "runs"
    slow.allowed.set()
    first.join(LIMIT_S)
    assert slow.ended == 1
    with pytest.raises(HandleClosed):
        slow.loop.call(asyncio.sleep(0))
