"""An event loop in virtual time: nothing sleeps, and the same program always runs in the same order.

Callbacks run first come, first served. When none is ready the clock jumps to the next timer; timers of the same instant run in the order in
which they were made. There is no thread, selector, signal or executor, so nothing outside the program can interfere.

Every callback belongs to a *life*: one run of one simulated node, from its start to its end or crash. The life travels in the callback's
context, so everything that a node starts, directly or through asyncio's futures and tasks, carries it. `VirtualLoop.kill` ends a life as
SIGKILL ends a process: none of its callbacks runs again, no `finally` block is entered, and later wake-ups have no effect.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from asyncio import events as asyncio_events
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

if TYPE_CHECKING:
    # The type checker's abstract loop requires sockets, signals and processes. At run time those methods raise NotImplementedError, as a
    # simulation should.
    LoopInterface = asyncio.BaseEventLoop
else:
    LoopInterface = asyncio.AbstractEventLoop

STUCK_NAMES_MAX = 20
"""Waiting tasks named in a `SimulationStuck`, at most."""


INSTANT_CALLBACKS_MAX = 100_000
"""Bound on callbacks at one instant of virtual time. A program that exceeds it runs in circles; nothing else would ever end it."""

UNWIND_MAX = 100
"""Times a dead node's coroutine may wait again while it is unwound."""


class SimulationStuck(AssertionError):
    """The simulation cannot end: all tasks wait for one another, or the bound on callbacks or virtual time is reached."""


class HostCrashed(BaseException):
    """Raised inside a node's code when it uses a port after the node's crash, or when the crash happens during that call.

    A BaseException, since no handler of the node may catch it: the process that would handle it is gone.
    """


class Life:
    """One run of one node. `alive` turns false once, at its crash. While `paused`, its callbacks collect in `held`."""

    __slots__ = ("alive", "held", "loop_time", "name", "number", "paused")

    def __init__(self, name: str, number: int = 1, loop_time: Callable[[float], float] | None = None) -> None:
        """Args:
        loop_time: converts a moment of the node's monotonic clock into one of the loop. None: the two are the same.
        """
        self.name = name
        self.number = number
        self.alive = True
        self.paused = False
        self.held: list[VirtualHandle] = []
        self.loop_time = loop_time

    def check(self) -> None:
        """Raise `HostCrashed` when this life is over."""
        if not self.alive:
            raise HostCrashed(self.name)

    def __repr__(self) -> str:
        return f"<life {self.number} of {self.name}{'' if self.alive else ', over'}{', paused' if self.paused else ''}>"


LIFE: contextvars.ContextVar[Life | None] = contextvars.ContextVar("life", default=None)
"""The life to which the running callback belongs. None is the world itself (network, faults, checkers)."""


def context_of(life: Life | None) -> contextvars.Context:
    """A fresh context in which everything that starts belongs to `life`."""
    context = contextvars.copy_context()
    context.run(LIFE.set, life)
    return context


if TYPE_CHECKING:
    HandleInterface = asyncio.TimerHandle
else:
    # asyncio's own class carries ten fields that nothing here would fill in.
    HandleInterface = object


class VirtualHandle(HandleInterface):
    """Returned by `call_soon` and `call_at`. All fields are our own, so that nothing private of asyncio is relied on.

    The loop assigns the fields directly: a constructor would cost more than all of them.
    """

    __slots__ = ("__weakref__", "arguments", "callback", "due", "life", "surroundings", "void")

    callback: Callable[..., Any]
    arguments: tuple[Any, ...]
    surroundings: contextvars.Context
    life: Life | None
    due: float
    void: bool

    def cancel(self) -> None:
        self.void = True

    def cancelled(self) -> bool:
        return self.void

    def when(self) -> float:
        return self.due

    def __repr__(self) -> str:
        return f"<{getattr(self.callback, '__qualname__', self.callback)!s} at {self.due:.6f} of {self.life}>"


new_handle = VirtualHandle.__new__


