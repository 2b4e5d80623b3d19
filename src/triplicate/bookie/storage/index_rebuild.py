"""The index and the entry logs at a start: the index is opened or rebuilt, and logs that a crash left open are finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from triplicate.bookie.core.entry_log_format import TRAILER, TRAILER_MAGIC, BlockInfo, BlockType
from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.directories import REPLACE
from triplicate.bookie.files import NO_SPACE, join
from triplicate.bookie.storage.entry_logs import LogContent, drop_copies, finish_log, read_log, same_run, secure_log
from triplicate.bookie.storage.index import Index, delete_index
from triplicate.errors import CorruptionError
from triplicate.runtime import Disk, Trace

INDEX_NAME = "index.db"


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """An index that agrees with the entry logs."""

    index: Index
    rebuilt: bool
    """Whether it was rebuilt from entry logs."""


def open_index(disk: Disk, directory: str, paths: dict[int, str], cache_bytes: int, trace: Trace, marked_flush: int) -> OpenedIndex:
    """Open the index; rebuild it where it is missing, damaged, unfinished or older than the journal's mark says.

    Args:
        directory: the one that holds the index.
        paths: the entry logs by number.
        marked_flush: the number of the flush that the journal's mark relies on.

    Raises:
        CorruptionError: it must be rebuilt, and an entry log is damaged or missing. FormatError: written by a newer release. OSError.
    """
    path = join(directory, INDEX_NAME)
    with ExitStack() as on_error:
        try:
            index = Index(disk, path, cache_bytes)
            on_error.callback(index.close)
            reason = _outdated(index, paths, trace, marked_flush)
        except CorruptionError as error:
            reason = str(error)
        if reason is None:
            on_error.pop_all()
            return OpenedIndex(index, rebuilt=False)
    delete_index(disk, path)
    with ExitStack() as on_error:
        index = Index(disk, path, cache_bytes)
        on_error.callback(index.close)
        IndexRebuild(disk, directory, paths, index, trace).run(reason, marked_flush)
        on_error.pop_all()
    return OpenedIndex(index, rebuilt=bool(paths))


def _outdated(index: Index, paths: dict[int, str], trace: Trace, marked_flush: int) -> str | None:
    """Why the index must be rebuilt, or None. Raises CorruptionError."""
    if not index.fact("complete"):
        return "there is none, or its making was interrupted"
    flush = index.fact("flush") or 0
    if flush < marked_flush:
        return f"it ends with flush {flush}, and the journal's mark relies on flush {marked_flush}"
    missing = [log for log in index.log_sizes() if log not in paths]
    if missing:
        trace("bookie.entry_logs_missing", logs=missing)
    return None


def size_of(disk: Disk, path: str) -> int:
    """Size of a file, in bytes."""
    file = disk.open(path, readonly=True)
    try:
        return file.size()
    finally:
        file.close()


def try_read_log(disk: Disk, trace: Trace, number: int, path: str, *, with_states: bool) -> LogContent | None:
    """A log's content, or None if even its header is unreadable."""
    try:
        return read_log(disk, number, path, with_states=with_states, trace=trace, pass_torn_runs=with_states)
    except CorruptionError as error:
        trace("bookie.entry_log_unreadable", path=path, error=str(error))
        return None


class _NewestState(NamedTuple):
    """The newest state record of a ledger: its flush, its log, and the state merged with those before."""

    flush_number: int
    log: int
    state: LedgerData


