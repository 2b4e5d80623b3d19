"""Lives of one bookie on one machine: started, sent requests, stopped or killed. A book records requests and answers."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, cast

from tests.crash.book import NEVER, Book, Claim
from tests.crash.caller import Caller
from tests.crash.machine import Endpoint, Machine
from triplicate.bookie import Bookie
from triplicate.bookie import bookie as bookie_module
from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.core.ledger_table import LedgerHandle
from triplicate.bookie.server.dialects import V3Dialect
from triplicate.bookie.server.request_context import Peer, RequestContext
from triplicate.bookie.storage import index_rebuild as index_rebuild_module
from triplicate.bookie.storage.index import Index
from triplicate.config import BookieSettings
from triplicate.ledger import DigestType, EnsembleSegment, EntryCodec, LedgerMetadata, LedgerState
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree
from triplicate.runtime import Disk, Metrics
from triplicate.wire import (
    AddRequest,
    ForceRequest,
    ReadLacRequest,
    ReadLacResponse,
    ReadRequest,
    Request,
    Response,
    Status,
    WriteLacRequest,
)

NAME = "bookie-1"
Nodes = dict[str, Any]
"""The metadata's nodes at one moment."""


def settings_of(directories: int) -> BookieSettings:
    """Files so small that a short workload rolls all of them. Flushes and collections run only on request."""
    return BookieSettings(
        bookie_id=NAME,
        advertised_address=NAME,
        journal_directories=tuple(f"/journal-{number}" for number in range(1, directories + 1)),
        ledger_directories=tuple(f"/ledgers-{number}" for number in range(1, directories + 1)),
        journal_preallocate_bytes=8192,
        journal_file_bytes=20480,
        write_cache_bytes=1 << 20,
        entry_log_bytes=6144,
        flush_interval_s=1e6,
        gc_interval_s=1e6,
        disk_check_interval_s=1e6,
        registration_check_interval_s=1e6,
        verify_on_write="off",
        reserve_bytes=4096,
        # With one directory deleted ledgers stay in the trash, with several they are deleted at once.
        trash_period_s=2.0 if directories == 1 else 0.0,
        compaction_interval_s=1e6,
        major_compaction_interval_s=1e6,
    )


def codec_of(ledger_id: int) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


def nodes_of(store: MemoryStore) -> Nodes:
    """A copy of the stored nodes, without the ephemeral ones."""
    kept = {path: node for path, node in store._nodes.items() if not node.owner}
    return {
        path: dataclasses.replace(node, children={name: None for name in node.children if f"{path.rstrip('/')}/{name}" in kept})
        for path, node in kept.items()
    }


_DIALECT = V3Dialect()
_NOBODY: Peer = cast("Peer", None)
_SHARED = Metrics()
_METRICS = BookieMetrics(_SHARED)
"""Shared by all lives, since making metrics takes as long as the rest of a start."""
_INDEXES: dict[int, list[Index]] = {}
"""Indexes of the processes that run, by the id of their disk: a process may end before its bookie runs."""


def _metrics_of(metrics: Metrics | None) -> BookieMetrics:
    return _METRICS if metrics is _SHARED else BookieMetrics(metrics)


def _noted_index(disk: Disk, path: str, cache_bytes: int) -> Index:
    index = Index(disk, path, cache_bytes)
    _INDEXES.get(id(disk), []).append(index)
    return index


_module: Any = bookie_module
_module.BookieMetrics = _metrics_of
_module = index_rebuild_module
_module.Index = _noted_index