class LivingFuture(asyncio.Future[Result]):
    """A future that knows the life that made it. An exception that is never retrieved is no fault when that life was killed."""

    __slots__ = ("life",)

    life: Life | None


class VirtualLoop(LoopInterface):
    """An event loop whose time moves only when nothing is ready.

    Args:
        callbacks_max: bound on callbacks run. Reaching it raises `SimulationStuck`, which names the busiest.
        time_max_s: bound on virtual time in seconds from 0. Reaching it raises `SimulationStuck`.
    """

    def __init__(self, *, callbacks_max: int = 20_000_000, time_max_s: float = 100_000.0) -> None:
        self.callbacks_max = callbacks_max
        self.time_max_s = time_max_s
        self.callbacks_run = 0
        self.failures: list[dict[str, Any]] = []
        """Contexts that asyncio's exception handler would have logged. A run with failures is a failed run."""
        self._now = 0.0
        self._ready: deque[VirtualHandle] = deque()
        self._timers: list[tuple[float, int, VirtualHandle]] = []
        self._sequence = 0
        self._tasks: dict[asyncio.Task[Any], Life | None] = {}
        self._tasks_checked_at = 64
        self._frozen: list[asyncio.Task[Any]] = []
        self._paused: list[Life] = []
        self._running = False
        self._stopping = False
        self._closed = False

    # Time and callbacks.

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def call_soon(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if context is None:
            context = contextvars.copy_context()
        life = context.get(LIFE)
        handle = new_handle(VirtualHandle)
        handle.callback, handle.arguments, handle.surroundings, handle.life, handle.due = callback, args, context, life, self._now
        if life is None or life.alive:
            handle.void = False
            self._ready.append(handle)
        else:
            handle.void = True
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Arguments], object], *args: *Arguments, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        if context is None:
            context = contextvars.copy_context()
        life = context.get(LIFE)
        handle = new_handle(VirtualHandle)
        handle.callback, handle.arguments, handle.surroundings, handle.life, handle.due = callback, args, context, life, when
        if life is None or life.alive:
            handle.void = False
            self._sequence = sequence = self._sequence + 1
            heappush(self._timers, (when, sequence, handle))
        else:
            handle.void = True
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Arguments], object], *args: *Arguments, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        # The body of `call_at`, repeated: most timers are made here.
        if context is None:
            context = contextvars.copy_context()
        life = context.get(LIFE)
        when = self._now + delay
        handle = new_handle(VirtualHandle)
        handle.callback, handle.arguments, handle.surroundings, handle.life, handle.due = callback, args, context, life, when
        if life is None or life.alive:
            handle.void = False
            self._sequence = sequence = self._sequence + 1
            heappush(self._timers, (when, sequence, handle))
        else:
            handle.void = True
        return handle

    # Futures and tasks.

    def create_future(self) -> asyncio.Future[Any]:
        future: LivingFuture[Any] = LivingFuture(loop=self)
        future.life = LIFE.get()
        return future

    def create_task(
        self, coro: Coroutine[Any, Any, Result] | Any, *, name: object = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Result]:
        return self.start_task(coro, name=None if name is None else str(name), context=context)

    def start_task(
        self, coroutine: Coroutine[Any, Any, Result], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Result]:
        """Start a task: asyncio's `create_task`, under the name that the world uses."""
        if self._closed:
            # Dead nodes' coroutines are being unwound: a task started now would never run.
            coroutine.close()
            raise RuntimeError("the loop is closed")
        life = LIFE.get() if context is None else context.get(LIFE)
        if life is not None and not life.alive:
            coroutine.close()
            raise HostCrashed(life.name)
        task: asyncio.Task[Result] = asyncio.Task(coroutine, loop=self, name=name, context=context)
        self._tasks[task] = life
        if len(self._tasks) >= self._tasks_checked_at:
            self._tasks = {task: life for task, life in self._tasks.items() if not task.done()}
            self._tasks_checked_at = max(64, 2 * len(self._tasks))
        return task

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """Unfinished tasks of living nodes and of the world, in the order in which they were started."""
        return [task for task, life in self._tasks.items() if not task.done() and (life is None or life.alive)]

    def pending_timers(self) -> list[VirtualHandle]:
        """Timers of living nodes that have neither run nor been cancelled, by time. Timers of the world itself are left out."""
        handles = [handle for life in self._paused for handle in life.held]
        handles += [handle for _, _, handle in sorted(self._timers, key=lambda item: item[:2])]
        return [handle for handle in handles if not handle.void and handle.life is not None and handle.life.alive]

    def kill(self, life: Life) -> None:
        """End a life at once. If the running callback belongs to that life, it is the last one."""
        life.alive = False
        if life.paused:
            self.resume(life)
        for handle in self._ready:
            if handle.life is life:
                handle.void = True
        for _, _, handle in self._timers:
            if handle.life is life:
                handle.void = True
        for task, owner in self._tasks.items():
            if owner is life and not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # It is meant to stay pending for ever.
                self._frozen.append(task)

    def pause(self, life: Life) -> None:
        """Run no callbacks of a life until `resume`, as SIGSTOP stops a process. The running callback finishes."""
        if life.alive and not life.paused:
            life.paused = True
            self._paused.append(life)

    def resume(self, life: Life) -> None:
        """Continue a paused life. Callbacks that came due meanwhile run now, in the order in which they were due."""
        if life.paused:
            life.paused = False
            self._paused.remove(life)
            self._ready.extend(life.held)
            life.held.clear()

    # Running.

    def run_until_complete(self, future: Awaitable[Result] | Any) -> Result:
        if self._closed:
            raise RuntimeError("the loop is closed")
        main: asyncio.Future[Result] | Any = self.start_task(future, name="main") if asyncio.iscoroutine(future) else future
        self._run(main)
        result: Result = main.result()
        return result

    def run_forever(self) -> None:
        """Run until `stop`, or until nothing is left to do."""
        self._run(None)

    def stop(self) -> None:
        self._stopping = True

    def _run(self, main: asyncio.Future[Any] | None) -> None:
        if self._running or asyncio_events._get_running_loop() is not None:
            raise RuntimeError("a loop is running already")
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=self._finish_generator)
        asyncio_events._set_running_loop(self)
        self._running = True
        self._stopping = False
        try:
            if not self._run_callbacks(main) and main is not None:
                raise SimulationStuck(f"at {self._now:.6f} s nothing can happen any more; waiting: {self.describe_waiting()}")
        finally:
            self._running = False
            asyncio_events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _run_callbacks(self, main: asyncio.Future[Any] | None) -> bool:
        """Run the loop: move due timers, then run the callbacks that are ready (not those that they make ready). False when nothing is
        left.

        Most callbacks of a simulation pass through here one or two at a time, hence the local names.
        """
        ready, timers = self._ready, self._timers
        append, popleft = ready.append, ready.popleft
        limit = min(self.callbacks_max, self.callbacks_run + INSTANT_CALLBACKS_MAX)
        while not self._stopping and (main is None or not main.done()):
            if not ready:
                while timers and timers[0][2].void:
                    heappop(timers)
                if not timers:
                    return False
                if timers[0][0] > self._now:
                    self._now = timers[0][0]
                    if self._now > self.time_max_s:
                        raise SimulationStuck(f"virtual time passed {self.time_max_s} s; waiting: {self.describe_waiting()}")
                    limit = min(self.callbacks_max, self.callbacks_run + INSTANT_CALLBACKS_MAX)
            now = self._now
            while timers and timers[0][0] <= now:
                append(heappop(timers)[2])
            count = len(ready)
            self.callbacks_run += count
            if self.callbacks_run > limit:
                bound = "" if limit == self.callbacks_max else " in this instant"
                raise SimulationStuck(f"{self.callbacks_run} callbacks at {now:.6f} s and no end{bound}; busiest: {self._describe_busy()}")
            for _ in range(count):
                handle = popleft()
                if handle.void:
                    continue
                life = handle.life
                if life is not None and life.paused:
                    life.held.append(handle)
                    continue
                try:
                    handle.surroundings.run(handle.callback, *handle.arguments)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except HostCrashed:
                    pass  # The host crashed during this callback: no code of it is left to handle that.
                except BaseException as error:  # noqa: BLE001 - asyncio's contract: a callback's error goes to the handler, not to the loop
                    self.call_exception_handler({"message": f"exception in {handle!r}", "exception": error})
        return True

    def _finish_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self._closed:
            self.call_soon(self.start_task, generator.aclose())

    # Errors and diagnosis.

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the context in `failures`, unless it concerns a life that is over."""
        if isinstance(context.get("exception"), HostCrashed):
            return
        subject = context.get("task") or context.get("future")
        life = self._tasks.get(subject) if isinstance(subject, asyncio.Task) else getattr(subject, "life", None)
        if life is None or life.alive:
            self.failures.append(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def describe_waiting(self) -> str:
        """The pending tasks, each with the line at which it waits."""
        pending = self.pending_tasks()
        paused = {task: life is not None and life.paused for task, life in self._tasks.items()}
        text = "; ".join(describe_task(task, paused=paused[task]) for task in pending[:STUCK_NAMES_MAX])
        return text + (f"; and {len(pending) - STUCK_NAMES_MAX} more" if len(pending) > STUCK_NAMES_MAX else "") or "no task"

    def _describe_busy(self) -> str:
        names = Counter(describe_callback(handle.callback) for handle in self._ready)
        return ", ".join(f"{name} ({count})" for name, count in sorted(names.items(), key=lambda item: (-item[1], item[0]))[:5])

    # Other methods of asyncio's interface.

    # Called for each future and task that is made, so it is an object that C code calls without running Python; `bool()` is False.
    get_debug = staticmethod(bool)

    def set_debug(self, enabled: bool) -> None:
        if enabled:
            raise NotImplementedError("asyncio's debug mode reads the real clock")

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def run_in_executor(self, executor: Any, func: Callable[[*Arguments], Result], *args: *Arguments) -> asyncio.Future[Result]:
        raise NotImplementedError("threads are not simulated; use the host's workers")

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: an abandoned generator is closed as soon as it is dropped."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: there is no executor."""

    def close(self) -> None:
        """Drop everything. Killed coroutines are unwound here, in order; each of their ports is dead."""
        if self._running:
            raise RuntimeError("the loop is running")
        if self._closed:
            return
        self._closed = True
        asyncio_events._set_running_loop(self)
        complain, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            for task in self._frozen:
                coroutine: Any = task.get_coro()
                # Errors in a dead node's `finally` blocks are ignored: the process they belong to ended long ago. A block that waits on its
                # way out is thrown out of that wait as well, repeatedly, until all blocks have been left.
                for _ in range(UNWIND_MAX):
                    with suppress(Exception, HostCrashed, asyncio.CancelledError):
                        coroutine.close()
                    if getattr(coroutine, "cr_frame", None) is None:
                        break
            self._frozen.clear()
        finally:
            sys.unraisablehook = complain
            asyncio_events._set_running_loop(None)
        self._ready.clear()
        self._timers.clear()


def describe_callback(callback: Callable[..., Any]) -> str:
    """Name of a callback; for a task's step, the task's name."""
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return f"task {owner.get_name()}"
    return getattr(callback, "__qualname__", None) or type(callback).__name__


def describe_task(task: asyncio.Task[Any], *, paused: bool = False) -> str:
    """Name of a task and the innermost line of our own code at which it waits, or would wait if its node were not paused."""
    place = "not started"
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            place = f"{frame.f_code.co_qualname} line {frame.f_lineno}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None) or getattr(awaited, "ag_await", None)
    return f"{task.get_name()}{' (paused)' if paused else ''} in {place}"
