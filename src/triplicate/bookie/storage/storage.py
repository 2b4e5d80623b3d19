"""Storage: journals, write cache, entry logs and index, with the order of writes that makes it safe.

An entry goes into the write cache and, in the same step, to the journal; it is acknowledged after the journal's sync. A flush freezes
the cache and writes, in this order, each step durable before the next: entries and changed states into entry logs; the index; the
journals' marks, at their positions when the cache was frozen. A crash between any two steps leaves entries in two places, never in none.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.entry_log_format import MAX_RUN_SPAN, BlockInfo
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.journal_format import GroupType
from triplicate.bookie.core.ledger_data import LedgerData, encode_states
from triplicate.bookie.core.ledger_table import LedgerHandle
from triplicate.bookie.core.write_cache import Frozen
from triplicate.bookie.files import NO_SPACE
from triplicate.bookie.journal.journal import Journal, JournalCallbacks
from triplicate.bookie.journal.journal_item import JournalItem
from triplicate.bookie.storage.flusher import FlushMark
from triplicate.bookie.storage.run_check import RunCheck
from triplicate.bookie.storage.storage_replay import ReplayedStorage, replay_storage
from triplicate.config import BookieSettings
from triplicate.errors import TriplicateError
from triplicate.runtime import Host, TaskScope, Worker, fault_point, resolve, sleep, timeout_at

Result = TypeVar("Result")
FULL_DISK_RETRY_S = 1.0
NOTHING_STORED = (0, -1)
"""The `Storage.extent` of a ledger without stored entries."""


@dataclass(frozen=True, slots=True)
class StorageCallbacks:
    """Called by a storage on the loop."""

    on_failure: Callable[[OSError], None]
    """Once, when the journal or a flush failed for good; the bookie must stop."""
    on_group: Callable[[list[JournalItem]], None] = lambda items: None
    """After each journal group, with its items."""
    on_flush: Callable[[int], None] = lambda size_bytes: None
    """After each flush, with the memory that it freed, in bytes. While the journals are replayed, on a worker."""
    on_full_disk: Callable[[bool], None] = lambda full: None
    """A flush finds no space (True), or one succeeds after that (False)."""
    on_journal_full: Callable[[OSError], None] | None = None
    """A journal refused a group for lack of space and continues, or could not open. None: the journal fails, and so does an `open` that
    finds no space to flush what it replays."""
    in_limbo: Callable[[int], Awaitable[bool]] | None = None
    """Whether a ledger may have lost entries here, called when it is loaded; None: no ledger has. May raise OSError."""


@dataclass(frozen=True, slots=True)
class StorageWorkers:
    """The threads of one storage."""

    writer: Worker
    """Writes entry logs and index."""
    reader: Worker
    """Reads them, and deletes their files."""
    filer: Worker
    """Prepares journal files."""

    @classmethod
    def new(cls, host: Host) -> StorageWorkers:
        return cls(host.new_worker("bookie-flush"), host.new_worker("bookie-read"), host.new_worker("bookie-journal-files"))

    async def on_writer(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a function on the writer. An unexpected error becomes an OSError."""
        with _faults_of_storage():
            return await self.writer.run(function, *args)

    async def aclose(self) -> None:
        """End the threads. Idempotent."""
        await self.filer.close()
        await self.reader.close()
        await self.writer.close()