class Lives:
    """See the module's text.

    Args:
        nodes: contents of the metadata; None: a new cluster.
    """

    def __init__(self, machine: Machine, settings: BookieSettings, nodes: Nodes | None = None) -> None:
        self.machine = machine
        self.settings = settings
        self.book = Book()
        self.store = MemoryStore(machine.clock)
        self.metadata_at: list[tuple[int, Nodes]] = []
        """Snapshots of the metadata, each with the place in the record from which it holds."""
        if nodes:
            self.store._nodes = {path: dataclasses.replace(node, children=dict(node.children)) for path, node in nodes.items()}
        self.store.observer = self._metadata_changed
        self.taking_from = NEVER
        """The place from which a round of garbage collection may have deleted entries of deleted ledgers."""
        self.bookie: Bookie | None = None
        self.endpoint: Endpoint | None = None
        self._callers: dict[int, Caller] = {}
        self._metadata: ClusterMetadata | None = None

    @property
    def place(self) -> int:
        return self.machine.disk.medium.count

    def _metadata_changed(self, paths: object) -> None:
        self.metadata_at.append((self.place, nodes_of(self.store)))

    # A life.

    async def start(self) -> Bookie:
        """Raises as `Bookie.start`."""
        self.kill()
        host, self.endpoint = self.machine.new_process()
        new = "/ledgers/INSTANCEID" not in self.store._nodes
        self._metadata = await ClusterMetadata.open(MemoryTree(self.store), host, create=new)
        self._callers.clear()
        _INDEXES[id(self.machine.disk)] = []
        self.bookie = await self.machine.as_process(Bookie.start(host, self.settings, self._metadata, _SHARED))
        return self.bookie

    @property
    def running(self) -> Bookie:
        assert self.bookie is not None
        return self.bookie

    async def stop(self) -> None:
        """Stop the bookie in order, also one that has failed."""
        await self.machine.as_process(self.running.stop())
        self.kill()

    def kill(self) -> None:
        """End the process. The kernel still holds its unsynced writes."""
        indexes = _INDEXES.pop(id(self.machine.disk), None)
        if indexes is not None:
            for index in indexes:
                index.close()
            self.machine.loop.kill(self.machine.life)
            self.bookie = None
        for session in self.store.sessions:
            self.store.expire(session)

    @property
    def metadata(self) -> ClusterMetadata:
        assert self._metadata is not None
        return self._metadata

    def caller(self, version: int = 3) -> Caller:
        found = self._callers.get(version)
        if found is None or found.closed:
            assert self.endpoint is not None
            found = self._callers[version] = Caller(self.machine, self.endpoint, version=version)
        return found

    def answer(self, request: Request, handle: LedgerHandle) -> Response:
        """The bookie's answer to a read, without a connection in between."""
        asked = RequestContext(request, _NOBODY, _DIALECT, 0, handle)
        return self.running.long_polls._reads.answer(asked, self.settings.batch_read_bytes)

    # Operations of clients.

    async def create(self, ledger_id: int) -> None:
        value = LedgerMetadata(
            1, 1, 1, (EnsembleSegment(0, (NAME,)),), LedgerState.OPEN, digest_type=DigestType.CRC32C, password=b"", custom={}
        )
        await self.metadata.ledgers.create(ledger_id, value)
        self.book.of(ledger_id)

    async def delete(self, ledger_id: int) -> None:
        await self.metadata.trash.delete(ledger_id, self.settings.trash_period_s)
        self.book.of(ledger_id).deleted = self.place

    async def collect(self) -> None:
        """One round of collection that notes missing ledgers, and one that deletes them after the required time."""
        gone = [book for book in self.book.ledgers.values() if book.deleted <= self.place]
        if self.settings.trash_period_s:
            await self.machine.as_process(self.running.collect_garbage())
            await asyncio.sleep(self.settings.trash_period_s + 1)
        self.taking_from = min(self.taking_from, self.place)
        for book in gone:
            book.taken = min(book.taken, self.place)
        await self.machine.as_process(self.running.collect_garbage())
        for book in gone:
            book.collected = min(book.collected, self.place)

    def begin(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start an operation beside the rest of the workload, which may end before the operation does."""
        task = self.machine.loop.start_task(coroutine)
        task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception() and None)
        return task

    async def compact(self) -> None:
        await self.machine.as_process(self.running.compact(0.9))

    async def flush(self) -> None:
        await self.machine.as_process(self.running.storage.flush())

    def start_add(
        self,
        ledger_id: int,
        entry_id: int,
        payload: bytes,
        *,
        version: int = 3,
        lac: int | None = None,
        recovery: bool = False,
        deferred: bool = False,
    ) -> asyncio.Future[Response]:
        codec = codec_of(ledger_id)
        length = sum(len(claims[0].value) for claims in self.book.of(ledger_id).entries.values()) + len(payload)
        body = codec.encode(entry_id, entry_id - 1 if lac is None else lac, length, payload)
        claim = Claim(body, self.place)
        self.book.of(ledger_id).entries.setdefault(entry_id, []).append(claim)
        request = AddRequest(ledger_id, entry_id, codec.master_key, body, recovery=recovery, high_priority=recovery, deferred_sync=deferred)
        return self.caller(version).start(request, self._noted(claim, deferred=deferred))

    async def add(self, ledger_id: int, entry_id: int, payload: bytes, **flags: Any) -> Status:
        return (await self.start_add(ledger_id, entry_id, payload, **flags)).status

    async def add_some(self, ledger_id: int, entry_ids: range, payload: bytes, **flags: Any) -> None:
        """Adds sent together. Raises ConnectionClosed."""
        for future in [self.start_add(ledger_id, entry_id, payload + b"%d" % entry_id, **flags) for entry_id in entry_ids]:
            await future

    async def fence(self, ledger_id: int, *, version: int = 3) -> Status:
        claim = Claim(b"", self.place)
        self.book.of(ledger_id).fences.append(claim)
        request = ReadRequest(ledger_id, -1, fence=True, master_key=codec_of(ledger_id).master_key)
        return (await self.caller(version).ask(request, self._noted(claim, (Status.OK, Status.NO_ENTRY)))).status

    async def write_lac(self, ledger_id: int, lac: int) -> Status:
        codec = codec_of(ledger_id)
        claim = Claim(codec.encode_lac(lac), self.place)
        self.book.of(ledger_id).lacs.append(claim)
        written = self.caller().start(WriteLacRequest(ledger_id, lac, codec.master_key, claim.value), self._noted(claim))
        # A concurrent reader may rely on the value it sees, as the writer may rely on the answer.
        self.caller().start(ReadLacRequest(ledger_id), partial(self._read_by_somebody, ledger_id))
        return (await written).status

    def _read_by_somebody(self, ledger_id: int, response: Response) -> None:
        """A reader got an explicit last-add-confirmed: no crash may revoke it."""
        assert isinstance(response, ReadLacResponse)
        for claim in self.book.of(ledger_id).lacs:
            if claim.value == response.lac_body:
                claim.answered = min(claim.answered, self.place)
                claim.durable = min(claim.durable, self.place)

    async def force(self, ledger_id: int) -> Status:
        asked = self.place

        def heard(response: Response) -> None:
            if response.status is Status.OK:
                self.book.forced(ledger_id, asked, self.place)

        return (await self.caller().ask(ForceRequest(ledger_id), heard)).status

    def _noted(self, claim: Claim, good: tuple[Status, ...] = (Status.OK,), *, deferred: bool = False) -> Callable[[Response], None]:
        def heard(response: Response) -> None:
            if response.status in good:
                claim.answered = min(claim.answered, self.place)
                if not deferred:
                    claim.durable = min(claim.durable, self.place)

        return heard
