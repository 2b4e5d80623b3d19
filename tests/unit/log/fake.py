"""Ledgers in memory, as the log sees them: fencing, last add confirmed, tails, and failures on demand. Metadata is the memory tree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tests.unit.metadata.lagging import LaggingTree
from tests.waiting import PLAY_LIMIT_S
from triplicate.errors import ArgumentError, HandleClosed, LedgerFenced, NoSuchEntry, NoSuchLedger, NotEnoughBookies, WindowFull
from triplicate.ledger import DigestType, Entry, LedgerMetadata, LedgerState, encode_metadata
from triplicate.ledger import EnsembleSegment as LedgerSegment
from triplicate.log import LogClientSettings, Logs, LogSettings
from triplicate.metadata import (
    BookieServiceInfo,
    HierarchicalPaths,
    LedgerStore,
    MemoryStore,
    MemoryTree,
    Trash,
    Tree,
    TreeOperation,
    bookie_service,
)
from triplicate.metadata.drivers import memory_tree
from triplicate.runtime import Host, Metrics, real_host

Result = TypeVar("Result")
WINDOW = 100
LEDGERS = "/ledgers"


@dataclass
class StoredLedger:
    """The state of one ledger that bookies and metadata would hold."""

    metadata: LedgerMetadata
    entries: list[Entry] = field(default_factory=list)
    fenced: bool = False
    broken: bool = False
    """Appends fail from now on, as when no ensemble can be formed."""
    keep_broken: bool = False
    """Entries whose append failed are stored nevertheless."""
    went_without: bool = False
    """Its writer says that it went on without a bookie."""
    held: list[tuple[asyncio.Future[int], int]] | None = None
    """While a list, acknowledgements wait in it."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def last_confirmed(self) -> int:
        if self.metadata.state is LedgerState.CLOSED:
            return self.metadata.last_entry_id
        return self.entries[-1].last_add_confirmed if self.entries else -1

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


@dataclass
class Hooks:
    """Called before an operation of a client; may wait, raise, or do things meanwhile."""

    create: Callable[[], Awaitable[None]] | None = None
    recover: Callable[[int], Awaitable[None]] | None = None


