"""A bound on a single callback: a callback that never waits would hang a simulation for good, since nothing returns to the loop."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from triplicate.sim.virtual_loop import SimulationStuck, VirtualLoop

CALLBACK_CPU_MAX_S = 5.0
"""Processor time, in seconds, after which one iteration of the loop is stopped, twice as much at most. Iterations take milliseconds."""

FRAMES_SHOWN = 4


class EndlessCallback(KeyboardInterrupt):
    """Raised inside the callback. A KeyboardInterrupt, since tasks and most error handlers let that pass."""


@contextmanager
def bounded_callbacks(loop: VirtualLoop) -> Iterator[None]:
    """Watch the loop while it runs. Does nothing outside of the main thread, where there are no signals.

    Raises:
        SimulationStuck: a callback did not end. The message says where.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    seen = -1

    def tick(_: int, frame: FrameType | None) -> None:
        nonlocal seen
        if loop.callbacks_run == seen:
            # The innermost frames last, as in a traceback.
            places = [f"{place.name} line {place.lineno}" for place in traceback.extract_stack(frame)[-FRAMES_SHOWN:]]
            raise EndlessCallback(" > ".join(places))
        seen = loop.callbacks_run

    before = signal.signal(signal.SIGVTALRM, tick)
    signal.setitimer(signal.ITIMER_VIRTUAL, CALLBACK_CPU_MAX_S, CALLBACK_CPU_MAX_S)
    try:
        yield
    except EndlessCallback as endless:
        raise SimulationStuck(f"at {loop.time():.6f} s a callback goes on without end: {endless}") from endless
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
