"""The event loop on a background thread that runs the coroutines of blocking calls."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from triplicate.errors import HandleClosed

Result = TypeVar("Result")
Item = TypeVar("Item")

BATCH_ITEMS = 1024
"""Maximum number of items that `BackgroundLoop.iterate` passes between the threads at once."""


class BackgroundLoop:
    """An event loop on its own daemon thread. Close it to end the thread."""

    def __init__(self, name: str = "triplicate") -> None:
        self._loop = _new_loop()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and wait for its result. Interrupting the wait (Ctrl-C) cancels the coroutine.

        Raises:
            HandleClosed: the loop was closed; the coroutine was not started. Also every error of the coroutine.
        """
        if self._closed:
            coroutine.close()
            raise HandleClosed("the connection was closed; open a new one")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def post(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine on the loop without waiting for it; its errors are dropped. From any thread, also from a finalizer."""
        if self._closed:
            coroutine.close()
        else:
            asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, function: Callable[[], Result]) -> Result:
        """Call a function on the loop's thread and return its result. Raises as `call`."""

        async def call_function() -> Result:
            return function()

        return self.call(call_function())

    def start(self, begin: Callable[[], asyncio.Future[Result]]) -> concurrent.futures.Future[Result]:
        """Call a function on the loop's thread and convert the future that it returns. Raises as `call`."""
        result: concurrent.futures.Future[Result] = concurrent.futures.Future()

        def resolve(future: asyncio.Future[Result]) -> None:
            if future.cancelled():
                result.cancel()
            elif result.set_running_or_notify_cancel():
                error = future.exception()
                if error is not None:
                    result.set_exception(error)
                else:
                    result.set_result(future.result())

        self.run(lambda: begin().add_done_callback(resolve))
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
                self.call(items.aclose())

    def close(self) -> None:
        """Stop the loop and end the thread. Idempotent."""
        if not self._closed:
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _next_items(items: AsyncIterator[Item], limit: int) -> list[Item]:
    """Up to `limit` items; none at the end."""
    batch: list[Item] = []
    while len(batch) < limit:
        try:
            batch.append(await anext(items))
        except StopAsyncIteration:
            break
    return batch
