"""The closing of a ledger by its writer. Source: BookKeeper `LedgerHandle.doAsyncCloseInternal`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from triplicate.client.context import ClientContext
from triplicate.client.metadata_retry import MetadataRetry
from triplicate.errors import HandleClosed, LedgerClosed, LedgerFenced, TriplicateError
from triplicate.ledger import LedgerState
from triplicate.metadata import Versioned
from triplicate.runtime import fail, fault_point, resolve


class LedgerClose:
    """One closing under way. It runs in the client's scope, so that a cancelled caller does not leave the ledger half closed.

    Args:
        close: does the work and returns the last entry id.

    Raises:
        HandleClosed: the client was closed.
    """

    def __init__(self, context: ClientContext, ledger_id: int, close: Callable[[LedgerClose], Awaitable[int]]) -> None:
        self._context = context
        self._ledger_id = ledger_id
        self._future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._progress = asyncio.Event()
        task = context.scope.spawn(self._run(close), name=f"close ledger {ledger_id}")
        task.add_done_callback(lambda _: self._end())

    @property
    def is_done(self) -> bool:
        return self._future.done()

    async def result(self) -> int:
        """Wait for the end; return the last entry id, or raise what went wrong."""
        return await asyncio.shield(self._future)

    def wake(self) -> None:
        """Have `wait_until` look at its condition again."""
        self._progress.set()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; it is evaluated now and after each `wake`."""
        while not condition():
            self._progress.clear()
            await self._progress.wait()

    async def _run(self, close: Callable[[LedgerClose], Awaitable[int]]) -> None:
        try:
            last_entry_id = await close(self)
        except TriplicateError as error:
            fail(self._future, error)
        else:
            resolve(self._future, last_entry_id)

    def _end(self) -> None:
        fail(self._future, HandleClosed(f"the client was closed while ledger {self._ledger_id} was being closed"))

    @fault_point("client.close.writing")
    async def write(self, current: Versioned, last: int, length: int) -> Versioned:
        """Write the end of the ledger to its metadata.

        Args:
            last: last entry id; -1 for an empty ledger. length: payload bytes.

        Raises:
            LedgerFenced: another client recovers the ledger. LedgerClosed: another client closed it elsewhere.
            OutcomeUnknown: the metadata could not be reached.
        """
        retry = MetadataRetry(self._context, self._ledger_id, f"the closing of ledger {self._ledger_id}")
        closed = await retry.swap(current, lambda metadata: metadata.closed(last, length), lambda found: self._judge(found, last))
        self._context.host.trace("client.ledger_closed", ledger=self._ledger_id, last=last)
        return closed

    def _judge(self, found: Versioned, last: int) -> Versioned | None:
        if found.value.state == LedgerState.IN_RECOVERY:
            raise LedgerFenced(f"ledger {self._ledger_id} is being recovered by another client, which will close it")
        if not found.value.is_closed:
            return None
        if found.value.last_entry_id == last:
            return found
        raise LedgerClosed(f"ledger {self._ledger_id} was closed at entry {found.value.last_entry_id} by another client, not at {last}")
