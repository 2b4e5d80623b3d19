"""A thread that notices when an event loop stands still, and where it stood.

While a callback runs, nothing else of its loop does: no connection is served, and no heartbeat is sent. The thread asks the loop for an
answer a few times a second. When none comes, it reads the stack of the loop's thread, which a tool on the loop itself cannot do.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from pathlib import Path
from types import FrameType

from triplicate.runtime.metrics import Metrics
from triplicate.runtime.ports import Trace

INTERVAL_S = 0.2
"""Between an answer and the next question: a stall of `INTERVAL_S + STALL_S` is always noticed, a shorter one by chance."""
STALL_S = 0.05
"""An answer that takes longer is a stall."""
REPORT_S = 1.0
"""A stall that has lasted this long is reported while it lasts, and again when it has lasted four times as long as then."""
SHORT_INTERVAL_S = 60.0
"""Shorter stalls are reported once in this time, and when one is twice as long as the last that was reported."""
FRAMES_SHOWN = 5
THREADS_SHOWN = 4
SECONDS_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
WAITING = frozenset({"threading.py", "queue.py", "selectors.py", "thread.py", "loop_watch.py"})
"""Modules in which a thread waits and does not hold the interpreter."""


class LoopWatch:
    """Belongs to the running loop of the thread that makes it.

    Args:
        trace: called by the watching thread with ``process.loop_stalled``, or ``process.loop_slow`` below `REPORT_S`. Facts: `seconds` so
            far, `where` (the innermost functions of the loop's thread, and those of other threads if they kept this one from running,
            too), `ended` (whether the loop runs again).
    """

    def __init__(self, trace: Trace, metrics: Metrics) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._trace = trace
        self._stalls = metrics.distribution(
            "triplicate_loop_stall_seconds",
            "Times for which a callback kept the event loop from all else, in seconds; short ones are noticed by chance.",
            buckets=SECONDS_BUCKETS,
        )
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop-watch", daemon=True)
        self.delay_s = 0.0
        """Time that the loop took for its last answer, seconds."""
        self._reported_at = -SHORT_INTERVAL_S
        self._reported_s = 0.0
        """The last report of a stall below `REPORT_S`."""

    def __enter__(self) -> LoopWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # The thread may wait for an answer of this loop, so the loop does not wait for the thread.
        self._end.set()

    def _run(self) -> None:
        while not self._end.wait(INTERVAL_S):
            answered = threading.Event()
            asked = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # The loop is closed.
                return
            if not answered.wait(STALL_S):
                self._follow(asked, answered)
            self.delay_s = time.monotonic() - asked

    def _follow(self, asked: float, answered: threading.Event) -> None:
        """Report a stall that began at `asked`, until its end."""
        # This thread woke late, too: another one may hold the interpreter.
        where = self._where(others=time.monotonic() - asked > 2 * STALL_S)
        report_s = REPORT_S
        while not answered.wait(max(0.0, asked + report_s - time.monotonic())):
            if self._end.is_set():
                return
            where = self._where(others=True)
            self._trace("process.loop_stalled", seconds=round(time.monotonic() - asked, 3), where=where, ended=False)
            report_s *= 4
        now = time.monotonic()
        seconds = now - asked
        self._stalls.observe(seconds)
        if seconds >= REPORT_S:
            self._trace("process.loop_stalled", seconds=round(seconds, 3), where=where, ended=True)
        elif now - self._reported_at >= SHORT_INTERVAL_S or seconds >= 2 * self._reported_s:
            self._reported_at, self._reported_s = now, seconds
            self._trace("process.loop_slow", seconds=round(seconds, 3), where=where, ended=True)

    def _where(self, *, others: bool) -> str:
        frames = _other_frames()
        shown = [_stack(frames.get(self._watched), FRAMES_SHOWN)]
        if others:
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            running = [(names.get(ident, "?"), frame) for ident, frame in frames.items() if ident != self._watched]
            busy = [f"{name}: {_stack(frame, 1)}" for name, frame in running if Path(frame.f_code.co_filename).name not in WAITING]
            shown += busy[:THREADS_SHOWN]
        return "; ".join(shown)


def _other_frames() -> dict[int, FrameType]:
    """The innermost frame of each other thread.

    This thread's own frame would refer to itself by this dictionary. Such a cycle keeps the frames of all threads, with all that their
    variables refer to, until the garbage collector comes, and servers let it come seldom.
    """
    frames = sys._current_frames()
    del frames[threading.get_ident()]
    return frames


def _stack(frame: FrameType | None, count: int) -> str:
    """The innermost functions, the innermost last."""
    if frame is None:
        return "the thread has ended"
    places = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=count, lookup_lines=False)
    return " > ".join(f"{Path(place.filename).name}:{place.lineno} {place.name}" for place in reversed(places))
