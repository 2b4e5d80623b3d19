"""Parts that the clients of benchmarks share: the load of appends, one appender per place in the window, and the commands of a client."""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from triplicate.errors import TriplicateError

WARM_UP_S = 0.5
Number = TypeVar("Number", int, float)


def percentile(ordered: Sequence[Number], share: float) -> Number:
    """The percentile by nearest rank: the smallest value that at least this share does not exceed. `ordered` ascends and is not empty."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop if it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


async def serve_commands(run: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
    """Read one JSON object per line from standard input, and answer each with ``{"ok": …}`` or ``{"error": …}``."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            answer: dict[str, Any] = {"ok": await run(json.loads(line))}
        except (TriplicateError, TimeoutError, ExceptionGroup) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


async def drive(append: Callable[[bytes], Awaitable[int]], size: int, window: int, seconds: float) -> dict[str, float]:
    """Append payloads of `size` bytes for some seconds; return the figures without the warm-up.

    Returns:
        appends, seconds, appends_per_s, p50_ms, p99_ms, and the CPU seconds of this process.
    """
    payload = os.urandom(size)
    latencies: list[float] = []
    clock = time.perf_counter
    stop_at = clock() + WARM_UP_S

    async def appender() -> None:
        while True:
            begun = clock()
            if begun >= stop_at:
                return
            await append(payload)
            latencies.append(clock() - begun)

    await _run_all([appender() for _ in range(window)])
    latencies.clear()
    begun, cpu = clock(), time.process_time()
    stop_at = begun + seconds
    await _run_all([appender() for _ in range(window)])
    took, cpu = clock() - begun, time.process_time() - cpu
    latencies.sort()
    count = len(latencies)
    return {
        "appends": count,
        "seconds": took,
        "appends_per_s": count / took,
        "p50_ms": 1000 * percentile(latencies, 0.5),
        "p99_ms": 1000 * percentile(latencies, 0.99),
        "client_cpu_s": cpu,
    }


async def _run_all(coroutines: list[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for coroutine in coroutines:
            group.create_task(coroutine)
