"""The living writer's side of publishing: it rolls when publishers ask, and lists their ledgers between its old segment and its next.

What was asked for is looked at before the roll begins, so that appends wait no longer than for any other roll. The change of the list
decides: it checks the request, the ledgers and the publisher's last batch together with the head.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ArgumentError, LedgerError, LogError, NoSuchLog, SessionExpired, TriplicateError
from triplicate.log.core.head import LogSegment
from triplicate.log.publishing.publication import MARKS_BYTES_MAXIMUM, Publication, cost_of
from triplicate.log.publishing.request_queue import QueuedRequest, RequestQueue
from triplicate.log.publishing.staging import StagedLedger
from triplicate.log.store.head_store import HeadStore, StoredHead
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.metadata import DeleteNode, TreeOperation
from triplicate.runtime import sleep

RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class ReadyRequest:
    """A request whose ledgers were read and can be listed."""

    pending: QueuedRequest
    publication: Publication


class RequestServer:
    """Belongs to one writer. Without requests it costs one watch."""

    def __init__(self, client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str) -> None:
        self._client = client
        self._store = store
        self._settings = settings
        self._name = name
        self._requests = RequestQueue(store, name)
        self._ready: list[ReadyRequest] = []
        """What the next roll lists."""

    async def follow(self, roll: Callable[[], Awaitable[None]]) -> None:
        """Roll whenever somebody asks, for as long as the log is there.

        Args:
            roll: has the writer roll, and returns when it has.
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
        """The requests that can be served. Others are deleted: their publishers look again, and find out why."""
        admissions: list[ReadyRequest] = []
        for pending in waiting:
            request = pending.request
            ledgers = [
                StagedLedger(item.ledger_id, item.records, item.size_bytes, item.last_entry, item.min_time_us, item.max_time_us)
                for item in request.segments
            ]
            try:
                publication = Publication(
                    self._client, self._store, self._settings, self._name, ledgers, request.application, request.batch
                )
                await publication.read()
                stored = await self._store.read(self._name)
                is_wanted = bool(publication.segments) and await publication.find(stored) is None
                if is_wanted:
                    await publication.prepare(stored)
                    admissions.append(ReadyRequest(pending, publication))
            except NoSuchLog:
                raise
            except (ArgumentError, LedgerError, LogError) as error:
                self._client.host.trace("log.request_refused", log=self._name, publisher=request.publisher, error=repr(error))
                is_wanted = False
            if not is_wanted:
                await self._requests.delete(pending.path)
        return admissions

    async def admit(self, stored: StoredHead, first_offset: int) -> tuple[list[LogSegment], list[TreeOperation]]:
        """What a roll lists between two segments of the writer, and what belongs to its transaction.

        One transaction lists as much as it has room for, and one batch of an application. The rest waits for another roll.

        Args:
            stored: the head that is to be changed.
            first_offset: where the first of them begins.

        Raises:
            NoNode: the head is out of date. ConnectionLost.
        """
        segments: list[LogSegment] = []
        operations: list[TreeOperation] = []
        applications: set[str] = set()
        for admission in self._ready:
            publication = admission.publication
            known = {segment.ledger_id for segment in segments}
            if publication.application in applications or any(segment.ledger_id in known for segment in publication.segments):
                continue
            try:
                if not await self._requests.is_there(admission.pending.path) or await publication.find(stored) is not None:
                    continue
                added = await publication.operations(stored, first_offset)
            except (ArgumentError, LedgerError, LogError):
                continue  # It is looked at again after the roll.
            if operations and cost_of([*operations, *added]) > MARKS_BYTES_MAXIMUM:
                break
            if publication.application is not None:
                applications.add(publication.application)
            operations += [*added, DeleteNode(admission.pending.path)]
            segments += publication.segments
            first_offset += publication.records
        if segments:
            self._client.host.trace("log.admitted", log=self._name, ledgers=len(segments))
        return segments, operations

    def drop(self) -> bool:
        """List nothing at the next roll: a ledger that was to be listed is gone. Returns whether there was anything."""
        dropped, self._ready = bool(self._ready), []
        return dropped
