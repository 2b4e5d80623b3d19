"""Task scopes: the only place in Triplicate that creates tasks, waits with a time limit, or delays a cancellation.

`asyncio.TaskGroup` cancels its children in the order of a set, which differs from run to run. A `TaskScope` keeps them in a dict and
cancels them in the order in which they were spawned, so that a seed of the simulator determines the run.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, TypeVar

from triplicate.errors import ArgumentError, HandleClosed
from triplicate.runtime.oneshot import resolve
from triplicate.runtime.ports import Clock

Item = TypeVar("Item")
Result = TypeVar("Result")
Limit = TypeVar("Limit", float, float | None)


class TaskScope:
    """Owns tasks: none outlives the scope, none is garbage-collected while it runs, and no failure is lost.

    Two ways to use it:

    - ``async with TaskScope("name") as scope``: leaving the block waits for the children; an error in the block or in a child
      cancels the others and is raised.
    - as a member of something long-lived: `spawn` at any time, `aclose` at the end. `aclose` cancels the children, waits for them,
      and raises the first failure unless `on_failure` was given it.

    Invariants: children are cancelled in the order of spawning; a child that fails cancels its siblings; the first failure is
    raised (or given to `on_failure`) once, and later ones are attached to it as notes.
    """

    def __init__(self, name: str, *, on_failure: Callable[[BaseException], None] | None = None) -> None:
        """
        Args:
            name: prefix of the tasks' names.
            on_failure: called on the loop with the first failure of a child; it is then not raised from `aclose`.
        """
        self.name = name
        self._on_failure = on_failure
        self._children: dict[str, asyncio.Task[Any]] = {}
        self._numbers: dict[str, tuple[int, int]] = {}
        """By name without number: the last number assigned, and the number of living children; dropped with the last child."""
        self._failure: BaseException | None = None
        self._failure_raised = False
        self._closing = False
        self._parent: asyncio.Task[Any] | None = None
        self._parent_cancelled_by_us = False
        self._cancellations_at_entry = 0

    @property
    def tasks(self) -> dict[str, asyncio.Task[Any]]:
        """The children that have not ended, by name, in the order of spawning."""
        return dict(self._children)

    @property
    def closing(self) -> bool:
        """Whether the scope accepts no more children: it was closed or cancelled, or a child failed."""
        return self._closing

    @property
    def failure(self) -> BaseException | None:
        """The first failure of a child, if any."""
        return self._failure

    def spawn(self, coroutine: Coroutine[Any, Any, Result], *, name: str) -> asyncio.Task[Result]:
        """Start a child.

        Args:
            name: what it does; a second child of the same name gets a number.

        Raises:
            HandleClosed: the scope is closing; the coroutine is closed unstarted.
        """
        if self._closing:
            coroutine.close()
            raise HandleClosed(f"scope {self.name} is closed and starts no {name}")
        count, living = self._numbers.get(name, (0, 0))
        count += 1
        self._numbers[name] = count, living + 1
        unique = name if count == 1 else f"{name}-{count}"
        task = asyncio.get_running_loop().create_task(coroutine, name=f"{self.name}/{unique}")
        self._children[unique] = task
        task.add_done_callback(lambda ended: self._ended(name, unique, ended))
        return task

    def cancel(self) -> None:
        """Accept no more children, and cancel the running ones in the order of spawning. Does not wait."""
        self._closing = True
        current = _current_task()
        for task in list(self._children.values()):
            if task is not current:
                task.cancel()

    async def aclose(self) -> None:
        """Cancel the children, wait until all have ended, and raise the first failure not yet reported. Idempotent.

        A cancellation of the caller is raised after the children have ended. A child may call it: it is itself neither cancelled
        nor waited for.
        """
        self.cancel()
        interrupted = await self._wait_children()
        if interrupted is not None:
            raise interrupted
        if self._on_failure is None:
            self._raise_failure()

    async def __aenter__(self) -> TaskScope:
        self._parent = asyncio.current_task()
        assert self._parent is not None, "a scope is entered in a task"
        self._cancellations_at_entry = self._parent.cancelling()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        parent, self._parent = self._parent, None
        assert parent is not None
        if error is not None:
            self.cancel()
        await self._wait_children()
        self._closing = True
        if self._parent_cancelled_by_us:
            # The scope's own cancellation of the block must not look like one from outside, so it is uncounted here.
            self._parent_cancelled_by_us = False
            parent.uncancel()
        if parent.cancelling() > self._cancellations_at_entry:
            cancelled = error if isinstance(error, asyncio.CancelledError) else asyncio.CancelledError()
            self._note_failure_on(cancelled)
            if cancelled is not error:
                raise cancelled
        elif error is None or isinstance(error, asyncio.CancelledError):
            self._raise_failure()
        else:
            self._note_failure_on(error)

    def _ended(self, base: str, name: str, task: asyncio.Task[Any]) -> None:
        del self._children[name]
        count, living = self._numbers[base]
        if living > 1:
            self._numbers[base] = count, living - 1
        else:
            del self._numbers[base]
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if self._failure is not None:
            self._failure.add_note(f"{self.name}/{name} failed as well: {error!r}")
            return
        self._failure = error
        self.cancel()
        if self._parent is not None:
            self._parent_cancelled_by_us = True
            self._parent.cancel()
        if self._on_failure is not None:
            self._on_failure(error)

    async def _wait_children(self) -> asyncio.CancelledError | None:
        """Wait until no child but the caller itself is left; a cancellation that arrives meanwhile cancels them and is returned."""
        interrupted: asyncio.CancelledError | None = None
        current = _current_task()
        while True:
            task = next((task for task in self._children.values() if task is not current), None)
            if task is None:
                return interrupted
            error = await _wait_ended(task)
            if error is not None:
                interrupted = error
                self.cancel()

    def _raise_failure(self) -> None:
        if self._failure is not None and not self._failure_raised:
            self._failure_raised = True
            raise self._failure

    def _note_failure_on(self, error: BaseException) -> None:
        if self._failure is not None and self._failure is not error and not self._failure_raised:
            self._failure_raised = True
            error.add_note(f"a task of {self.name} failed as well: {self._failure!r}")


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None  # `cancel` may be called from a callback, outside of any task.


async def _wait_ended(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    """Wait until a task has ended in any way. A cancellation of this wait is returned and not raised; the caller raises it."""
    ended = asyncio.get_running_loop().create_future()

    def wake(_: asyncio.Task[Any]) -> None:
        resolve(ended, None)

    task.add_done_callback(wake)
    try:
        await ended
    except asyncio.CancelledError as error:
        return error
    finally:
        task.remove_done_callback(wake)
    return None


async def shielded(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a short coroutine to its end even if the caller is cancelled, then raise the cancellation.

    For clean-up and for steps that must not be interrupted. The coroutine must limit its own time.

    Raises:
        asyncio.CancelledError: the caller was cancelled meanwhile; a failure of the work is its cause.
    """
    task = asyncio.get_running_loop().create_task(coroutine)
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        error = await _wait_ended(task)
        interrupted = interrupted or error
    if interrupted is not None:
        raise interrupted from (None if task.cancelled() else task.exception())
    return task.result()