class IndexRebuild:
    """Makes the rows of an empty index from every entry log; the journal's replay adds the rest.

    Args:
        directory: the first ledger directory, for messages.
        paths: the entry logs by number.
    """

    def __init__(self, disk: Disk, directory: str, paths: dict[int, str], index: Index, trace: Trace) -> None:
        self._disk = disk
        self._directory = directory
        self._paths = paths
        self._index = index
        self._trace = trace

    def run(self, reason: str, marked_flush: int) -> None:
        """Rebuild the rows from every entry log; the journal's replay adds the rest."""
        if self._paths:
            self._trace("bookie.index_rebuild", reason=reason, entry_logs=len(self._paths))
        newest: dict[int, _NewestState] = {}
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
                    newest[state.ledger_id] = _NewestState(flush_number, number, state)
                elif known.flush_number <= flush_number:
                    newest[state.ledger_id] = _NewestState(flush_number, number, state.merged(known.state))
                else:
                    newest[state.ledger_id] = known._replace(state=known.state.merged(state))
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
            self._index.add(flush_number, states, (), ())
        # A ledger without a state was deleted long ago, or belongs to a flush that did not end and stands in the journal.
        self._index.delete_ledgers([ledger_id for ledger_id in holders if ledger_id not in newest])
        self._index.remove_copies()
        found = self._index.fact("flush") or 0
        if found < marked_flush:
            raise CorruptionError(
                f"{self._directory}: the entry logs end with flush {found}, and the journal's mark relies on flush {marked_flush}: "
                "an entry log is missing or cut; restore it, or let peers copy the entries to a new bookie"
            )
        self._index.mark_complete()
        if self._paths:
            self._trace("bookie.index_rebuilt", ledgers=len(newest))

    def _index_log(self, content: LogContent, size: int) -> None:
        runs = [(content.number, block) for block in content.blocks if block.type is BlockType.RUN]
        flush_number = max([block.flush_number for block in content.blocks], default=0)
        self._index.add(flush_number, (), runs, [(content.number, size)])

    def _holds(self, run: BlockInfo) -> bool:
        return any(same_run(run, known) for _, known in self._index.runs_holding(run.ledger_id, run.last))

    def _stands_elsewhere(self, block: BlockInfo, unfinished: Sequence[LogContent]) -> bool:
        """Whether a finished log, or one of `others`, holds the same run."""
        others = [other for content in unfinished for other in content.blocks if other.ledger_id == block.ledger_id]
        return any(_are_copies(block, run) for run in [*others, *[run for _, run in self._index.runs_of(block.ledger_id)]])

    def _read_whole_log(self, number: int, path: str) -> LogContent | None:
        """A log's content for a rebuild. Damage is refused, since an entry that is skipped now would later be answered with "no such
        entry".

        Returns:
            None for a log whose header never became durable: it holds nothing.

        Raises:
            CorruptionError: part of the log is damaged.
        """
        content = try_read_log(self._disk, self._trace, number, path, with_states=True)
        damaged_at = content.damaged_at if content is not None else 0
        if content is None and size_of(self._disk, path) <= HEADER_BYTES:
            return None
        if content is None or damaged_at is not None:
            raise _damaged(path, damaged_at)
        return content


class LogFinisher:
    """Finishes entry logs that a crash left open.

    Args:
        paths: the entry logs by number; those that the index does not know are removed from it.
    """

    def __init__(self, disk: Disk, paths: dict[int, str], index: Index, trace: Trace) -> None:
        self._disk = disk
        self._paths = paths
        self._index = index
        self._trace = trace

    def run(self) -> None:
        """Give footers to logs that a crash left open, cut to the length that the index knows. Delete logs that the index does not know."""
        sizes = self._index.log_sizes()
        finished: list[tuple[int, int]] = []
        for number, path in list(self._paths.items()):
            durable = sizes.get(number)
            if durable is None:
                # The index does not know its flush: the journal has everything, or, for a copy, the old place is valid.
                del self._paths[number]
                self._disk.delete(path)
                self._trace("bookie.entry_log_discarded", path=path)
            elif size_of(self._disk, path) != durable or not self._ends_with_footer(path):
                content = try_read_log(self._disk, self._trace, number, path, with_states=False)
                size = self._finish_log(content, durable) if content is not None else None
                if size is not None:
                    finished.append((number, size))
        if finished:
            self._unless_full(lambda: self._index.set_sizes(finished))

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


def _are_copies(one: BlockInfo, other: BlockInfo) -> bool:
    """Whether two blocks are copies of each other."""
    return (one.type, one.flush_number, one.first, one.last) == (other.type, other.flush_number, other.first, other.last)


def _damaged(path: str, offset: int | None) -> CorruptionError:
    return CorruptionError(
        f"{path}: damaged at byte {offset}, and the index that knew the rest is gone: restore the file from a backup; if there is none, "
        f"move all data of this bookie away, run {REPLACE}, and let its peers copy the entries"
    )
