"""The event loop on a background thread that runs the coroutines of blocking calls."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from triplicate.errors import HandleClosed

Result = TypeVar("Result")
Item = TypeVar("Item")

CLOSE_LIMIT_S = 10.0
"""Limit of the wait for the ends of coroutines when a loop is closed, in seconds."""
BATCH_ITEMS = 1024
"""Maximum number of items that `BackgroundLoop.iterate` passes between the threads at once."""


class BackgroundLoop:
    """An event loop on its own daemon thread. Close it to end the thread."""

    def __init__(self, name: str = "triplicate") -> None:
        self._loop = _new_loop()
        self._process_id = os.getpid()
        self._closed = False
        self._closes = threading.RLock()
        """Held while a coroutine is given to the loop, and while the loop is stopped: nothing is given to a loop that stops.
        A finalizer may run meanwhile, on the same thread."""
        self._started: set[concurrent.futures.Future[Any]] = set()
        """The futures of `start` without a result. Used on the loop's thread."""
        self._posted: set[concurrent.futures.Future[Any]] = set()
        """The futures of `post` without a result. A loop keeps no task alive that waits for something that only the task knows."""
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and wait for its result. Interrupting the wait (Ctrl-C) cancels the coroutine.

        Raises:
            HandleClosed: the loop was closed before, so the coroutine was not started, or meanwhile, so it was cancelled; or this is the
            loop's own thread, or a child of the process that made the loop. Also every error of the coroutine.
        """
        if self._is_own_thread:
            coroutine.close()
            raise HandleClosed("a call that blocks the thread of its own event loop would wait for itself; await the async method there")
        future = self._submit(coroutine)
        if future is None:
            raise self._closed_error()
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            if self._closed:
                raise self._closed_error() from None
            raise
        except BaseException:
            future.cancel()
            raise

    @property
    def _is_forked(self) -> bool:
        return os.getpid() != self._process_id

    def _closed_error(self) -> HandleClosed:
        if self._is_forked:
            parent, child = self._process_id, os.getpid()
            text = f"this connection was opened by process {parent}, and does not work in its fork {child}: open one in the child"
            return HandleClosed(text)
        return HandleClosed("the connection was closed; open a new one")

    @property
    def _is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread.ident

    def _submit(self, coroutine: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result] | None:
        """Give a coroutine to the loop; None if the loop is closed, or runs in the parent of this process only."""
        if not self._is_forked:  # The lock may have been held by a thread that the child does not have.
            with self._closes:
                if not self._closed:
                    return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        coroutine.close()
        return None

    def post(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine on the loop without waiting for it; its errors are dropped. From any thread, also from a finalizer."""
        future = self._submit(coroutine)
        if future is not None:
            self._posted.add(future)
            future.add_done_callback(self._posted.discard)

    def run(self, function: Callable[[], Result]) -> Result:
        """Call a function on the loop's thread and return its result. Raises as `call`."""

        async def call_function() -> Result:
            return function()

        return self.call(call_function())

    def start(self, begin: Callable[[], asyncio.Future[Result]]) -> concurrent.futures.Future[Result]:
        """Call a function on the loop's thread and convert the future that it returns, which fails with HandleClosed if the loop is closed
        before. Raises as `call`."""
        result: concurrent.futures.Future[Result] = concurrent.futures.Future()

        def resolve(future: asyncio.Future[Result]) -> None:
            self._started.discard(result)
            if future.cancelled():
                result.cancel()
            elif result.set_running_or_notify_cancel():
                error = future.exception()
                if error is not None:
                    result.set_exception(error)
                else:
                    result.set_result(future.result())

        def start() -> None:
            begin().add_done_callback(resolve)
            self._started.add(result)

        self.run(start)
        return result

    def iterate(self, begin: Callable[[], AsyncIterator[Item]]) -> Iterator[Item]:
        """Iterate over an async iterator. Items pass between the threads in batches of up to `BATCH_ITEMS`.

        Args:
            begin: creates the async iterator; called on the loop's thread at the first step.

        Raises:
            HandleClosed: the loop was closed. Also the errors of the iterator.
        """
        items = self.run(begin)
        try:
            while batch := self.call(_next_items(items, BATCH_ITEMS)):
                yield from batch
        finally:
            # An iteration that is ended early gives back what it holds, such as the snapshot of a database.
            if isinstance(items, AsyncGenerator) and not self._closed:
                if self._is_own_thread:
                    self.post(items.aclose())  # The garbage collector ends iterations on any thread.
                else:
                    self.call(items.aclose())

    def close(self) -> None:
        """Stop the loop and end the thread. Coroutines that run are cancelled, and their callers meet HandleClosed. Idempotent."""
        if self._is_forked:
            self._closed = True  # The thread, and all that the loop holds open, belong to the parent.
            return
        with self._closes:
            is_first, self._closed = not self._closed, True
            if is_first:
                self._loop.call_soon_threadsafe(self._loop.stop)
        if is_first:
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(_end_all())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            for future in self._started:
                if future.set_running_or_notify_cancel():
                    future.set_exception(self._closed_error())


class OpenOnLoop:
    """An object that holds something open on a loop, and often the loop itself, until it is closed."""

    _closing: ExitStack

    def _open(self, loop: BackgroundLoop, begin: Callable[[], AbstractAsyncContextManager[Result]], *, owns_loop: bool = True) -> Result:
        """Enter what a function returns on the loop's thread. Raises its errors: a loop of its own is closed then."""
        with ExitStack() as opening:
            if owns_loop:
                opening.callback(loop.close)
            opened = loop.run(begin)
            found = loop.call(opened.__aenter__())
            opening.callback(lambda: loop.call(opened.__aexit__(None, None, None)))
            self._closing = opening.pop_all()
        return found

    def close(self) -> None:
        """Close it, and end the thread if that is its own. Idempotent."""
        closing = self.__dict__.pop("_closing", None)  # Another thread that closes it must not end the loop under this one.
        if closing is not None:
            closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _end_all() -> None:
    """Cancel all tasks, and wait for a limited time until they have ended."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CLOSE_LIMIT_S
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in others:
            task.cancel()
        _, running = await asyncio.wait(others, timeout=max(0.0, deadline - loop.time()))
        if running:
            return


async def _next_items(items: AsyncIterator[Item], limit: int) -> list[Item]:
    """Up to `limit` items; none at the end."""
    batch: list[Item] = []
    while len(batch) < limit:
        try:
            batch.append(await anext(items))
        except StopAsyncIteration:
            break
    return batch
