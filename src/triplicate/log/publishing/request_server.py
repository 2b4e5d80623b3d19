"""The writer's side of publishing: it rolls when requests are queued, and lists their ledgers between its old segment and the next.

Requests are read and checked before the roll begins, so that appends wait no longer than for any other roll. The change of the head
decides: its transaction checks the request, the ledgers and the publisher's last batch.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import dataclass

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ArgumentError, LedgerError, LogError, NoSuchLog, SessionExpired, TriplicateError, UsageError
from triplicate.log.core.head import LogSegment
from triplicate.log.publishing.publication import MARKS_BYTES_MAXIMUM, Publication, cost_of
from triplicate.log.publishing.request_queue import QueuedRequest, RequestQueue
from triplicate.log.publishing.staging import StagedLedger
from triplicate.log.store.head_store import HeadStore, StoredHead
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.writing.segment_transitions import ListedEntry
from triplicate.metadata import DeleteNode, TreeOperation
from triplicate.runtime import sleep

RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class ReadyRequest:
    """A request whose ledgers were read and that can be served."""

    pending: QueuedRequest
    publication: Publication


class RequestServer:
    """Serves the publish requests of one writer's log. Without requests it costs one watch."""

    def __init__(self, client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str, log_id: str) -> None:
        self._client = client
        self._log_id = log_id
        self._store = store
        self._settings = settings
        self._name = name
        self._requests = RequestQueue(store, name)
        self._ready: list[ReadyRequest] = []
        """The requests that the next roll serves."""

    async def follow(self, roll: Callable[[], Awaitable[None]]) -> None:
        """Roll whenever requests are queued, until the log is deleted or the session ends.

        Args:
            roll: starts a roll of the writer, and returns when the next segment is open.
        """
        while True:
            try:
                await self._follow(roll)
            except (SessionExpired, NoSuchLog):
                return
            except TriplicateError as error:
                self._client.host.trace("log.requests_not_read", log=self._name, error=repr(error))
                await sleep(self._client.host.clock, RETRY_S)

    async def _follow(self, roll: Callable[[], Awaitable[None]]) -> None:
        watch = self._requests.watch()
        try:
            while True:
                self._ready = await self._examine(await self._requests.pending())
                if self._ready:
                    await roll()
                else:
                    await watch.changed()
        finally:
            watch.close()
            self._ready = []

    async def _examine(self, waiting: list[QueuedRequest]) -> list[ReadyRequest]:
        """Return the requests that can be served, and delete the others: their publishers find out why when they try again."""
        ready: list[ReadyRequest] = []
        for pending in waiting:
            request = pending.request
            ledgers = [
                StagedLedger(item.ledger_id, item.records, item.size_bytes, item.last_entry, item.min_time_us, item.max_time_us)
                for item in request.segments
            ]
            try:
                if request.log_id not in ("", self._log_id):
                    raise ArgumentError("the request is for a log of this name that was deleted")
                publication = Publication(
                    self._client, self._store, self._settings, self._name, ledgers, request.application, request.batch
                )
                await publication.read()
                stored = await self._store.read(self._name)
                is_servable = bool(publication.segments) and await publication.find(stored) is None
                if is_servable:
                    await publication.prepare(stored)
                    ready.append(ReadyRequest(pending, publication))
            except NoSuchLog:
                raise
            except (ArgumentError, LedgerError, LogError) as error:
                self._client.host.trace("log.request_refused", log=self._name, publisher=request.publisher, error=repr(error))
                is_servable = False
            if not is_servable:
                await self._requests.delete(pending.path)
        return ready

    async def admit(self, stored: StoredHead, first_offset: int) -> tuple[list[LogSegment], list[TreeOperation]]:
        """The segments that a roll lists between two segments of the writer, and further operations of its transaction.

        One transaction lists as many batches as fit, and at most one batch of each application. The others wait for another roll.

        Args:
            stored: the head that is to be changed.
            first_offset: of the first segment.

        Raises:
            NoNode: the head is out of date. ConnectionLost.
        """
        segments: list[LogSegment] = []
        operations: list[TreeOperation] = []
        applications: set[str] = set()
        for served in self._ready:
            publication = served.publication
            known = {segment.ledger_id for segment in segments}
            if publication.application in applications or any(segment.ledger_id in known for segment in publication.segments):
                continue
            try:
                if not await self._requests.is_queued(served.pending.path) or await publication.find(stored) is not None:
                    continue
                added = await publication.operations(stored, first_offset)
            except (ArgumentError, LedgerError, LogError):
                continue  # It is examined again after the roll.
            if operations and cost_of([*operations, *added]) > MARKS_BYTES_MAXIMUM:
                break
            if publication.application is not None:
                applications.add(publication.application)
            operations += [*added, DeleteNode(served.pending.path)]
            segments += publication.segments
            first_offset += publication.records
        if segments:
            self._client.host.trace("log.admitted", log=self._name, ledgers=len(segments))
        return segments, operations

    async def append(self, entries: AsyncIterable[ListedEntry]) -> range:
        """Raises UsageError: the writer of a log with publishers has no batches of its own."""
        raise UsageError(f"log {self._name!r} has publishers: publish a batch that is to be listed as a whole")

    def end(self, error: BaseException) -> None:
        """The writer has ended. Publishers wait for the next one."""

    def discard_ready(self) -> bool:
        """Serve nothing at the next roll, because a ledger of a request is gone. Returns whether anything was ready."""
        dropped, self._ready = bool(self._ready), []
        return dropped
