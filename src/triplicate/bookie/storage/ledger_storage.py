"""Entry logs and index behind the journal: opened, rebuilt, written by flushes, and read. Everything here blocks.

Two workers use it at once: one writes (flush, deletion), one reads. The index serializes them with a lock of its own. Entry logs are
only appended to, and the reader's worker deletes files, so no file vanishes during a read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, groupby
from operator import itemgetter

from triplicate.bookie.core.entry_log_format import TRAILER, TRAILER_MAGIC, BlockInfo, BlockType
from triplicate.bookie.core.file_header import HEADER_BYTES, FileIdentity
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.core.ledger_table import LedgerHandle, lac_of_entry
from triplicate.bookie.core.write_cache import Frozen
from triplicate.bookie.directories import REPLACE
from triplicate.bookie.files import NO_SPACE, join
from triplicate.bookie.storage.entry_log_reader import EntryLogReader
from triplicate.bookie.storage.entry_log_writer import EntryLogWriter
from triplicate.bookie.storage.entry_logs import LogContent, drop_copies, existing_logs, finish_log, read_log, same_run, secure_log
from triplicate.bookie.storage.index import Index, delete_index
from triplicate.bookie.storage.ledger_dirs import LedgerDirs
from triplicate.bookie.storage.run_cache import RunCache
from triplicate.bookie.storage.run_copier import RunCopier
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, FormatError
from triplicate.runtime import Disk, Trace

INDEX_NAME = "index.db"
LEDGERS_AT_ONCE = 8
"""A flush writes this many ledgers, small ones in less than 0.3 ms, before it lets other threads run."""


@dataclass(slots=True)
class WrittenFlush:
    """The part of a flush that is durable in entry logs, and the rows that the index gets."""

    flush_number: int
    dropped: dict[int, LedgerData | None]
    """Copy of `Frozen.dropped` at the time of the write."""
    states: list[tuple[int, LedgerData]]
    """(log, state)"""
    runs: list[tuple[int, BlockInfo]]
    """(log, run)"""
    sizes: dict[int, int]
    """The durable lengths of the logs that have grown."""
    indexed: bool = False


class LedgerStorage:
    """Entry logs and index of one bookie.

    Args:
        directories: the ``current`` directories of the ledger directories.
        step_aside: called between pieces of a flush (`Host.step_aside`).
    """

    def __init__(
        self,
        disk: Disk,
        directories: Sequence[str],
        identity: FileIdentity,
        settings: BookieSettings,
        trace: Trace,
        step_aside: Callable[[], None] | None = None,
    ) -> None:
        self._disk = disk
        self._directories = directories
        self._trace = trace
        self._step_aside = step_aside
        self._settings = settings
        self._paths: dict[int, str] = {}
        self._identity = identity
        self._index: Index | None = None
        self._writer: EntryLogWriter | None = None
        self._reader: EntryLogReader | None = None
        self._windows: RunCache | None = None
        self._copier: RunCopier | None = None
        self._places: LedgerDirs | None = None
        self._unheard: list[int] = []
        """Logs that a flush has written to and that the index does not know yet."""
        self.rebuilt = False
        """Whether `open` rebuilt the index."""

    @property
    def index(self) -> Index:
        assert self._index is not None, "opened"
        return self._index

    @property
    def writer(self) -> EntryLogWriter:
        assert self._writer is not None, "opened"
        return self._writer

    @property
    def reader(self) -> EntryLogReader:
        assert self._reader is not None, "opened"
        return self._reader

    @property
    def copier(self) -> RunCopier:
        assert self._copier is not None, "opened"
        return self._copier

    # Start and end.

    def open(self, marked_flush: int) -> None:
        """Open index and logs; rebuild the index where it is missing, damaged, unfinished or older than the mark says.

        Args:
            marked_flush: the number of the flush that the journal's mark relies on.

        Raises:
            FormatError: written by a newer release. OSError.
        """
        path = join(self._directories[0], INDEX_NAME)
        self._paths = existing_logs(self._disk, self._directories)
        reason = self._open_index(path, marked_flush)
        if reason is not None:
            if self._index is not None:
                self._index.close()
            delete_index(self._disk, path)
            self._index = Index(self._disk, path, self._settings.index_cache_bytes)
            self._rebuild(reason, marked_flush)
        self._finish_logs()
        for directory in self._directories:
            # A deleted log must not reappear beside another log that has been given its number since.
            self._disk.sync_directory(directory)
        if self.index.fact("flush_log") is None and self._paths:
            self.index.set_flush_log(max(self._paths))
        numbers = count(max(self._paths, default=0) + 1)
        places = LedgerDirs(self._disk, self._directories, self._settings.disk_usage_threshold, max(self._paths, default=0) + 1)
        make = partial(EntryLogWriter, self._disk, places, self._identity, self._settings.entry_log_bytes, self._paths, numbers)
        self._writer = make()
        self._copier = RunCopier(self._disk, self.index, make(), self._paths)
        self._places = places
        self._reader = EntryLogReader(self._disk, self._paths, self._settings.read_cache_bytes)
        self._windows = RunCache(self.index)

    def _open_index(self, path: str, marked_flush: int) -> str | None:
        """Open the index; returns why it must be rebuilt, or None."""
        try:
            self._index = Index(self._disk, path, self._settings.index_cache_bytes)
            if not self._index.fact("complete"):
                return "there is none, or its making was interrupted"
            flush = self._index.fact("flush") or 0
            if flush < marked_flush:
                return f"it ends with flush {flush}, and the journal's mark relies on flush {marked_flush}"
            missing = [log for log in self._index.log_sizes() if log not in self._paths]
            if missing:
                self._trace("bookie.entry_logs_missing", logs=missing)
        except CorruptionError as error:
            return str(error)
        return None

    def _rebuild(self, reason: str, marked_flush: int) -> None:
        """Rebuild the rows from every entry log; the journal's replay adds the rest."""
        if self._paths:
            self._trace("bookie.index_rebuild", reason=reason, entry_logs=len(self._paths))
            self.rebuilt = True
        newest: dict[int, tuple[int, int, LedgerData]] = {}
        holders: dict[int, None] = {}
        broken: list[tuple[str, BlockInfo]] = []
        unfinished: list[LogContent] = []
        for number, path in self._paths.items():
            content = self._read_whole_log(number, path)
            if content is None:
                continue
            for flush_number, state in content.states:
                known = newest.get(state.ledger_id)
                if known is None:
                    newest[state.ledger_id] = flush_number, number, state
                elif known[0] <= flush_number:
                    newest[state.ledger_id] = flush_number, number, state.merged(known[2])
                else:
                    newest[state.ledger_id] = known[0], known[1], known[2].merged(state)
            content.states.clear()
            holders.update(dict.fromkeys(block.ledger_id for block in content.blocks if block.type is BlockType.RUN))
            if content.passed and not marked_flush:
                # Without a mark it is unknown which part of a flush the journal still holds.
                raise _damaged(path, content.passed[0].offset)
            broken += [(path, block) for block in (*content.passed, content.broken) if block is not None]
            if content.finished:
                self._index_log(content, content.size)
            else:
                unfinished.append(content)
        drop_copies(self._disk, unfinished, self._holds)
        for path, block in broken:
            # A block that a crash cut short belongs to a flush that the mark does not rely on, is a copy, or is a footer. Any other was
            # whole once.
            relied_on = block.type is not BlockType.FOOTER and block.flush_number <= marked_flush
            if relied_on and not self._stands_elsewhere(block, unfinished):
                raise _damaged(path, block.offset)
        # Only now: the next start regards a log with a footer as complete.
        for content in unfinished:
            # The index must not know more than a loss of power would leave.
            self._index_log(content, secure_log(self._disk, content))
        by_flush: dict[int, list[tuple[int, LedgerData]]] = {}
        for flush_number, number, state in newest.values():
            by_flush.setdefault(flush_number, []).append((number, state))
        for flush_number, states in sorted(by_flush.items()):
            self.index.add(flush_number, states, (), ())
        # A ledger without a state was deleted long ago, or belongs to a flush that did not end and stands in the journal.
        self.index.delete_ledgers([ledger_id for ledger_id in holders if ledger_id not in newest])
        self.index.remove_copies()
        found = self.index.fact("flush") or 0
        if found < marked_flush:
            raise CorruptionError(
                f"{self._directories[0]}: the entry logs end with flush {found}, and the journal's mark relies on flush {marked_flush}: "
                "an entry log is missing or cut; restore it, or let peers copy the entries to a new bookie"
            )
        self.index.mark_complete()
        if self._paths:
            self._trace("bookie.index_rebuilt", ledgers=len(newest))

    def _index_log(self, content: LogContent, size: int) -> None:
        runs = [(content.number, block) for block in content.blocks if block.type is BlockType.RUN]
        flush_number = max([block.flush_number for block in content.blocks], default=0)
        self.index.add(flush_number, (), runs, [(content.number, size)])

    def _holds(self, run: BlockInfo) -> bool:
        return any(same_run(run, known) for _, known in self.index.runs_holding(run.ledger_id, run.last))

    def _stands_elsewhere(self, block: BlockInfo, unfinished: Sequence[LogContent]) -> bool:
        """Whether a finished log, or one of `others`, holds the same run."""
        others = [other for content in unfinished for other in content.blocks if other.ledger_id == block.ledger_id]
        return any(_same_run(block, run) for run in [*others, *[run for _, run in self.index.runs_of(block.ledger_id)]])

    def _read_log(self, number: int, path: str, *, with_states: bool) -> LogContent | None:
        """A log's content, or None if even its header is unreadable."""
        try:
            return read_log(self._disk, number, path, with_states=with_states, trace=self._trace, pass_torn_runs=with_states)
        except CorruptionError as error:
            self._trace("bookie.entry_log_unreadable", path=path, error=str(error))
            return None

    def _read_whole_log(self, number: int, path: str) -> LogContent | None:
        """A log's content for a rebuild. Damage is refused, since an entry that is skipped now would later be answered with "no such
        entry".

        Returns:
            None for a log whose header never became durable: it holds nothing.

        Raises:
            CorruptionError: part of the log is damaged.
        """
        content = self._read_log(number, path, with_states=True)
        damaged_at = content.damaged_at if content is not None else 0
        if content is None and self._size_of(path) <= HEADER_BYTES:
            return None
        if content is None or damaged_at is not None:
            raise _damaged(path, damaged_at)
        return content

    def _size_of(self, path: str) -> int:
        file = self._disk.open(path, readonly=True)
        try:
            return file.size()
        finally:
            file.close()

    def _finish_logs(self) -> None:
        """Give footers to logs that a crash left open, cut to the length that the index knows. Delete logs that the index does not know."""
        sizes = self.index.log_sizes()
        finished: list[tuple[int, int]] = []
        for number, path in list(self._paths.items()):
            durable = sizes.get(number)
            if durable is None:
                # The index does not know its flush: the journal has everything, or, for a copy, the old place is valid.
                del self._paths[number]
                self._disk.delete(path)
                self._trace("bookie.entry_log_discarded", path=path)
            elif self._size_of(path) != durable or not self._ends_with_footer(path):
                content = self._read_log(number, path, with_states=False)
                size = self._finish_log(content, durable) if content is not None else None
                if size is not None:
                    finished.append((number, size))
        if finished:
            self._unless_full(lambda: self.index.set_sizes(finished))

    def _finish_log(self, content: LogContent, durable: int) -> int | None:
        found: list[int | None] = []
        self._unless_full(lambda: found.append(finish_log(self._disk, content, durable, self._trace)))
        return found[0] if found else None

    def _unless_full(self, act: Callable[[], None]) -> None:
        """Do optional start-up work (footers, sizes). It is skipped when the disk is full; the next start retries it."""
        try:
            act()
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            self._trace("bookie.left_for_lack_of_space", path=error.filename, error=str(error))

    def _ends_with_footer(self, path: str) -> bool:
        file = self._disk.open(path, readonly=True)
        try:
            size = file.size()
            return size >= TRAILER.size and file.pread(len(TRAILER_MAGIC), size - TRAILER.size) == TRAILER_MAGIC
        finally:
            file.close()

    def close(self, *, finish: bool) -> None:
        """Close the files. With `finish` the log being filled gets its footer."""
        if self._writer is not None:
            if finish:
                self._writer.finish()
                self.copier.finish()
            self._writer.abandon()
            self.copier.abandon()
        if self._reader is not None:
            self._reader.close()
        if self._index is not None:
            self._index.close()

    # The writer's worker.

    def write_logs(self, flush_number: int, frozen: Frozen) -> WrittenFlush:
        """Write the entries and states of a flush into entry logs and sync them. `write_index` must follow, at once or after other work
        here.
        """
        tries = len(self._directories)
        while True:
            try:
                written = self._write_logs(flush_number, frozen)
            except OSError as error:
                tries -= 1
                if not self.writer.abandon(error) or not tries:
                    raise
                self._trace("bookie.directory_passed_over", error=str(error))
            else:
                self._unheard = list(written.sizes)
                return written

    def _write_logs(self, flush_number: int, frozen: Frozen) -> WrittenFlush:
        writer = self.writer
        dropped = frozen.dropped.copy()
        runs: list[tuple[int, BlockInfo]] = []
        for number, (ledger_id, table) in enumerate(frozen.tables.items(), 1):
            if ledger_id not in dropped:
                runs += writer.runs(flush_number, ledger_id, table)
            if self._step_aside is not None and not number % LEDGERS_AT_ONCE:
                self._step_aside()
        left = [state for state in frozen.states if state.ledger_id not in dropped]
        left += [state for state in dropped.values() if state is not None]
        states: list[tuple[int, LedgerData]] = []
        if left or not runs:
            # The logs must record the flush's number even if nothing of the flush is left, since the journal's mark relies on it.
            log = writer.states(flush_number, left)
            states = [(log, state) for state in left]
        return WrittenFlush(flush_number, dropped, states, runs, writer.sync())

    def write_index(self, written: WrittenFlush) -> None:
        """Write the rows of a flush into the index, durably. May be retried."""
        self.index.add(written.flush_number, written.states, written.runs, written.sizes.items(), self._step_aside)
        written.indexed = True
        self._unheard = []

    def delete_ledgers(self, flush_number: int, ledger_ids: Sequence[int], fenced: Sequence[LedgerData], up_to_flush: int) -> bool:
        """Delete ledgers. Tombstones of fenced ones are first written to the entry log, as a flush of that number.

        Args:
            up_to_flush: as for `Index.delete_ledgers`.
            fenced: tombstones of the ledgers that are in memory and fenced. The index has the fences of the others.

        Returns:
            whether the flush's number was used.
        """
        kept = {state.ledger_id: state for state in fenced}
        for ledger_id in ledger_ids:
            known = self.index.ledger(ledger_id) if ledger_id not in kept else None
            if known is not None and known[0].fenced:
                kept[ledger_id] = known[0].tombstone()
        if not kept:
            self.index.delete_ledgers(ledger_ids, up_to_flush)
            return False
        try:
            log = self.writer.states(flush_number, list(kept.values()))
            sizes = self.writer.sync()
        except OSError as error:
            self.writer.abandon(error)
            raise
        self.index.delete_ledgers([ledger_id for ledger_id in ledger_ids if ledger_id not in kept], up_to_flush)
        self.index.add(flush_number, [(log, state) for state in kept.values()], (), sizes.items())
        return True

    def dead_logs(self, logs: Sequence[int] | None = None) -> tuple[list[int], list[int]]:
        """(logs in which nothing lives, logs without runs that hold the newest state record of a ledger).

        Args:
            logs: those to check; None: all.
        """
        busy = set(self._busy())
        dead: list[int] = []
        with_states: list[int] = []
        for log in list(self._paths) if logs is None else logs:
            if log not in busy and log in self._paths:
                runs, states = self.index.lives_in(log)
                if not runs:
                    (with_states if states else dead).append(log)
        return dead, with_states

    def _busy(self) -> list[int]:
        """Logs being written, and the log that ends the newest flush: a rebuild without it would take the flush for missing."""
        return [*self._unheard, *self.writer.busy, *self.copier.busy, self.index.fact("flush_log") or -1]

    def finished_logs(self) -> dict[int, int]:
        """Sizes of the logs that are no longer written."""
        busy = self._busy()
        return {log: size for log, size in self.index.log_sizes().items() if log in self._paths and log not in busy}

    def has_room(self, size_bytes: int) -> bool:
        """Whether a copy of this size leaves a directory the room that recoveries need."""
        assert self._places is not None, "opened"
        needed = size_bytes + self._settings.recovery_adds_free_bytes
        return any(self._places.free_bytes(directory) >= needed for directory in self._directories)

    def begin_compaction(self, log: int, living_bytes: int) -> None:
        self.copier.begin(log, living_bytes + self._settings.recovery_adds_free_bytes)

    def carry_states(self, log: int) -> bool:
        """Copy a page of state records out of a log that is otherwise dead, each under its own flush. Returns True if there may be more."""
        found = self.index.states_in(log)
        moved: list[tuple[int, int]] = []
        try:
            for flush_number, group in groupby(found, key=itemgetter(0)):
                states = [state for _, state in group]
                target = self.writer.states(flush_number, states)
                moved += [(state.ledger_id, target) for state in states]
            sizes = self.writer.sync()
        except OSError as error:
            self.writer.abandon(error)
            raise
        if moved:
            self.index.move_states(log, moved, sizes.items())
        return bool(found)

    def forget_logs(self, logs: Sequence[int]) -> None:
        self.index.delete_logs(logs)

    # The reader's worker.

    def load(self, ledger_id: int) -> LedgerHandle:
        """A ledger's handle from the index; one that does not exist has no master key."""
        handle = LedgerHandle(ledger_id)
        known = self.index.ledger(ledger_id)
        if known is not None:
            state, handle.last_entry_id = known
            handle.merge(state)
            handle.fence_durable = state.fenced
            handle.dirty = False
            self._load_lac(handle)
        else:
            handle.tombstone = self.index.tombstone(ledger_id)
            handle.fenced = handle.fence_durable = handle.tombstone is not None
        return handle

    def _load_lac(self, handle: LedgerHandle) -> None:
        """The last-add-confirmed of the last stored entry. A ledger whose last entry is unreadable is served all the same."""
        if handle.last_entry_id < 0:
            return
        try:
            entry = self.read(handle.ledger_id, handle.last_entry_id)
            if entry is not None:
                handle.learn_lac(lac_of_entry(entry))
        except (CorruptionError, FormatError, OSError) as error:
            handle.lac_unreadable = True
            self._trace("bookie.last_entry_unreadable", ledger_id=handle.ledger_id, entry_id=handle.last_entry_id, error=str(error))

    def read(self, ledger_id: int, entry_id: int) -> bytes | None:
        """The newest stored copy of an entry, or None. Raises CorruptionError, OSError."""
        assert self._windows is not None, "opened"
        for log, run in self._windows.holding(ledger_id, entry_id):
            entry = self.reader.entry(log, run, entry_id)
            if entry is not None:
                return entry
        return None

    def stretch(self, ledger_id: int, entry_id: int, count_max: int, size_max: int) -> tuple[bytes, int] | None:
        """Consecutive entries of one run, from `entry_id` on, each as ``u32 size, entry``, and their count. None if they are not in one
        run.

        Raises:
            CorruptionError: sizes are damaged. OSError.
        """
        assert self._windows is not None, "opened"
        place = self._windows.alone(ledger_id, entry_id)
        if place is None:
            return None
        log, run, last = place
        return self.reader.stretch(log, run, entry_id, min(count_max, last - entry_id + 1), size_max)

    def entry_ids(self, ledger_id: int) -> list[range]:
        """Ids of all stored entries of a ledger, as runs in no order, which may overlap."""
        found: list[range] = []
        for log, run in self.index.runs_of(ledger_id):
            if run.count == run.last - run.first + 1:
                found.append(range(run.first, run.last + 1))
            else:
                found += consecutive(self.reader.ids(log, run))
        return found

    def delete_logs(self, logs: Sequence[int]) -> int:
        """Delete the files of logs that the index has forgotten; returns the bytes freed."""
        freed = 0
        for log in logs:
            self.reader.forget(log)
            path = self._paths.pop(log, None)
            if path is not None and self._disk.exists(path):
                file = self._disk.open(path, readonly=True)
                freed += file.size()
                file.close()
                self._disk.delete(path)
        return freed


def consecutive(entry_ids: Iterable[int]) -> list[range]:
    """Ascending ids as maximal runs."""
    found: list[range] = []
    start = stop = -1
    for entry_id in entry_ids:
        if entry_id != stop:
            if stop > start:
                found.append(range(start, stop))
            start = entry_id
        stop = entry_id + 1
    if stop > start:
        found.append(range(start, stop))
    return found


def _same_run(one: BlockInfo, other: BlockInfo) -> bool:
    """Whether two blocks are copies of each other."""
    return (one.type, one.flush_number, one.first, one.last) == (other.type, other.flush_number, other.first, other.last)


def _damaged(path: str, offset: int | None) -> CorruptionError:
    return CorruptionError(
        f"{path}: damaged at byte {offset}, and the index that knew the rest is gone: restore the file from a backup; if there is none, "
        f"move all data of this bookie away, run {REPLACE}, and let its peers copy the entries"
    )
