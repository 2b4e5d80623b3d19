"""Storage: journals, write cache, entry logs and index, with the order of writes that makes it safe.

An entry goes into the write cache and, in the same step, to the journal; it is acknowledged after the journal's sync. A flush freezes
the cache and writes, in this order, each step durable before the next: entries and changed states into entry logs; the index; the
journals' marks, at their positions when the cache was frozen. A crash between any two steps leaves entries in two places, never in none.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.entry_log_format import MAX_RUN_SPAN
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.journal_format import GroupPosition, GroupType, JournalGroup
from triplicate.bookie.core.ledger_data import LedgerData, decode_states, encode_states
from triplicate.bookie.core.ledger_table import LedgerHandle, LedgerTable, lac_of_entry
from triplicate.bookie.core.write_cache import Frozen, WriteCache
from triplicate.bookie.files import NO_SPACE, join
from triplicate.bookie.journal.closed_journal import ClosedJournal, JournalLimits, OpenJournal
from triplicate.bookie.journal.journal import Journal, JournalCallbacks
from triplicate.bookie.journal.journal_item import JournalItem
from triplicate.bookie.storage.ledger_storage import LedgerStorage, WrittenFlush
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, TriplicateError
from triplicate.runtime import Host, TaskScope, fault_point, resolve, sleep, timeout_at
from triplicate.wire import ADD_HEAD_BYTES, scan_adds

Result = TypeVar("Result")
FULL_DISK_RETRY_S = 1.0
SHARED_ENTRY_BYTES = 4096
"""Entries of at least this size share the chunk that they arrived in, if they are most of it."""
VIEW_OVERHEAD_BYTES = 200
"""Memory of a view beside the bytes that it shows."""


@dataclass(frozen=True, slots=True)
class StorageCallbacks:
    """Called by a storage on the loop."""

    on_failure: Callable[[OSError], None]
    """Once, when the journal or a flush failed for good; the bookie must stop."""
    on_group: Callable[[list[JournalItem]], None] = lambda items: None
    """After each journal group, with its items."""
    on_flush: Callable[[int], None] = lambda size_bytes: None
    """After each flush, with the memory that it freed, in bytes. During `Storage.open` on a worker."""
    on_full_disk: Callable[[bool], None] = lambda full: None
    """A flush finds no space (True), or one succeeds after that (False)."""
    on_journal_full: Callable[[OSError], None] | None = None
    """A journal refused a group for lack of space and continues, or could not open. None: the journal fails, and so does an `open` that
    finds no space to flush what it replays."""
    in_limbo: Callable[[int], Awaitable[bool]] | None = None
    """Whether a ledger may have lost entries here, called when it is loaded; None: no ledger has. May raise OSError."""


class Storage:
    """See the module's text. All methods are for the loop unless they say otherwise.

    Args:
        identity: goes into the header of every file.
    """

    def __init__(self, host: Host, settings: BookieSettings, identity: FileIdentity, callbacks: StorageCallbacks) -> None:
        self.cache = WriteCache()
        self.ledgers = LedgerTable(self.cache, settings.ledger_handles)
        self._host = host
        self._settings = settings
        self._callbacks = callbacks
        directories = [join(directory, "current") for directory in settings.ledger_directories]
        self.stored = LedgerStorage(host.disk, directories, identity, settings, host.trace, host.step_aside)
        self._closed_journals = [
            ClosedJournal(host.disk, join(directory, "current"), identity, JournalLimits.of(settings))
            for directory in settings.journal_directories
        ]
        self.journals: list[Journal] = []
        """Empty before `open`."""
        self.flush_number = 0
        """Number of the newest durable flush."""
        self._written: WrittenFlush | None = None
        """Progress of the flush that was tried last and has not ended. Only the writer's worker uses it."""
        self._without_space = False
        """The current flush found no space."""
        self.flushes = 0
        self._half_bytes = settings.write_cache_bytes // 2
        self._writer = host.new_worker("bookie-flush")
        self._reader = host.new_worker("bookie-read")
        self._filer = host.new_worker("bookie-journal-files")
        self._wanted = asyncio.Event()
        self._flush_waiters: list[asyncio.Future[None]] = []
        self._room: dict[object, Callable[[], None]] = {}
        self._scope = TaskScope("bookie storage", on_failure=self._flush_loop_failed)
        self._closing = False

    @property
    def _resumes(self) -> bool:
        """Whether the storage outlives a full disk."""
        return self._callbacks.on_journal_full is not None

    # Start and end.

    async def open(self) -> None:
        """Open everything, replay the journals, start flushing.

        Raises:
            CorruptionError, FormatError, WrongCluster, OSError: it cannot start, and says why.
        """
        opened = await self._writer.run(self._open)
        if any(journal.full for journal in opened):
            self._journal_full(OSError(errno.ENOSPC, "no space for a journal file"))
        if self.cache.frozen is not None:
            self._lack_space()
            self._wanted.set()
        callbacks = JournalCallbacks(self._group_synced, self._callbacks.on_failure, self._journal_full if self._resumes else None)
        # The list is filled, not replaced: others have held it since before the start.
        self.journals += [Journal(self._host.disk, self._host.clock, journal, callbacks) for journal in opened]
        for journal in self.journals:
            self._scope.spawn(journal.spares.run(self._filer), name=f"files of {journal.directory}")
        self._scope.spawn(self._flush_loop(), name="flush")

    def _open(self) -> list[OpenJournal]:
        """On a worker: nothing else runs yet, so it may change what later belongs to the loop."""
        journals = self._closed_journals
        marks = [journal.read_mark() for journal in journals]
        marked_flush = max([mark.flush_number for mark in marks if mark is not None], default=0)
        self.stored.open(marked_flush)
        self.flush_number = max(self.stored.index.fact("flush") or 0, marked_flush)
        for journal, mark in zip(journals, marks, strict=True):
            for group in journal.replay(mark):
                self._replay_group(group, journal.directory)
                if self.cache.active_bytes >= self._half_bytes or self.ledgers.crowded:
                    self._flush_replayed()
        opened: list[OpenJournal] = []
        with ExitStack() as on_error:
            for closed in journals:
                found = closed.open(resumes=self._resumes)
                on_error.callback(found.writer.close)
                opened.append(found)
            on_error.pop_all()
        return opened

    def _flush_replayed(self) -> None:
        """Make room for more of the journal. The marks stay, so the next start replays from the same place.

        On a full disk the frozen half waits for space, as in a running bookie. Memory then holds as much as the bounds of a running
        bookie allow behind the mark: both halves of the cache, each filled twice, and what waited for the journals.
        """
        settings = self._settings
        waiting_bytes = 2 * settings.journal_queue_bytes + settings.journal_group_bytes
        limit = 2 * settings.write_cache_bytes + len(self._closed_journals) * waiting_bytes
        frozen = self.cache.frozen
        if frozen is not None and self.cache.size_bytes < limit:
            return
        while True:
            frozen = frozen or self.cache.freeze(self.ledgers.pop_dirty())
            try:
                self._write_flush(frozen, [])
            except OSError as error:
                if error.errno not in NO_SPACE or not self._resumes:
                    raise
                if self.cache.size_bytes < limit:
                    return
                reason = f"there is no space to flush, and the journal holds more than the {limit} bytes that fit in memory"
                raise OSError(error.errno, reason, error.filename) from error
            self._flushed(frozen)
            frozen = None
            if self.cache.active_bytes < self._half_bytes:
                return

    def _replay_group(self, group: JournalGroup, where: str) -> None:
        if group.type is GroupType.STATES:
            for state in decode_states(group.body, group.count):
                handle = self._replay_handle(state.ledger_id)
                if handle.tombstone is None:
                    handle.merge(state)
                    self.ledgers.touch_state(handle)
            return
        body, position, found = group.body, 0, 0
        while position < len(body):
            run = scan_adds(body, position, len(body), self._settings.frame_limit_bytes)
            if run is None:
                break
            handle = self._replay_handle(run.ledger_id)
            if handle.tombstone is None:
                if handle.master_key is None:
                    handle.master_key = run.master_key
                    self.ledgers.touch_state(handle)
                entries, held_bytes = entries_of(body, run.offsets)
                self.store(handle, run.entry_ids, entries, run.last_add_confirmed, held_bytes)
            found += len(run.entry_ids)
            position = run.offsets[-1]
        if position != len(body) or found != group.count:
            raise CorruptionError(
                f"{where}: group {group.sequence} of journal file {group.file_number} says {group.count} adds, but byte {position} of its "
                "body begins none: it was written by another release or with a greater frame limit"
            )

    def _replay_handle(self, ledger_id: int) -> LedgerHandle:
        handle = self.ledgers.get(ledger_id)
        return handle if handle is not None else self.ledgers.add(self.stored.load(ledger_id))

    async def close(self, *, flush: bool) -> None:
        """Sync the journals. With `flush` also flush the cache, so that the next start replays nothing."""
        self._closing = True
        for journal in self.journals:
            await journal.close()
        self._scope.cancel()
        await self._scope.aclose()
        await self._filer.close()
        usable = flush and not any(journal.failed for journal in self.journals)
        if usable and self.cache.frozen is None and (self.cache.active or self.ledgers.any_dirty):
            await self._flush_once()
        await self._reader.close()
        await self._writer.run(lambda: self.stored.close(finish=usable))
        await self._writer.close()

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
        greatest = max(entry_ids)
        handle.last_entry_id = max(handle.last_entry_id, greatest)
        if last_add_confirmed >= greatest:
            # At least one header is wrong.
            last_add_confirmed = max(map(lac_of_entry, entries))
        if last_add_confirmed > handle.max_lac:
            handle.learn_lac(last_add_confirmed)
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
            loaded = await self._reader.run(self.stored.load, ledger_id)
            # Record and answer may be from before the bookie was visited.
            loaded.limbo = limbo and not self.ledgers.limbo_is_over
            handle = self.ledgers.add(loaded)
            if self.ledgers.crowded:
                self._wanted.set()
        return handle

    async def on_writer(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a function of `stored` on the writer's worker, between flushes."""
        with _faults_of_storage():
            return await self._writer.run(function, *args)

    async def on_reader(self, function: Callable[[], object]) -> None:
        """Run a function on the reader's worker. The function stores its own result."""
        await self._reader.run(function)

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

    # Flushing.

    async def flush(self) -> None:
        """Flush the current content of the cache, and return when it is durable."""
        target = self.flushes + (2 if self.cache.frozen is not None else 1)
        if not self.cache.active and not self.ledgers.any_dirty:
            target -= 1
        while self.flushes < target:
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
        positions = [journal.synced for journal in self.journals]
        frozen = self.cache.freeze(self.ledgers.pop_dirty())
        self.wake_waiters()
        await self._write_frozen(frozen, positions)

    async def _write_frozen(self, frozen: Frozen, positions: Sequence[GroupPosition]) -> None:
        """Write a flush, waiting until there is space for it."""
        while True:
            try:
                await self._writer.run(self._write_flush, frozen, positions)
            except OSError as error:
                if error.errno not in NO_SPACE or self._closing:
                    raise
                self._host.trace("bookie.flush_without_space", error=str(error))
                self._lack_space()
                await sleep(self._host.clock, FULL_DISK_RETRY_S)
            else:
                break
        self._flushed(frozen)
        if self._without_space:
            self._without_space = False
            self._callbacks.on_full_disk(False)
            self.wake_waiters()
        await self._writer.run(frozen.drop, self._host.step_aside)

    def _lack_space(self) -> None:
        self._without_space = True
        self._callbacks.on_full_disk(True)
        self.wake_waiters(refused=True)
        self._wake_flush_waiters()

    @fault_point("bookie.flush.done")
    def _flushed(self, frozen: Frozen) -> None:
        self.cache.release()
        self.ledgers.flushed(frozen.states)
        self.flushes += 1
        self._callbacks.on_flush(frozen.size_bytes)
        self._wake_flush_waiters()

    @fault_point("bookie.flush.writing")
    def _write_flush(self, frozen: Frozen, positions: Sequence[GroupPosition]) -> None:
        """On the writer's worker. The order of these three steps makes a crash harmless. A retry continues where the last attempt
        failed.
        """
        written = self._written
        if written is None or not self._still_holds(written, frozen):
            written = self._written = self.stored.write_logs(self._next_flush_number(), frozen)
        if not written.indexed:
            self.stored.write_index(written)
            self.flush_number = written.flush_number
        for journal, position in zip(self.journals, positions, strict=False):
            journal.write_mark(position, written.flush_number)
        self._written = None

    def _still_holds(self, written: WrittenFlush, frozen: Frozen) -> bool:
        """Whether the rows of a flush that is already in the logs are still valid."""
        return written.indexed or (written.flush_number > self.flush_number and written.dropped == frozen.dropped.copy())

    def _next_flush_number(self) -> int:
        """A number that no block has, also of a failed attempt."""
        return max(self.flush_number, self._written.flush_number if self._written is not None else 0) + 1

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
        up_to_flush = await self.on_writer(self._durable_flush)
        while await self.on_writer(self.stored.index.delete_runs, ledger_ids, up_to_flush):
            """Flushes and reads run between two pages."""
        await self.on_writer(self._write_deletion, ledger_ids, fenced, up_to_flush)
        self.ledgers.deletion_durable(ledger_ids)
        for ledger_id in ledger_ids:
            self._forget_again(ledger_id)

    def _durable_flush(self) -> int:
        """On the writer's worker: no flush is running that may have missed a deletion."""
        return self.flush_number

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

    @fault_point("bookie.delete_ledgers.writing")
    def _write_deletion(self, ledger_ids: Sequence[int], fenced: Sequence[LedgerData], up_to_flush: int) -> None:
        """On the writer's worker."""
        number = self._next_flush_number()
        if self.stored.delete_ledgers(number, ledger_ids, fenced, up_to_flush):
            self.flush_number = number

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
            dead, _ = await self.on_writer(self.stored.dead_logs, [*dead, *with_states])
        if not dead:
            return 0
        await self.on_writer(self.stored.forget_logs, dead)
        with _faults_of_storage():
            return await self._reader.run(self.stored.delete_logs, dead)

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


def is_most_of(size_bytes: int, buffer: bytes) -> bool:
    """Whether a part of a chunk is large enough to hold the whole chunk in memory instead of a copy of the part."""
    return 8 * size_bytes >= 7 * len(buffer)


def entries_of(buffer: bytes, offsets: Sequence[int]) -> tuple[list[Buffer], int]:
    """The entries of an `AddRun`, and the memory that they hold, in bytes.

    Small entries are copied, since a view holds the whole chunk in memory and costs more than it saves. Large entries that are most of
    the chunk share it, and the whole chunk counts.
    """
    count, size = len(offsets) - 1, offsets[-1] - offsets[0]
    if size >= SHARED_ENTRY_BYTES * count and is_most_of(size, buffer):
        view = memoryview(buffer)
        return [view[start + ADD_HEAD_BYTES : end] for start, end in pairwise(offsets)], len(buffer) + VIEW_OVERHEAD_BYTES * count
    return [buffer[start + ADD_HEAD_BYTES : end] for start, end in pairwise(offsets)], size - ADD_HEAD_BYTES * count
