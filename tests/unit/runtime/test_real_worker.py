"""The worker on the operating system: one thread, its order, its errors and its end."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests.waiting import LIMIT_S
from triplicate.errors import HandleClosed
from triplicate.runtime import real, real_host
from triplicate.runtime.real import RealWorker


def test_a_worker_runs_one_function_at_a_time_in_order_and_raises_where_it_is_awaited() -> None:
    async def body() -> None:
        worker = real_host("node").new_worker("work")
        order: list[int] = []
        names: list[str] = []

        def work(number: int) -> int:
            time.sleep(0.002)
            order.append(number)
            names.append(threading.current_thread().name)
            return number * 2

        waiting = [worker.run(work, number) for number in range(5)]
        assert [await answer for answer in waiting] == [0, 2, 4, 6, 8]
        assert order == [0, 1, 2, 3, 4]
        assert dict.fromkeys(names) == {"node/work": None}
        with pytest.raises(ZeroDivisionError):
            await worker.run(lambda: 1 // 0)
        with pytest.raises(RuntimeError):
            await worker.run(next, iter(()))
        await worker.close()
        await worker.close()
        with pytest.raises(HandleClosed):
            worker.run(work, 1)
        await real_host("node").new_worker("unused").close()

    asyncio.run(body())


def test_cancelling_the_wait_does_not_stop_a_workers_function() -> None:
    async def body() -> None:
        worker = real_host("node").new_worker("work")
        ran: list[int] = []
        release = threading.Event()
        blocked = asyncio.ensure_future(worker.run(release.wait, 5))
        late = asyncio.ensure_future(worker.run(ran.append, 1))
        await asyncio.sleep(0)
        blocked.cancel()
        late.cancel()
        release.set()
        await worker.close()
        assert ran == [1]

    asyncio.run(body())


def test_a_worker_whose_callers_do_not_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        monkeypatch.setattr(real, "QUEUED_MAXIMUM", 2)
        worker, may_end, runs = real_host("test").new_worker("w"), threading.Event(), threading.Event()

        def held() -> None:
            runs.set()
            may_end.wait(LIMIT_S)

        first = worker.run(held)
        await asyncio.to_thread(runs.wait, LIMIT_S)
        queued = [worker.run(threading.get_ident) for _ in range(2)]
        with pytest.raises(AssertionError, match="2 functions are queued, so a caller does not wait"):
            worker.run(threading.get_ident)
        may_end.set()
        await asyncio.gather(first, *queued)
        await worker.close()

    asyncio.run(body())


def test_no_thread_of_a_worker_is_left_when_its_close_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    serve = RealWorker._serve

    def late(worker: RealWorker, ended: asyncio.Future[None]) -> None:
        serve(worker, ended)
        time.sleep(0.05)  # The time between a thread's last result and its end, on a busy machine.

    monkeypatch.setattr(RealWorker, "_serve", late)

    async def body() -> None:
        worker = real_host("test").new_worker("late")
        assert await worker.run(lambda: 1) == 1
        assert [thread.name for thread in threading.enumerate() if "late" in thread.name]
        await worker.close()
        assert not [thread.name for thread in threading.enumerate() if "late" in thread.name]

    asyncio.run(body())
