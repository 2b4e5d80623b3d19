"""The start of a storage: index and entry logs are opened, the journals are replayed into the write cache and opened. Blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from triplicate.bookie.core.chunk_entries import entries_of
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.journal_format import GroupType, JournalGroup
from triplicate.bookie.core.ledger_data import decode_states
from triplicate.bookie.core.ledger_table import LedgerHandle, LedgerTable
from triplicate.bookie.core.write_cache import WriteCache
from triplicate.bookie.files import NO_SPACE, join
from triplicate.bookie.journal.closed_journal import ClosedJournal, JournalLimits, OpenJournal
from triplicate.bookie.storage.flusher import Flusher
from triplicate.bookie.storage.ledger_storage import LedgerStorage
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError
from triplicate.runtime import Host
from triplicate.wire import scan_adds


@dataclass(frozen=True, slots=True)
class ReplayedStorage:
    """The opened parts of a storage. The content of the journals is in the cache, or was flushed from it."""

    cache: WriteCache
    ledgers: LedgerTable
    stored: LedgerStorage
    flusher: Flusher
    journals: Sequence[OpenJournal]

    def close(self) -> None:
        """Close every file."""
        for journal in self.journals:
            journal.writer.close()
        self.stored.close(finish=False)


def replay_storage(
    host: Host, settings: BookieSettings, identity: FileIdentity, on_flush: Callable[[int], None], *, resumes: bool
) -> ReplayedStorage:
    """Open everything and replay the journals.

    Args:
        identity: goes into the header of every file.
        on_flush: called after each flush, with the memory that it freed, in bytes.
        resumes: whether the storage outlives a full disk.

    Raises:
        CorruptionError, FormatError, WrongCluster, OSError: it cannot start, and says why.
    """
    disk, directories = host.disk, [join(directory, "current") for directory in settings.ledger_directories]
    journals = [
        ClosedJournal(disk, join(directory, "current"), identity, JournalLimits.of(settings)) for directory in settings.journal_directories
    ]
    marks = [journal.read_mark() for journal in journals]
    marked_flush = max([mark.flush_number for mark in marks if mark is not None], default=0)
    cache = WriteCache()
    ledgers = LedgerTable(cache, settings.ledger_handles)
    with ExitStack() as on_error:
        stored = LedgerStorage.open(disk, directories, identity, settings, host.trace, marked_flush, host.step_aside)
        on_error.callback(stored.close, finish=False)
        flusher = Flusher(cache, ledgers, stored, max(stored.index.fact("flush") or 0, marked_flush), on_flush)
        replay = StorageReplay(settings, cache, ledgers, stored, flusher, journals=len(journals), resumes=resumes)
        for journal, mark in zip(journals, marks, strict=True):
            for group in journal.replay(mark):
                replay.add(group, journal.directory)
        opened: list[OpenJournal] = []
        for journal in journals:
            found = journal.open(resumes=resumes)
            on_error.callback(found.writer.close)
            opened.append(found)
        on_error.pop_all()
    return ReplayedStorage(cache, ledgers, stored, flusher, opened)


class StorageReplay:
    """Puts the groups of all journals into the write cache, and flushes it where they do not fit.

    Args:
        journals: their number.
    """

    def __init__(
        self,
        settings: BookieSettings,
        cache: WriteCache,
        ledgers: LedgerTable,
        stored: LedgerStorage,
        flusher: Flusher,
        *,
        journals: int,
        resumes: bool,
    ) -> None:
        self._settings = settings
        self._cache = cache
        self._ledgers = ledgers
        self._stored = stored
        self._flusher = flusher
        self._journals = journals
        self._resumes = resumes
        self._half_bytes = settings.write_cache_bytes // 2

    def add(self, group: JournalGroup, where: str) -> None:
        """Add a group. Raises as `replay_storage`.

        Args:
            where: the journal's directory, for messages.
        """
        self._replay_group(group, where)
        if self._cache.active_bytes >= self._half_bytes or self._ledgers.crowded:
            self._flush_replayed()

    def _flush_replayed(self) -> None:
        """Make room for more of the journal. The marks stay, so the next start replays from the same place.

        On a full disk the frozen half waits for space, as in a running bookie. Memory then holds as much as the bounds of a running
        bookie allow behind the mark: both halves of the cache, each filled twice, and what waited for the journals.
        """
        settings = self._settings
        waiting_bytes = 2 * settings.journal_queue_bytes + settings.journal_group_bytes
        limit = 2 * settings.write_cache_bytes + self._journals * waiting_bytes
        frozen = self._cache.frozen
        if frozen is not None and self._cache.size_bytes < limit:
            return
        while True:
            frozen = frozen or self._cache.freeze(self._ledgers.pop_dirty())
            try:
                self._flusher.write(frozen, ())
            except OSError as error:
                if error.errno not in NO_SPACE or not self._resumes:
                    raise
                if self._cache.size_bytes < limit:
                    return
                reason = f"there is no space to flush, and the journal holds more than the {limit} bytes that fit in memory"
                raise OSError(error.errno, reason, error.filename) from error
            self._flusher.release(frozen)
            frozen = None
            if self._cache.active_bytes < self._half_bytes:
                return

    def _replay_group(self, group: JournalGroup, where: str) -> None:
        if group.type is GroupType.STATES:
            for state in decode_states(group.body, group.count):
                handle = self._replay_handle(state.ledger_id)
                if handle.tombstone is None:
                    handle.merge(state)
                    self._ledgers.touch_state(handle)
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
                    self._ledgers.touch_state(handle)
                entries, held_bytes = entries_of(body, run.offsets)
                self._cache.put(run.ledger_id, run.entry_ids, entries, held_bytes)
                handle.entries_stored(run.entry_ids, entries, run.last_add_confirmed)
            found += len(run.entry_ids)
            position = run.offsets[-1]
        if position != len(body) or found != group.count:
            raise CorruptionError(
                f"{where}: group {group.sequence} of journal file {group.file_number} says {group.count} adds, but byte {position} of its "
                "body begins none: it was written by another release or with a greater frame limit"
            )

    def _replay_handle(self, ledger_id: int) -> LedgerHandle:
        handle = self._ledgers.get(ledger_id)
        return handle if handle is not None else self._ledgers.add(self._stored.load(ledger_id))
