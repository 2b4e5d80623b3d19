"""Running a coroutine at once, without a task, as far as it need not wait.

A task begins in the next turn of the event loop, and each task that waits costs a further turn. A server answers most messages without
any wait. `start_eagerly` therefore runs the coroutine up to its first wait in the caller, and makes a task only for the rest.

A task costs several times what a callback of a future costs. `EagerWork` therefore waits for a `TasklessFuture` by a callback, and makes a
task only where its coroutine waits for anything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

Result = TypeVar("Result")
Spawn = Callable[[Coroutine[Any, Any, Result]], "asyncio.Task[Result]"]


def start_eagerly(work: Coroutine[Any, Any, Result], spawn: Spawn[Result]) -> asyncio.Task[Result] | None:
    """Run a coroutine up to its first wait; a task runs the rest.

    The first part belongs to no task of its own: `asyncio.current_task` is the caller's, or None in a callback of the loop. Code that needs
    a task, such as ``async with asyncio.timeout``, awaits `own_task` before.

    Args:
        work: the coroutine; it has not been started.
        spawn: makes the task, for example ``TaskScope.spawn``. Called at most once.

    Returns:
        The task of the rest, or None where the coroutine has ended. Its result is then lost.

    Raises:
        BaseException: raised by the coroutine before its first wait.
    """
    try:
        waited_for = work.send(None)
    except StopIteration:
        return None
    # A bare yield, as of ``asyncio.sleep(0)``, is None: the first step of the task is one turn of the loop.
    if waited_for is None:
        return spawn(work)
    return spawn(_Rest(work, waited_for))


class TasklessFuture(asyncio.Future[Result]):
    """A future for which `EagerWork` waits without a task. Elsewhere it is like any other future."""

    __slots__ = ()


class EagerWork:
    """Runs coroutines, one at a time: at once up to the first wait, after waits for a `TasklessFuture` in callbacks, the rest in a task.

    Outside of a task the coroutine must not raise: nothing is there to raise it to. Code that needs a task awaits `own_task` before, as
    with `start_eagerly`.

    Args:
        spawn: makes the task.
        on_wait: called before each wait outside of a task.
    """

    __slots__ = ("_on_wait", "_spawn", "_suspended", "_waited_for")

    def __init__(self, spawn: Spawn[None], on_wait: Callable[[], None]) -> None:
        self._spawn = spawn
        self._on_wait = on_wait
        self._suspended: Coroutine[Any, Any, None] | None = None
        """The coroutine, while it waits outside of a task."""
        self._waited_for: TasklessFuture[Any] | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that has not been started, while no other runs. Returns at its first wait."""
        self._advance(work)

    def move_to_task(self) -> None:
        """Have a task continue a coroutine that waits outside of a task, so that its owner can cancel it and wait for it."""
        work, waited_for = self._suspended, self._waited_for
        self._suspended = self._waited_for = None
        if work is not None and waited_for is not None:
            waited_for.remove_done_callback(self._resume)
            self._spawn(_Rest(work, waited_for))

    def _resume(self, _: asyncio.Future[Any]) -> None:
        work = self._suspended
        self._suspended = self._waited_for = None
        if work is not None:
            self._advance(work)

    def _advance(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            waited_for = work.send(None)
        except StopIteration:
            return
        self._on_wait()
        if isinstance(waited_for, TasklessFuture):
            self._suspended, self._waited_for = work, waited_for
            waited_for.add_done_callback(self._resume)
        else:
            self._spawn(work if waited_for is None else _Rest(work, waited_for))


class _Rest(Coroutine[Any, Any, Result]):
    """A coroutine that has been started, for the task that continues it. The task first waits for what the coroutine waits for."""

    __slots__ = ("_cancellation", "_waited_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, Result], waited_for: object) -> None:
        self._work = work
        self._waited_for: object | None = waited_for
        """None once the task has it."""
        self._cancellation: BaseException | None = None
        """A cancellation before the first step of the task, which the awaited future has delayed."""

    def send(self, value: Any) -> Any:
        if self._cancellation is not None:
            return self._throw_cancellation(self._cancellation)
        waited_for, self._waited_for = self._waited_for, None
        return self._work.send(value) if waited_for is None else waited_for

    def throw(self, *error: Any) -> Any:
        if self._cancellation is not None:
            return self._throw_cancellation(self._cancellation)
        waited_for, self._waited_for = self._waited_for, None
        # A task that is cancelled before its first step raises the cancellation in its coroutine. One that waits cancels the future, which
        # may end at once, or delay the cancellation until it is done.
        if isinstance(waited_for, asyncio.Future) and isinstance(error[0], asyncio.CancelledError):
            is_cancelled = waited_for.cancel()
            if is_cancelled:
                return waited_for
            if not waited_for.done():
                self._cancellation = error[0]
                return waited_for
        return self._work.throw(*error)

    def _throw_cancellation(self, cancellation: BaseException) -> Any:
        self._cancellation = None
        return self._work.throw(cancellation)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, None, Result]:
        return self._work.__await__()


async def own_task() -> None:
    """Return within a task. Waits for one turn of the loop where a part started by `start_eagerly` calls it, else returns at once."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)
