"""A plugin of pytest that makes event loops late, so that tests which depend on a quick machine fail: ``pytest -p tests.jitter``.

On a busy machine a thread's result reaches its loop late, a timer fires late, and a loop stands still for a moment. The plugin does each of
these by chance, in every real event loop of the test's own process. Everything that it does is legitimate: no timer fires early, the
callbacks of one thread stay in order, and nothing is lost. A test that fails is one that assumes how fast something happens.

The chances of each test depend on ``JITTER_SEED`` (0) and on the test's name alone, so a failure can be repeated as far as threads allow.
``JITTER_SHARE`` (0.1) is the share of results and timers that are late, ``JITTER_LONGEST_S`` (0.05) the maximum delay in seconds.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any

import pytest

SHARE = float(os.environ.get("JITTER_SHARE", "0.1"))
LONGEST_S = float(os.environ.get("JITTER_LONGEST_S", "0.05"))
SEED = os.environ.get("JITTER_SEED", "0")
STALLS = 0.1
"""Stalls of a loop, per late timer: a stall holds up everything at once, and hides the order that single delays show."""
AFTER_S = 1e-6
"""Distance of two callbacks of one thread that are due at the same time."""


class Chances:
    """How late the next callback is. Used from all threads of a test."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        self._due: dict[tuple[int, int], float] = {}
        """When the last callback that a thread handed to a loop is due, by the ids of both."""
        self._lock = threading.Lock()

    def start(self, test: str) -> None:
        with self._lock:
            self._random = random.Random(f"{SEED}:{test}")
            self._due.clear()

    def delay_s(self, share: float = SHARE) -> float:
        with self._lock:
            return self._random.uniform(0, LONGEST_S) if self._random.random() < share else 0.0

    def due(self, loop: asyncio.AbstractEventLoop) -> float:
        """When a callback of this thread runs, in the loop's time: never before an earlier one of the same thread."""
        delay_s = self.delay_s()
        key = (id(loop), threading.get_ident())
        with self._lock:
            due = max(loop.time() + delay_s, self._due.get(key, 0.0) + AFTER_S)
            self._due[key] = due
            return due


CHANCES = Chances()


def install(loops: type[asyncio.BaseEventLoop]) -> None:
    """Replace the methods of a class of event loops by late ones."""
    call_soon_threadsafe, call_at, run_once = loops.call_soon_threadsafe, loops.call_at, loops._run_once  # type: ignore[attr-defined]

    def late_threadsafe(
        loop: asyncio.BaseEventLoop, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        due = CHANCES.due(loop)
        if due <= loop.time() + 2 * AFTER_S:
            handle: asyncio.Handle = call_soon_threadsafe(loop, callback, *args, context=context)
            return handle

        def deliver() -> None:
            call_at(loop, due, callback, *args, context=context)

        late: asyncio.Handle = call_soon_threadsafe(loop, deliver)
        return late

    def late_at(
        loop: asyncio.BaseEventLoop, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer: asyncio.TimerHandle = call_at(loop, when + CHANCES.delay_s(), callback, *args, context=context)
        return timer

    def stalling_once(loop: asyncio.BaseEventLoop) -> None:
        delay_s = CHANCES.delay_s(SHARE * STALLS)
        if delay_s:
            time.sleep(delay_s)
        run_once(loop)

    loops.call_soon_threadsafe = late_threadsafe  # type: ignore[assignment]
    loops.call_at = late_at  # type: ignore[assignment]
    loops._run_once = stalling_once  # type: ignore[attr-defined]


def pytest_configure(config: pytest.Config) -> None:
    install(asyncio.BaseEventLoop)


def pytest_runtest_logstart(nodeid: str) -> None:
    CHANCES.start(nodeid)