async def map_bounded(call: Callable[[Item], Coroutine[Any, Any, Result]], items: Sequence[Item], *, most: int, name: str) -> list[Result]:
    """Call a function for each item, at most `most` calls at a time. Returns the results in the order of the items.

    The first failure cancels the other calls and is raised.
    """
    results: dict[int, Result] = {}
    waiting = iter(enumerate(items))

    async def work() -> None:
        for place, item in waiting:
            results[place] = await call(item)

    async with TaskScope(name) as scope:
        for _ in range(min(most, len(items))):
            scope.spawn(work(), name="work")
    return [results[place] for place in range(len(items))]


async def first_of(coroutines: Sequence[Coroutine[Any, Any, Result]], *, name: str) -> tuple[int, Result]:
    """Run several coroutines and return (index, result) of the one that ends first. The others are cancelled, in order.

    If several end in the same iteration of the loop, the first in the sequence wins. A failure before that is raised.
    """
    won = asyncio.get_running_loop().create_future()

    async def run(index: int, coroutine: Coroutine[Any, Any, Result]) -> None:
        result = await coroutine
        resolve(won, (index, result))

    async with TaskScope(name) as scope:
        for index, coroutine in enumerate(coroutines):
            scope.spawn(run(index, coroutine), name=str(index))
        answer: tuple[int, Result] = await won
        scope.cancel()
    return answer


def timeout_at(when: float | None) -> asyncio.Timeout:
    """``async with timeout_at(deadline)``: TimeoutError when `Clock.monotonic` reaches `when`; None waits for ever."""
    return asyncio.timeout_at(when)


def deadline_after(clock: Clock, timeout_s: Limit) -> Limit:
    """The time `timeout_s` from now; None for None. Deadlines are passed down, so that nested timeouts do not add up.

    Raises:
        ArgumentError: it is NaN, whose timer would leave the loop's other timers out of order.
    """
    if timeout_s is not None and math.isnan(timeout_s):
        raise ArgumentError("a time limit is a number of seconds, not nan")
    return None if timeout_s is None else clock.monotonic() + timeout_s


async def sleep_until(clock: Clock, when: float) -> None:
    """Return when `Clock.monotonic` has reached `when`; yields to the loop once even if it has."""
    if when <= clock.monotonic():
        await asyncio.sleep(0)
        return
    woken = asyncio.get_running_loop().create_future()

    def wake() -> None:
        resolve(woken, None)

    timer = clock.call_at(when, wake)
    try:
        await woken
    finally:
        timer.cancel()


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait `seconds` by the clock."""
    await sleep_until(clock, clock.monotonic() + seconds)
