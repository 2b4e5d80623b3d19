"""Waiting in tests for a condition that another task, thread or process brings about.

A wait that reaches its limit fails and names the condition. The limits are for a machine that does much else; a test that measures how
fast something happens reads a clock.
"""

from __future__ import annotations

import asyncio
import linecache
import time
from collections.abc import Callable

LIMIT_S = 30.0
PLAY_LIMIT_S = 60.0
"""Limit of a whole test of a rig, so that a hang is a failure. It is longer than a wait, which names its condition."""
POLL_S = 0.02
"""Interval of the checks by `wait_until`."""
LOOP_POLL_S = 0.002
"""Interval of the checks by `eventually`."""


async def eventually(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait on the event loop until a condition holds. A failure shows the line that defines the condition."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while not condition():
        assert loop.time() < deadline, f"within {limit_s:g} s: {_text_of(condition)}"
        await asyncio.sleep(LOOP_POLL_S)


def wait_until(condition: Callable[[], bool], limit_s: float, awaited: str) -> None:
    """Block until a condition holds.

    Args:
        awaited: the condition in words, for the failure.
    """
    deadline = time.monotonic() + limit_s
    while True:
        checked_at = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < deadline, f"within {limit_s:g} s: {awaited}"
        # A condition that runs a command needs a processor, which the awaited processes need too.
        time.sleep(max(POLL_S, now - checked_at))


def _text_of(condition: Callable[[], bool]) -> str:
    code = getattr(condition, "__code__", None)
    return linecache.getline(code.co_filename, code.co_firstlineno).strip() if code is not None else repr(condition)
