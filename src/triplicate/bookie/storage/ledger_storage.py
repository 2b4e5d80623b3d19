"""Entry logs and index behind the journal: opened, rebuilt, written by flushes, and read. Everything here blocks.

Two workers use it at once: one writes (flush, deletion), one reads. The index serializes them with a lock of its own. Entry logs are
only appended to, and the reader's worker deletes files, so no file vanishes during a read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count, groupby
from operator import itemgetter
from typing import NamedTuple

from triplicate.bookie.core.entry_log_format import BlockInfo, consecutive
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.core.ledger_table import LedgerHandle, lac_of_entry
from triplicate.bookie.core.write_cache import Frozen
from triplicate.bookie.storage.entry_log_reader import EntryLogReader
from triplicate.bookie.storage.entry_log_writer import EntryLogWriter
from triplicate.bookie.storage.entry_logs import existing_logs
from triplicate.bookie.storage.index_rebuild import LogFinisher, OpenedIndex, open_index
from triplicate.bookie.storage.ledger_dirs import LedgerDirs
from triplicate.bookie.storage.run_cache import RunCache
from triplicate.bookie.storage.run_check import copy_counts
from triplicate.bookie.storage.run_copier import RunCopier
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, FormatError
from triplicate.runtime import Disk, Trace

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


class DeadLogs(NamedTuple):
    """Numbers of entry logs that are no longer needed for entries."""

    dead: list[int]
    """Nothing lives in them."""
    with_states: list[int]
    """They hold no runs, and the newest state record of a ledger."""


class LedgerStorage:
    """Entry logs and index of one bookie; `open` makes one.

    Args:
        directories: the ``current`` directories of the ledger directories.
        step_aside: called between pieces of a flush (`Host.step_aside`).
        paths: the entry logs by number.
    """

    def __init__(
        self,
        disk: Disk,
        directories: Sequence[str],
        identity: FileIdentity,
        settings: BookieSettings,
        trace: Trace,
        step_aside: Callable[[], None] | None,
        paths: dict[int, str],
        opened: OpenedIndex,
    ) -> None:
        self._disk = disk
        self._directories = directories
        self._trace = trace
        self._step_aside = step_aside
        self._settings = settings
        self._paths = paths
        self.index = opened.index
        self.rebuilt = opened.rebuilt
        """Whether `open` rebuilt the index."""
        following = max(paths, default=0) + 1
        numbers = count(following)
        self._places = LedgerDirs(disk, directories, settings.disk_usage_threshold, following)
        make = partial(EntryLogWriter, disk, self._places, identity, settings.entry_log_bytes, paths, numbers)
        self.writer = make()
        self.copier = RunCopier(disk, self.index, make(), paths)
        self.reader = EntryLogReader(disk, paths, settings.read_cache_bytes)
        self._windows = RunCache(self.index)
        self._unheard: list[int] = []
        """Logs that a flush has written to and that the index does not know yet."""

    # Start and end.

    @classmethod
    def open(
        cls,
        disk: Disk,
        directories: Sequence[str],
        identity: FileIdentity,
        settings: BookieSettings,
        trace: Trace,
        marked_flush: int,
        step_aside: Callable[[], None] | None = None,
    ) -> LedgerStorage:
        """Open index and logs; rebuild the index where it is missing, damaged, unfinished or older than the mark says.

        Args:
            marked_flush: the number of the flush that the journal's mark relies on.

        Raises:
            CorruptionError: the index must be rebuilt, and an entry log is damaged or missing. FormatError: written by a newer release.
            OSError.
        """
        paths = existing_logs(disk, directories)
        with ExitStack() as on_error:
            opened = open_index(disk, directories[0], paths, settings.index_cache_bytes, trace, marked_flush)
            on_error.callback(opened.index.close)
            LogFinisher(disk, paths, opened.index, trace).run()
            for directory in directories:
                # A deleted log must not reappear beside another log that has been given its number since.
                disk.sync_directory(directory)
            if opened.index.fact("flush_log") is None and paths:
                opened.index.set_flush_log(max(paths))
            storage = cls(disk, directories, identity, settings, trace, step_aside, paths, opened)
            on_error.pop_all()
        return storage

    def close(self, *, finish: bool) -> None:
        """Close the files. With `finish` the log being filled gets its footer."""
        if finish:
            self.writer.finish()
            self.copier.finish()
        self.writer.abandon()
        self.copier.abandon()
        self.reader.close()
        self.index.close()

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

    def dead_logs(self, logs: Sequence[int] | None = None) -> DeadLogs:
        """Find the logs that may be deleted, at once or after their state records were carried out of them.

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
        return DeadLogs(dead, with_states)

    def _busy(self) -> list[int]:
        """Logs being written, and the log that ends the newest flush: a rebuild without it would take the flush for missing."""
        return [*self._unheard, *self.writer.busy, *self.copier.busy, self.index.fact("flush_log") or -1]

    def finished_logs(self) -> dict[int, int]:
        """Sizes of the logs that are no longer written."""
        busy = self._busy()
        return {log: size for log, size in self.index.log_sizes().items() if log in self._paths and log not in busy}

    def has_room(self, size_bytes: int) -> bool:
        """Whether a copy of this size leaves a directory the room that recoveries need."""
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

    # The scrubber's worker.

    def path_of(self, log: int) -> str | None:
        """The path of an entry log; None if there is none of this number."""
        return self._paths.get(log)

    def copy_counts(self, log: int, run: BlockInfo, entry_id: int) -> bool:
        """See `run_check.copy_counts`."""
        return copy_counts(self._disk, self._paths, self.index, log, run, entry_id)

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
        place = self._windows.alone(ledger_id, entry_id)
        if place is None:
            return None
        log, run, last = place
        return self.reader.stretch(log, run, entry_id, min(count_max, last - entry_id + 1), size_max)

    def entry_ids(self, ledger_id: int) -> list[range]:
        """Ids of all stored entries of a ledger, as runs in no order, which may overlap.

        A run with gaps whose table is damaged is left out: none of its entries can be read. Those that a worker has stored again are in a
        newer run. An error would make the list fail until the entry log is rewritten.

        Raises:
            CorruptionError: the index is damaged. OSError: a table cannot be read, which may pass.
        """
        found: list[range] = []
        for log, run in self.index.runs_of(ledger_id):
            if run.count == run.last - run.first + 1:
                found.append(range(run.first, run.last + 1))
                continue
            try:
                found += consecutive(self.reader.ids(log, run))
            except (CorruptionError, FormatError) as error:
                self._trace("bookie.damaged_run_not_listed", ledger_id=ledger_id, log=log, error=str(error))
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