class Storage:
    """See the module's text; `open` makes one. All methods are for the loop unless they say otherwise."""

    def __init__(
        self, host: Host, settings: BookieSettings, callbacks: StorageCallbacks, workers: StorageWorkers, replayed: ReplayedStorage
    ) -> None:
        self.cache = replayed.cache
        self.ledgers = replayed.ledgers
        self.stored = replayed.stored
        self.flusher = replayed.flusher
        self.workers = workers
        self._host = host
        self._settings = settings
        self._callbacks = callbacks
        journal_callbacks = JournalCallbacks(
            self._group_synced, callbacks.on_failure, self._journal_full if callbacks.on_journal_full is not None else None
        )
        self.journals = [Journal(host.disk, host.clock, journal, journal_callbacks) for journal in replayed.journals]
        self._without_space = False
        """The current flush found no space."""
        self._half_bytes = settings.write_cache_bytes // 2
        self._wanted = asyncio.Event()
        self._flush_waiters: list[asyncio.Future[None]] = []
        self._room: dict[object, Callable[[], None]] = {}
        self._scope = TaskScope("bookie storage", on_failure=self._flush_loop_failed)
        self._closing = False

    # Start and end.

    @classmethod
    async def open(
        cls, host: Host, settings: BookieSettings, identity: FileIdentity, callbacks: StorageCallbacks, workers: StorageWorkers
    ) -> Storage:
        """Open everything, replay the journals, start flushing.

        Args:
            identity: goes into the header of every file.
            workers: stay the caller's, who closes them after the storage.

        Raises:
            CorruptionError, FormatError, WrongCluster, OSError: it cannot start, and says why.
        """
        found: list[ReplayedStorage] = []

        def replay() -> None:
            resumes = callbacks.on_journal_full is not None
            found.append(replay_storage(host, settings, identity, callbacks.on_flush, resumes=resumes))

        def close_replayed() -> None:
            for each in found:
                each.close()

        try:
            await workers.writer.run(replay)
        except BaseException:
            # The worker goes on after a cancellation, so it also closes what it opens.
            await workers.writer.run(close_replayed)
            raise
        storage = cls(host, settings, callbacks, workers, found[0])
        storage._start(found[0])
        return storage

    def _start(self, replayed: ReplayedStorage) -> None:
        if any(journal.full for journal in replayed.journals):
            self._journal_full(OSError(errno.ENOSPC, "no space for a journal file"))
        if self.cache.frozen is not None:
            self._lack_space()
            self._wanted.set()
        for journal in self.journals:
            self._scope.spawn(journal.spares.run(self.workers.filer), name=f"files of {journal.directory}")
        self._scope.spawn(self._flush_loop(), name="flush")

    async def close(self, *, flush: bool) -> None:
        """Sync the journals. With `flush` also flush the cache, so that the next start replays nothing."""
        self._closing = True
        for journal in self.journals:
            await journal.close()
        self._scope.cancel()
        await self._scope.aclose()
        await self.workers.filer.close()
        usable = flush and not any(journal.failed for journal in self.journals)
        if usable and self.cache.frozen is None and (self.cache.active or self.ledgers.any_dirty):
            await self._flush_once()
        await self.workers.reader.close()
        await self.workers.writer.run(lambda: self.stored.close(finish=usable))
        await self.workers.writer.close()

    def set_short_of_space(self, short: bool) -> None:
        """While the disks are `short` of space, keep no journal file beside the next one. On any worker. Raises OSError."""
        for journal in self.journals:
            journal.set_short_of_space(short)

    # Writing.

    def store(
        self, handle: LedgerHandle, entry_ids: Sequence[int], entries: Sequence[Buffer], last_add_confirmed: int, held_bytes: int
    ) -> None:
        """Put entries into the cache. They are readable at once, and durable when the journal reports it.

        Args:
            last_add_confirmed: the greatest in the entries' headers; -1 if they cannot be trusted.
            held_bytes: memory that the entries hold.
        """
        self.cache.put(handle.ledger_id, entry_ids, entries, held_bytes)
        handle.entries_stored(entry_ids, entries, last_add_confirmed)
        if self.cache.active_bytes >= self._half_bytes:
            self._wanted.set()

    def store_one(self, handle: LedgerHandle, entry_id: int, entry: bytes, last_add_confirmed: int) -> None:
        """As `store` for one entry with a plausible header."""
        cache = self.cache
        cache.put_one(handle.ledger_id, entry_id, entry)
        if entry_id > handle.last_entry_id:
            handle.last_entry_id = entry_id
        if last_add_confirmed > handle.max_lac:
            handle.learn_lac(last_add_confirmed)
        if cache.active_bytes >= self._half_bytes:
            self._wanted.set()

    def _group_synced(self, items: list[JournalItem]) -> None:
        self._callbacks.on_group(items)
        self.wake_waiters()

    def _journal_full(self, error: OSError) -> None:
        """Wake all waiters after a refused group. Their requests find the bookie read-only."""
        if self._callbacks.on_journal_full is not None:
            self._callbacks.on_journal_full(error)
        self.wake_waiters(refused=True)

    def journal_of(self, ledger_id: int) -> Journal:
        return self.journals[ledger_id % len(self.journals)]

    def journal_state(self, handle: LedgerHandle, then: Callable[[bool], None]) -> None:
        """Journal a ledger's whole state. `then` is called with whether it was synced. Raises OSError: the journal is closed."""
        body, _ = encode_states([handle.state()])
        self.ledgers.touch_state(handle)
        self.journal_of(handle.ledger_id).submit(JournalItem(GroupType.STATES, [body], len(body), 1, then=then))

    @fault_point("bookie.force")
    def journal_barrier(self, ledger_id: int, then: Callable[[bool], None]) -> None:
        """Call `then` after a sync that covers everything submitted for the ledger before. Raises OSError."""
        self.journal_of(ledger_id).barrier(then)

    @property
    def crowded(self) -> bool:
        """Past the first bound: connections are not read until `call_when_room` calls."""
        return self._beyond(1)

    @property
    def full(self) -> bool:
        """Past the second bound: adds are refused."""
        return self._beyond(2)

    def _beyond(self, times: int) -> bool:
        if self.cache.active_bytes >= times * self._half_bytes:
            return True
        limit = times * self._settings.journal_queue_bytes
        # A plain loop: this runs for every run of adds, and with many ledgers a run is one entry.
        for journal in self.journals:  # noqa: SIM110
            if journal.commit.waiting_bytes >= limit:
                return True
        return False

    def call_when_room(self, waiting: object, callback: Callable[[], None]) -> None:
        """Register a callback for when there may be room again, once per `waiting`."""
        self._room[waiting] = callback
        self._wanted.set()

    def forget_waiter(self, waiting: object) -> None:
        """Unregister a waiter that is gone."""
        self._room.pop(waiting, None)

    def wake_waiters(self, *, refused: bool = False) -> None:
        """Call the waiters back if there is room. Called after every group and flush.

        Args:
            refused: call them in any case: adds are refused from now on, and reads and fences proceed.
        """
        if self._room and (refused or not self.crowded):
            waiting, self._room = self._room, {}
            for callback in waiting.values():
                callback()

    # Reading.

    async def load(self, ledger_id: int) -> LedgerHandle:
        """A ledger's handle, loaded from the index if it is not in memory. Raises CorruptionError; OSError, also if memory is full."""
        handle = self.ledgers.get(ledger_id)
        if handle is None:
            while not self.ledgers.has_room():
                flushing = self.cache.frozen is not None or self.cache.active or self.ledgers.any_dirty
                if self._without_space or not flushing:
                    raise OSError(errno.ENOBUFS, "too many ledgers are in use or wait to be flushed")
                await self._next_flush()
            # Limbo is checked first: no write may come between the look-up in the index and `add`.
            in_limbo = self._callbacks.in_limbo
            limbo = in_limbo is not None and await in_limbo(ledger_id)
            loaded = await self.workers.reader.run(self.stored.load, ledger_id)
            # Record and answer may be from before the bookie was visited.
            loaded.limbo = limbo and not self.ledgers.limbo_is_over
            handle = self.ledgers.add(loaded)
            if self.ledgers.crowded:
                self._wanted.set()
        return handle

    async def on_writer(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a function of `stored` on the writer's worker, between flushes."""
        return await self.workers.on_writer(function, *args)

    async def on_reader(self, function: Callable[[], object]) -> None:
        """Run a function on the reader's worker. The function stores its own result."""
        await self.workers.reader.run(function)

    def read(self, ledger_id: int, entry_id: int) -> bytes | None:
        """An entry from cache or logs, or None. On the reader's worker. Raises CorruptionError, OSError."""
        entry = self.cache.get(ledger_id, entry_id)
        return entry if entry is not None else self.stored.read(ledger_id, entry_id)

    def stretch(self, ledger_id: int, entry_id: int, count_max: int, size_max: int) -> tuple[bytes, int] | None:
        """Consecutive stored entries and their count: see `LedgerStorage.stretch`. On the reader's worker."""
        # The cache is checked first: entries that a flush moves meanwhile are then in the index.
        if not self.cache.lacks(ledger_id, range(entry_id, entry_id + min(count_max, MAX_RUN_SPAN))):
            return None
        return self.stored.stretch(ledger_id, entry_id, count_max, size_max)

    def new_run_check(self, log: int, runs: Sequence[BlockInfo], is_right: Callable[[bytes], bool] | None) -> RunCheck:
        """A check of runs of one ledger, for a worker of the caller's. Args as for `RunCheck`."""
        stored = self.stored

        def counts(entry_id: int, run: BlockInfo) -> bool:
            # The cache is checked first: a newer copy that a flush moves meanwhile is then in the index.
            return self.cache.get(run.ledger_id, entry_id) is None and stored.copy_counts(log, run, entry_id)

        return RunCheck(self._host.disk, stored.path_of(log), log, runs, is_right, counts, self._host.step_aside)

    # Flushing.

    async def flush(self) -> None:
        """Flush the current content of the cache, and return when it is durable."""
        target = self.flusher.flushes + (2 if self.cache.frozen is not None else 1)
        if not self.cache.active and not self.ledgers.any_dirty:
            target -= 1
        while self.flusher.flushes < target:
            await self._next_flush()

    async def _next_flush(self) -> None:
        """Wait until a flush has ended, or found no space."""
        self._wanted.set()
        done = asyncio.get_running_loop().create_future()
        self._flush_waiters.append(done)
        await done

    def _wake_flush_waiters(self) -> None:
        waiters, self._flush_waiters = self._flush_waiters, []
        for waiter in waiters:
            resolve(waiter, None)

    async def _flush_loop(self) -> None:
        while True:
            try:
                async with timeout_at(self._host.clock.monotonic() + self._settings.flush_interval_s):
                    await self._wanted.wait()
            except TimeoutError:
                pass  # No flush was requested within the interval: write what has gathered.
            self._wanted.clear()
            if self.cache.frozen is not None:
                # The start found no space for this flush.
                await self._write_frozen(self.cache.frozen, [])
            if self.cache.active or self.ledgers.any_dirty:
                await self._flush_once()
            self.wake_waiters()

    @fault_point("bookie.flush")
    async def _flush_once(self) -> None:
        # Everything synced so far was in the cache before, so this flush covers it.
        marks = [FlushMark(journal, journal.synced) for journal in self.journals]
        frozen = self.cache.freeze(self.ledgers.pop_dirty())
        self.wake_waiters()
        await self._write_frozen(frozen, marks)

    async def _write_frozen(self, frozen: Frozen, marks: Sequence[FlushMark]) -> None:
        """Write a flush, waiting until there is space for it."""
        while True:
            try:
                await self.workers.writer.run(self.flusher.write, frozen, marks)
            except OSError as error:
                if error.errno not in NO_SPACE or self._closing:
                    raise
                self._host.trace("bookie.flush_without_space", error=str(error))
                self._lack_space()
                await sleep(self._host.clock, FULL_DISK_RETRY_S)
            else:
                break
        self.flusher.release(frozen)
        self._wake_flush_waiters()
        if self._without_space:
            self._without_space = False
            self._callbacks.on_full_disk(False)
            self.wake_waiters()
        await self.workers.writer.run(frozen.drop, self._host.step_aside)

    def _lack_space(self) -> None:
        self._without_space = True
        self._callbacks.on_full_disk(True)
        self.wake_waiters(refused=True)
        self._wake_flush_waiters()

    def _flush_loop_failed(self, error: BaseException) -> None:
        self._callbacks.on_failure(error if isinstance(error, OSError) else OSError(errno.EIO, f"a flush failed: {error!r}"))

    # Deleting.

    @fault_point("bookie.delete_ledgers")
    async def delete_ledgers(self, ledger_ids: Sequence[int]) -> None:
        """Delete ledgers from memory, then from the index. Entry logs are deleted once nothing else lives in them. Fenced ledgers stay
        fenced for good.

        Raises:
            OSError: they are deleted in memory and not on disk; retry unless a sync failed. CorruptionError.
        """
        fenced: list[LedgerData] = []
        for ledger_id in ledger_ids:
            kept = self.ledgers.forget(ledger_id)
            if kept is not None:
                fenced.append(kept)
            self.cache.drop_ledger(ledger_id, kept)
        up_to_flush = await self.on_writer(self.flusher.durable_flush)
        while await self.on_writer(self.stored.index.delete_runs, ledger_ids, up_to_flush):
            """Flushes and reads run between two pages."""
        await self.on_writer(self.flusher.write_deletion, ledger_ids, fenced, up_to_flush)
        self.ledgers.deletion_durable(ledger_ids)
        for ledger_id in ledger_ids:
            self._forget_again(ledger_id)

    @fault_point("bookie.delete_copies")
    async def delete_copies(self, ledger_id: int, up_to_flush: int) -> None:
        """Delete a ledger's stored entries and keep its state: it stays fenced, and recovery adds may store the entries again.

        Args:
            up_to_flush: entries of later flushes stay.

        Raises:
            OSError, CorruptionError: some may be deleted; retry unless a sync failed.
        """
        while await self.on_writer(self.stored.index.delete_runs, [ledger_id], up_to_flush):
            """Flushes and reads run between two pages."""
        await self.on_writer(self.stored.index.delete_copies, ledger_id, up_to_flush)
        if await self.extent(ledger_id) == NOTHING_STORED and (handle := self.ledgers.get(ledger_id)) is not None:
            handle.last_entry_id = -1

    def _forget_again(self, ledger_id: int) -> None:
        """Forget a ledger that was loaded again while it was deleted. A ledger with entries added since stays."""
        handle, frozen = self.ledgers.get(ledger_id), self.cache.frozen
        if handle is None or not handle.exists:
            return
        flushing = frozen is not None and ledger_id in frozen.tables and ledger_id not in frozen.dropped
        if handle.dirty or flushing or ledger_id in self.cache.active:
            # Its row in the index may be gone, and without it the new entries would never be found.
            self.ledgers.touch_state(handle)
        else:
            self.ledgers.forget(ledger_id)

    async def delete_dead_logs(self, logs: Sequence[int] | None = None) -> int:
        """Delete entry logs in which nothing lives; returns the bytes freed. Raises OSError, CorruptionError.

        Args:
            logs: those to check; None: all.
        """
        dead, with_states = await self.on_writer(self.stored.dead_logs, logs)
        for log in with_states:
            more = True
            while more:
                more = await self.on_writer(self.stored.carry_states, log)
        if with_states:
            dead = (await self.on_writer(self.stored.dead_logs, [*dead, *with_states])).dead
        if not dead:
            return 0
        await self.on_writer(self.stored.forget_logs, dead)
        with _faults_of_storage():
            return await self.workers.reader.run(self.stored.delete_logs, dead)

    async def extent(self, ledger_id: int) -> tuple[int, int] | None:
        """A mark of what is stored of a ledger, which changes with each entry; None while something of it waits for a flush."""
        extent: tuple[int, int] = await self.on_writer(self.stored.index.extent, ledger_id)
        # Looked at last: the caller may act at once on the answer, before anything else is added.
        handle = self.ledgers.get(ledger_id)
        is_flushed = (handle is None or not handle.dirty) and ledger_id not in self.cache.active and self.cache.frozen is None
        return extent if is_flushed else None

    async def ledger_ids(self) -> list[int]:
        """Every ledger that this bookie knows, ascending."""
        found = set(self.ledgers.ids())
        after = -1
        while page := await self.on_writer(self.stored.index.ledger_ids, after):
            found.update(page)
            after = page[-1]
        return sorted(found)


@contextmanager
def _faults_of_storage() -> Iterator[None]:
    """An unexpected error leaves files in an unknown state. It ends the bookie, as an error of the disk does."""
    try:
        yield
    except (TriplicateError, OSError):
        raise
    except Exception as error:
        raise OSError(errno.EIO, f"the storage failed: {error!r}") from error
