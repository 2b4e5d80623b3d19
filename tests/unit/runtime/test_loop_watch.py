"""A loop that stands still is noticed by a thread, which names the place. The thread waits in real time; no test expects it to be quick."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
import weakref
from typing import Any

from tests.waiting import LIMIT_S, eventually
from triplicate.runtime import LoopWatch, Metrics
from triplicate.runtime.loop_watch import INTERVAL_S, REPORT_S, STALL_S


class Told:
    """The traces of a watch."""

    def __init__(self) -> None:
        self.facts: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, kind: str, /, **facts: object) -> None:
        self.facts.append((kind, facts))

    def of(self, place: str) -> list[tuple[str, dict[str, Any]]]:
        """Those that name a function."""
        return [(kind, facts) for kind, facts in self.facts if place in facts["where"]]


def held_until(done: threading.Event) -> None:
    """Keeps the loop, and not the interpreter."""
    assert done.wait(LIMIT_S)


def hold_interpreter(until: float) -> None:
    while time.monotonic() < until:
        sorted(range(1_000_000), key=lambda number: -number)


def test_a_callback_that_keeps_the_loop_is_reported_with_its_place_while_it_lasts() -> None:
    told, released = Told(), threading.Event()

    def trace(kind: str, /, **facts: object) -> None:
        told(kind, **facts)
        if not facts["ended"]:
            released.set()

    async def body() -> None:
        metrics = Metrics()
        with LoopWatch(trace, metrics) as watch:
            held_until(released)
            await eventually(lambda: any(facts["ended"] for _, facts in told.of("held_until")))
            assert watch.delay_s >= 0.0
        assert b'triplicate_loop_stall_seconds_bucket{le="0.5"} 0.0' in metrics.expose()

    asyncio.run(body())
    begun, *_, ended = told.of("held_until")
    assert begun[0] == ended[0] == "process.loop_stalled"
    assert "test_loop_watch.py" in begun[1]["where"]
    assert REPORT_S <= begun[1]["seconds"] <= ended[1]["seconds"]


def test_a_short_stall_is_reported_at_another_level_and_repetitions_of_it_are_not() -> None:
    told = Told()

    async def body() -> None:
        metrics = Metrics()
        with LoopWatch(told, metrics):
            for _ in range(3):
                seen = metrics.expose()
                for _ in range(100):
                    if metrics.expose() != seen:
                        break
                    hold_interpreter(time.monotonic() + 3 * STALL_S)
                    await asyncio.sleep(0)

    asyncio.run(body())
    # On a slow machine they may last longer than they should.
    short = [facts["seconds"] for kind, facts in told.facts if kind == "process.loop_slow"]
    assert len(short) + sum(kind == "process.loop_stalled" for kind, _ in told.facts) >= 1
    assert all(after >= 2 * before for before, after in itertools.pairwise(short))


def test_a_loop_that_runs_answers_and_the_end_of_the_watch_ends_its_thread() -> None:
    async def body() -> LoopWatch:
        with LoopWatch(Told(), Metrics()) as watch:
            await eventually(lambda: watch.delay_s > 0.0)
        return watch

    watch = asyncio.run(body())
    watch._thread.join(LIMIT_S)
    assert not watch._thread.is_alive()


def test_the_report_of_a_stall_keeps_nothing_of_what_ran() -> None:
    class Large:
        """Stands for what a stalled callback has in its variables."""

    told, kept = Told(), list[weakref.ref[Large]]()

    def hold_large() -> None:
        large = Large()
        kept.append(weakref.ref(large))
        time.sleep(2 * (INTERVAL_S + STALL_S))

    async def body() -> None:
        with LoopWatch(told, Metrics()):
            hold_large()
            await eventually(lambda: bool(told.of("hold_large")))
            await eventually(lambda: kept[0]() is None)

    gc.disable()
    try:
        asyncio.run(body())
    finally:
        gc.enable()