class FakeBookies:
    """Shared by the clients of one test. The metadata node of each ledger is kept in the store, without faults and delays."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.ledgers: dict[int, StoredLedger] = {}
        self.deleted: list[int] = []
        self.next_id = 100_000
        self.creatable = True
        self.writable: list[str] = ["bookie-0", "bookie-1", "bookie-2"]
        """No ensemble is larger than this; tests change it. Ledgers that are there go on."""
        self.missing_at_recovery: tuple[str, ...] = ()

    def ledger(self, ledger_id: int) -> StoredLedger:
        if ledger_id not in self.ledgers:
            raise NoSuchLedger(f"no ledger {ledger_id}")
        return self.ledgers[ledger_id]

    def write_node(self, ledger_id: int) -> None:
        """Bring the node of a ledger in line with what is stored of it."""
        path, data = LEDGERS + HierarchicalPaths().path(ledger_id), encode_metadata(self.ledgers[ledger_id].metadata)
        change = memory_tree._Change()
        if self._store.exists(path) is None:
            self._store.create(path, data, 0, change, parents=True)
        else:
            self._store.set(path, data, -1, change)
        self._store.commit(change)

    def close(self, ledger_id: int) -> None:
        """As a writer or a recovery closes it."""
        ledger = self.ledger(ledger_id)
        if ledger.metadata.state is not LedgerState.CLOSED:
            length = sum(len(entry.payload) for entry in ledger.entries)
            ledger.metadata = ledger.metadata.closed(len(ledger.entries) - 1, length)
            self.write_node(ledger_id)
        ledger.wake()


class FakeDirectory:
    def __init__(self, bookies: FakeBookies) -> None:
        self._bookies = bookies

    async def writable(self) -> dict[str, BookieServiceInfo]:
        """Each bookie is on a machine of its own."""
        await asyncio.sleep(0)
        return {name: bookie_service(f"machine of {name}", 3181) for name in self._bookies.writable}

    async def read_only_note(self) -> str:
        return ""


class FakeMetadata:
    def __init__(self, tree: Tree, host: Host, bookies: FakeBookies) -> None:
        self.tree = tree
        self.bookies = FakeDirectory(bookies)
        self.own_root = "/triplicate/test"
        self.ledgers = LedgerStore(tree, host, LEDGERS, HierarchicalPaths())
        self.trash = Trash(tree, host, self.own_root, self.ledgers)


class FakeClient:
    """One client: its own metadata session over shared bookies."""

    def __init__(self, host: Host, store: MemoryStore, bookies: FakeBookies) -> None:
        self.host = host
        self.metadata = FakeMetadata(MemoryTree(store), host, bookies)
        self.bookies = bookies
        self.metrics = Metrics()
        self.hooks = Hooks()
        self.trash_period_s = 0.0
        self.min_ack_domains = 1
        self.add_timeout_s = 5.0
        self.unreached: set[str] = set()
        """Bookies that do not answer this client when it asks whether they do."""

    async def create(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum: int = 3,
        ack_quorum: int = 2,
        digest_type: DigestType = DigestType.CRC32C,
        password: bytes = b"",
        custom: Mapping[str, bytes] | None = None,
    ) -> FakeAppender:
        if self.hooks.create is not None:
            await self.hooks.create()
        await asyncio.sleep(0)
        if not self.bookies.creatable:
            raise NotEnoughBookies("2 bookies are there, 3 are needed")
        if len(self.bookies.writable) < ensemble_size:
            raise NotEnoughBookies(f"{len(self.bookies.writable)} bookies are there, {ensemble_size} are needed")
        # Ids carry no order, so these go down.
        self.bookies.next_id -= 1
        ledger_id = self.bookies.next_id
        metadata = LedgerMetadata(
            ensemble_size=ensemble_size,
            write_quorum=write_quorum,
            ack_quorum=ack_quorum,
            segments=(LedgerSegment(0, tuple(f"bookie-{place}" for place in range(ensemble_size))),),
            digest_type=digest_type,
            password=password,
            custom=custom or {},
            ctime_ms=0,
        )
        self.bookies.ledgers[ledger_id] = StoredLedger(metadata)
        self.bookies.write_node(ledger_id)
        return FakeAppender(ledger_id, self.bookies)

    async def open(self, ledger_id: int, *, password: bytes = b"") -> FakeView:
        await asyncio.sleep(0)
        return FakeView(ledger_id, self.bookies)

    async def recover(self, ledger_id: int, *, password: bytes = b"") -> FakeView:
        if self.hooks.recover is not None:
            await self.hooks.recover(ledger_id)
        await asyncio.sleep(0)
        ledger = self.bookies.ledger(ledger_id)
        ledger.fenced = True
        self.bookies.close(ledger_id)
        view = FakeView(ledger_id, self.bookies)
        view.missing_bookies = self.bookies.missing_at_recovery
        return view

    async def delete(self, ledger_id: int, *, version: int | None = None, checks: Sequence[TreeOperation] = ()) -> None:
        await self.metadata.trash.delete(ledger_id, self.trash_period_s, version=version, checks=checks)
        if self.bookies.ledgers.pop(ledger_id, None) is not None:
            self.bookies.deleted.append(ledger_id)

    async def bookies_answer(self, ledger_id: int, bookie_ids: Sequence[str], suffices: Callable[[Collection[str]], bool]) -> bool:
        await asyncio.sleep(0)
        return suffices([bookie_id for bookie_id in bookie_ids if bookie_id not in self.unreached])

    async def _ids(self) -> AsyncIterator[int]:
        for ledger_id in sorted(self.bookies.ledgers):
            yield ledger_id

    def ledger_ids(self) -> AsyncIterator[int]:
        return self._ids()

    async def metadata_of(self, ledger_id: int) -> LedgerMetadata:
        return (await self.metadata.ledgers.get(ledger_id)).value


class FakeAppender:
    def __init__(self, ledger_id: int, bookies: FakeBookies) -> None:
        self.ledger_id = ledger_id
        self._bookies = bookies
        self._confirmed = -1
        self._outstanding = 0
        self._abandoned = False
        self._length = 0

    @property
    def has_missed_bookies(self) -> bool:
        return self._bookies.ledger(self.ledger_id).went_without

    @property
    def has_all_copies(self) -> bool:
        return True

    async def append(self, payload: bytes, /) -> int:
        return await self.append_nowait(payload)

    def append_nowait(self, payload: bytes, /) -> asyncio.Future[int]:
        if self._abandoned:
            raise HandleClosed("abandoned")
        if self._outstanding >= WINDOW:
            raise WindowFull("full")
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        ledger = self._bookies.ledgers.get(self.ledger_id)
        if ledger is None or ledger.fenced:
            future.set_exception(LedgerFenced(f"ledger {self.ledger_id} is fenced"))
            return future
        if ledger.broken and not ledger.keep_broken:
            future.set_exception(NotEnoughBookies("too few bookies"))
            return future
        self._length += len(payload)
        entry_id = len(ledger.entries)
        ledger.entries.append(Entry(self.ledger_id, entry_id, self._confirmed, self._length, bytes(payload)))
        ledger.wake()
        if ledger.broken:
            future.set_exception(NotEnoughBookies("too few bookies"))
            return future
        self._outstanding += 1
        if ledger.held is not None:
            ledger.held.append((future, entry_id))
            future.add_done_callback(lambda _: self._confirm(entry_id))
        else:
            asyncio.get_running_loop().call_soon(self._acknowledge, future, entry_id)
        return future

    def _acknowledge(self, future: asyncio.Future[int], entry_id: int) -> None:
        self._confirm(entry_id)
        if not future.done():
            future.set_result(entry_id)

    def _confirm(self, entry_id: int) -> None:
        self._confirmed = max(self._confirmed, entry_id)
        self._outstanding -= 1

    async def close(self) -> int:
        await asyncio.sleep(0)
        ledger = self._bookies.ledger(self.ledger_id)
        if ledger.fenced:
            raise LedgerFenced(f"ledger {self.ledger_id} is fenced")
        if ledger.broken:
            raise NotEnoughBookies("too few bookies")
        self._bookies.close(self.ledger_id)
        return len(ledger.entries) - 1

    def abandon(self) -> None:
        self._abandoned = True


class FakeView:
    def __init__(self, ledger_id: int, bookies: FakeBookies) -> None:
        self.ledger_id = ledger_id
        self._bookies = bookies
        self._last_add_confirmed = bookies.ledger(ledger_id).last_confirmed
        self.metadata = bookies.ledger(ledger_id).metadata
        self.missing_bookies: tuple[str, ...] = ()

    @property
    def last_add_confirmed(self) -> int:
        return self._last_add_confirmed

    @property
    def is_closed(self) -> bool:
        return self.metadata.state is LedgerState.CLOSED

    async def read(self, first: int, last: int, /) -> list[Entry]:
        await asyncio.sleep(0)
        ledger = self._bookies.ledger(self.ledger_id)
        if not 0 <= first <= last:
            raise ArgumentError(f"{first} to {last}")
        if last > ledger.last_confirmed:
            raise NoSuchEntry(f"entry {last} of ledger {self.ledger_id}")
        return ledger.entries[first : last + 1]

    async def read_last_confirmed(self) -> int:
        await asyncio.sleep(0)
        self._last_add_confirmed = self._bookies.ledger(self.ledger_id).last_confirmed
        return self._last_add_confirmed

    async def read_last_written(self) -> Entry | None:
        await asyncio.sleep(0)
        entries = self._bookies.ledger(self.ledger_id).entries
        return entries[-1] if entries else None

    def tail(self, first_entry_id: int = 0) -> FakeTail:
        return FakeTail(self.ledger_id, self._bookies, first_entry_id)

    async def aclose(self) -> None:
        await asyncio.sleep(0)


class FakeTail:
    def __init__(self, ledger_id: int, bookies: FakeBookies, first_entry_id: int) -> None:
        self._ledger_id = ledger_id
        self._bookies = bookies
        self._next = first_entry_id

    async def next_entries(self, limit: int = 1024) -> list[Entry]:
        while True:
            ledger = self._bookies.ledger(self._ledger_id)
            if self._next <= ledger.last_confirmed:
                first, self._next = self._next, min(self._next + limit, ledger.last_confirmed + 1)
                return ledger.entries[first : self._next]
            if ledger.metadata.state is LedgerState.CLOSED:
                return []
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            ledger.waiters.append(waiter)
            await waiter

    async def aclose(self) -> None:
        await asyncio.sleep(0)


SMALL = LogSettings(roll_size_bytes=4096)
"""Segments that roll after a few entries."""


class Stage:
    """The surroundings of a test: one memory store, shared bookies, and any number of clients."""

    def __init__(self) -> None:
        self.host = real_host("test", seed=7)
        self.wall_us: int | None = None
        self.host = replace(self.host, clock=_SettableClock(self.host.clock, self))
        self.store = MemoryStore(self.host.clock)
        self.bookies = FakeBookies(self.store)
        self.clients = 0

    def logs(self, settings: LogClientSettings | None = None, *, ahead_s: float = 0.0) -> Logs:
        """Another client, with a metadata session and random streams of its own.

        Args:
            ahead_s: by how much its wall clock is ahead of the store's.
        """
        self.clients += 1
        clock = _SettableClock(self.host.clock, self, int(ahead_s * 1_000_000))
        host = replace(real_host(f"client-{self.clients}", seed=self.clients), clock=clock)
        return Logs(FakeClient(host, self.store, self.bookies), replace(settings or LogClientSettings(), owner_grace_s=0.05))

    def lagging_logs(self) -> tuple[Logs, LaggingTree]:
        """Another client, whose metadata reads may be behind; the tree says how."""
        logs = self.logs()
        tree = LaggingTree(self.store)
        self.client_of(logs).metadata.tree = tree
        return Logs(logs.client, logs.settings), tree

    def client_of(self, logs: Logs) -> FakeClient:
        assert isinstance(logs.client, FakeClient)
        return logs.client


class _SettableClock:
    """The host's clock, whose wall time a test may set."""

    def __init__(self, clock: Any, stage: Stage, ahead_us: int = 0) -> None:
        self._clock = clock
        self._stage = stage
        self._ahead_us = ahead_us

    def monotonic(self) -> float:
        return float(self._clock.monotonic())

    def elapsed(self) -> float:
        return float(self._clock.elapsed())

    def wall_us(self) -> int:
        return self._ahead_us + (int(self._clock.wall_us()) if self._stage.wall_us is None else self._stage.wall_us)

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Any:
        return self._clock.call_at(when, callback, *args)


def play(scene: Callable[[Stage], Coroutine[Any, Any, Result]]) -> Result:
    """Run a test's coroutine on a stage of its own, with a limit."""

    async def run() -> Result:
        async with asyncio.timeout(PLAY_LIMIT_S):
            return await scene(Stage())

    return asyncio.run(run())


async def read_values(logs: Logs, name: str, start: int, end: int) -> list[bytes | None]:
    """The values of the records from `start` to `end`, waiting for them."""
    values: list[bytes | None] = []
    async with await logs.reader(name, start) as reader:
        while reader.position < end:
            entry = await reader.next_entry(5)
            assert entry is not None, f"nothing after offset {reader.position} within five seconds"
            values += entry.values
    return values[: end - start]
