"""Inspects a stopped bookie's directories: their content, and what would keep the bookie from starting. Changes nothing; everything blocks.

Problems of a start are found by running the start's own code on an `OverlayDisk`, so the two cannot disagree.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from triplicate.bookie.core.entry_log_format import BlockInfo, BlockType, EntryLogScanner
from triplicate.bookie.core.file_header import ENTRY_LOG_MAGIC, HEADER_BYTES, JOURNAL_MAGIC, FileIdentity, check_owner, decode_file_header
from triplicate.bookie.core.journal_mark import JournalMark, decode_mark
from triplicate.bookie.core.scrub_state import ScrubState
from triplicate.bookie.directories import CURRENT, LOCK_NAME, NO_DATA, REPLACE, RESERVE_NAME, Directories
from triplicate.bookie.files import NO_SPACE, join, numbered_files, read_file
from triplicate.bookie.journal.closed_journal import ClosedJournal, JournalLimits
from triplicate.bookie.journal.journal_files import SPARE_SUFFIX
from triplicate.bookie.journal.journal_files import SUFFIX as JOURNAL_SUFFIX
from triplicate.bookie.journal.mark_file import MARK_NAME
from triplicate.bookie.offline.index_backup import ReadOnlyIndex, is_interrupted, rollback_rebuild
from triplicate.bookie.offline.overlay_disk import OverlayDisk
from triplicate.bookie.scrub_file import ScrubFile
from triplicate.bookie.storage.entry_logs import existing_logs, read_log
from triplicate.bookie.storage.index import Index
from triplicate.bookie.storage.index_rebuild import INDEX_NAME
from triplicate.bookie.storage.index_vfs import COMMITS_SUFFIX
from triplicate.bookie.storage.ledger_storage import LedgerStorage
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, EnvironmentFault, FormatError, TriplicateError, WrongCluster
from triplicate.runtime import Disk, Host

REBUILD = "`triplicate bookie rebuild-index`"
INTERRUPTED = "a rebuild of the index was interrupted: a start takes the old one back"
_FAILURES = (CorruptionError, FormatError, WrongCluster, OSError)


@dataclass
class DirectoryReport:
    """One journal or ledger directory."""

    path: str
    there: bool
    in_use: bool = False
    """Whether a process holds its lock."""
    bookie_id: str | None = None
    """The bookie id in its cookie; None if it has none."""
    instance_id: str | None = None
    incarnation: int = 1
    files: int = 0
    data_bytes: int = 0
    reserve_bytes: int = 0
    free_bytes: int = 0
    total_bytes: int = 0


@dataclass
class JournalReport:
    """The journal of one directory."""

    directory: str
    files: int
    size_bytes: int
    mark: JournalMark | None
    groups_behind_mark: int | None = None
    """Number of groups that a start replays; None if they were not counted."""
    spare_files: int = 0
    """Spare files; they hold no groups."""


@dataclass
class IndexReport:
    """The index and its entry logs."""

    path: str
    size_bytes: int = 0
    version: int | None = None
    flush: int | None = None
    complete: bool = False
    ledgers: int = 0
    kept_fences: int = 0
    """Number of deleted ledgers whose fence is kept."""
    trash_ledgers: int = 0
    """Number of ledgers without metadata whose entries are kept for a while."""
    trash_bytes: int = 0
    entry_logs: int = 0
    entry_log_bytes: int = 0
    problem: str | None = None
    """Why the index cannot be read."""


@dataclass
class InspectionReport:
    """Everything known about a bookie's directories without changing them."""

    directories: list[DirectoryReport] = field(default_factory=list)
    journals: list[JournalReport] = field(default_factory=list)
    index: IndexReport | None = None
    """None while a process uses the directories."""
    scrub: ScrubState | None = None
    """How far the scrubber is, as it has noted last; None without a readable note."""


class Inspection:
    """See the module's text.

    Args:
        bookie_id, instance_id: the expected owner of the files.
    """

    def __init__(self, host: Host, settings: BookieSettings, bookie_id: str, instance_id: str) -> None:
        self.directories = Directories(host.disk, settings)
        self.remarks: list[str] = []
        """Problems that a start would repair."""
        self.lacks_space = False
        """Whether a start is refused because a disk is full."""
        self._host = host
        self._settings = settings
        self._identity = FileIdentity(bookie_id, instance_id, 0)
        self._ledger_currents = [join(directory, CURRENT) for directory in settings.ledger_directories]

    # Facts.

    def facts(self) -> InspectionReport:
        """Report the content. Raises OSError, CorruptionError, FormatError: a file with an identity cannot be read."""
        found = InspectionReport([self.directory_facts(directory) for directory in self.directories.configured])
        for directory in self._settings.journal_directories:
            if self._host.disk.exists(join(directory, CURRENT)):
                found.journals.append(self._journal_facts(join(directory, CURRENT)))
        if not any(directory.in_use for directory in found.directories):
            found.index = self._index_facts()
        current = self._ledger_currents[0]
        if self._host.disk.exists(current):
            with suppress(FormatError):
                found.scrub = ScrubFile(self._host.disk, current).read()
        return found

    def in_use(self, directory: str) -> bool:
        """Whether a process holds the directory's lock. Raises OSError."""
        disk, path = self._host.disk, join(join(directory, CURRENT), LOCK_NAME)
        if not disk.exists(path):
            return False
        try:
            disk.lock(path)()
        except BlockingIOError:
            return True
        return False

    def directory_facts(self, directory: str) -> DirectoryReport:
        """Report one directory. Raises OSError."""
        disk, current = self._host.disk, join(directory, CURRENT)
        facts = DirectoryReport(directory, disk.exists(current))
        if not facts.there:
            return facts
        facts.in_use = self.in_use(directory)
        cookie = self.directories.cookie_in(directory)
        if cookie is not None:
            facts.bookie_id, facts.instance_id = cookie.bookie_id, cookie.instance_id
        facts.incarnation = self.directories.incarnation_in(directory)
        facts.free_bytes, facts.total_bytes = disk.free_space(current)
        for name in disk.names(current):
            size = _size_of(disk, join(current, name))
            if name == RESERVE_NAME:
                facts.reserve_bytes = size
            elif name not in NO_DATA:
                facts.files += 1
                facts.data_bytes += size
        return facts

    def _journal_facts(self, current: str) -> JournalReport:
        disk = self._host.disk
        files, spares = (numbered_files(disk, current, suffix) for suffix in (JOURNAL_SUFFIX, SPARE_SUFFIX))
        mark = self._journal(disk, current).read_mark()
        return JournalReport(current, len(files), sum(_size_of(disk, path) for path in files.values()), mark, spare_files=len(spares))

    def _index_facts(self) -> IndexReport:
        disk = self._host.disk
        facts = IndexReport(join(self._ledger_currents[0], INDEX_NAME))
        logs = existing_logs(disk, [current for current in self._ledger_currents if disk.exists(current)])
        facts.entry_logs = len(logs)
        facts.entry_log_bytes = sum(_size_of(disk, path) for path in logs.values())
        if is_interrupted(disk, facts.path, self._settings.index_cache_bytes):
            facts.problem = INTERRUPTED
            return facts
        if not disk.exists(facts.path):
            facts.problem = "there is none; a start makes it"
            return facts
        facts.size_bytes = sum(_size_of(disk, path) for path in (facts.path, facts.path + COMMITS_SUFFIX) if disk.exists(path))
        try:
            with ReadOnlyIndex(disk, facts.path, self._settings.index_cache_bytes) as index:
                facts.version, facts.flush, facts.complete = index.fact("version"), index.fact("flush"), bool(index.fact("complete"))
                facts.ledgers, facts.kept_fences = index.count("ledgers"), index.count("deleted")
                facts.trash_ledgers, facts.trash_bytes = index.count("missing"), index.missing_bytes()
        except CorruptionError as error:
            facts.problem = str(error)
        return facts

    # Problems.

    def problems(self) -> Iterator[TriplicateError]:
        """Problems that keep the bookie from starting on its data, or from reading it. Reads all data.

        Missing directories count as existing: a start makes those of a new bookie. `Directories` reports a missing one of an old bookie.
        """
        disk = OverlayDisk(self._host.disk, given_up=RESERVE_NAME)
        try:
            for directory in self.directories.configured:
                disk.mkdir(join(directory, CURRENT))
            marked_flush = 0
            for directory in self._settings.journal_directories:
                try:
                    marked_flush = max(marked_flush, self._try_journal(disk, join(directory, CURRENT), opens=True))
                except _FAILURES as error:
                    yield self._as_problem(error)
            try:
                unreadable = list(self._log_problems(disk))
                yield from unreadable
                if rollback_rebuild(disk, join(self._ledger_currents[0], INDEX_NAME), self._settings.index_cache_bytes):
                    self.remarks.append(f"{self._ledger_currents[0]}/{INDEX_NAME}: {INTERRUPTED}")
                if not unreadable:
                    yield from self._index_problems(disk)
                    self._try_stored(disk, marked_flush)
            except _FAILURES as error:
                yield self._as_problem(error)
        finally:
            disk.close()

    def _as_problem(self, error: Exception) -> TriplicateError:
        if isinstance(error, TriplicateError):
            return error
        assert isinstance(error, OSError)
        self.lacks_space = self.lacks_space or error.errno in NO_SPACE
        return cannot_start(error)

    def check(self) -> None:
        """Check everything that a start must not discover after its first change. Reads all journals behind their marks, and the headers of
        entry logs.

        Raises:
            CorruptionError: a journal is damaged, or an entry log is missing, shorter than the index knows, or not identifiable.
            FormatError, WrongCluster. OSError.
        """
        for problem in self._bad_logs(self.check_journals()):
            raise problem

    def check_journals(self) -> int:
        """The part of `check` for journals; returns the flush that their marks rely on."""
        disk = OverlayDisk(self._host.disk)
        try:
            return max([self._try_journal(disk, join(directory, CURRENT)) for directory in self._settings.journal_directories])
        finally:
            disk.close()

    def _bad_logs(self, marked_flush: int) -> Iterator[TriplicateError]:
        """Entry logs that are shorter than a usable index knows, or not identifiable."""
        disk, logs = self._host.disk, existing_logs(self._host.disk, self._ledger_currents)
        usable, sizes = self._known_logs(marked_flush)
        if usable:
            yield from _shorter_than_known(disk, join(self._ledger_currents[0], INDEX_NAME), logs, sizes)
            yield from self._nameless_logs(disk, logs, sizes)

    def _known_logs(self, marked_flush: int) -> tuple[bool, dict[int, int]]:
        """Whether a start would use the index, and the lengths of entry logs that it knows; nothing if it is unreadable."""
        disk, path = self._host.disk, join(self._ledger_currents[0], INDEX_NAME)
        if not disk.exists(path):
            return False, {}
        try:
            with ReadOnlyIndex(disk, path, self._settings.index_cache_bytes) as index:
                return bool(index.fact("complete")) and (index.fact("flush") or 0) >= marked_flush, index.log_sizes()
        except CorruptionError:
            return False, {}  # A start rebuilds it.

    def check_before_rebuild(self, *, lost_accepted: bool) -> tuple[int, ...]:
        """Check the entry logs against the old index before a rebuild replaces it. Reads all journals behind their marks.

        Args:
            lost_accepted: a log may be missing, or too short.

        Returns:
            numbers of missing logs that the index names: lost, or, if a start would not use the index, perhaps deleted since.

        Raises:
            CorruptionError: a log that a usable index names is missing or too short, and with a new index the bookie would deny what it
            held; or a log was renamed. FormatError, WrongCluster, OSError: as `check`.
        """
        for problem in self._log_problems(self._host.disk):
            raise problem
        marked_flush = self.check_journals()
        disk, logs = self._host.disk, existing_logs(self._host.disk, self._ledger_currents)
        usable, sizes = self._known_logs(marked_flush)
        if usable and not lost_accepted:
            for problem in _shorter_than_known(disk, join(self._ledger_currents[0], INDEX_NAME), logs, sizes):
                raise problem
        return tuple(number for number in sizes if number not in logs)

    def _nameless_logs(self, disk: Disk, logs: dict[int, str], sizes: dict[int, int]) -> Iterator[TriplicateError]:
        """Entry logs with a damaged file header that nothing else identifies. The others with such a header become remarks."""
        for number, path in logs.items():
            if number in sizes and not _check_header(disk, path, ENTRY_LOG_MAGIC, number, self._identity):
                file = disk.open(path, readonly=True)
                try:
                    identified = EntryLogScanner(file.pread, file.size(), path).is_identified(sizes[number])
                finally:
                    file.close()
                if identified:
                    self._host.trace("bookie.entry_log_header_damaged", path=path)
                    self._remark_on_header(path)
                else:
                    yield CorruptionError(
                        f"{path}: the file header is damaged, and the footer too, so the file cannot be identified: restore it from a "
                        f"backup; if there is none, move all data of this bookie away, run {REPLACE}, and let its peers copy the entries"
                    )

    def _remark_on_header(self, path: object) -> None:
        text = f"{path}: the file header is damaged, and the rest is whole, so it is read: restore the file, if there is a copy"
        if text not in self.remarks:
            self.remarks.append(text)

    def _journal(self, disk: Disk, current: str) -> ClosedJournal:
        return ClosedJournal(disk, current, self._identity, JournalLimits.of(self._settings))

    def _try_journal(self, disk: Disk, current: str, *, opens: bool = False) -> int:
        """Replay a journal without storing it, and start the next file if `opens`; returns the flush that its mark relies on."""
        for path in numbered_files(disk, current, JOURNAL_SUFFIX).values():
            # Files before the mark too: a start deletes them, and must not delete those of a newer release or of another bookie.
            _check_header(disk, path, JOURNAL_MAGIC, None, self._identity)
        journal = self._journal(disk, current)
        mark = journal.read_mark()
        for _ in journal.replay(mark):
            pass
        torn = journal.replayed.torn
        if torn is not None:
            self.remarks.append(f"{torn.path}: a torn write at byte {torn.offset}, which was never acknowledged; a start passes over it")
        if opens:
            journal.open(resumes=True).writer.close()
        return mark.flush_number if mark is not None else 0

    def _try_stored(self, disk: Disk, marked_flush: int) -> None:
        def note(kind: str, /, **facts: object) -> None:
            if kind == "bookie.entry_log_header_damaged":
                self._remark_on_header(facts["path"])
            if kind == "bookie.index_rebuild":
                self.remarks.append(f"{self._ledger_currents[0]}/{INDEX_NAME}: a start rebuilds the index: {facts['reason']}")

        stored = LedgerStorage.open(disk, self._ledger_currents, self._identity, self._settings, note, marked_flush)
        stored.close(finish=False)

    def _log_problems(self, disk: Disk) -> Iterator[TriplicateError]:
        for number, path in existing_logs(disk, self._ledger_currents).items():
            try:
                _check_header(disk, path, ENTRY_LOG_MAGIC, number, self._identity)
            except (CorruptionError, FormatError, WrongCluster) as error:
                yield error

    def _index_problems(self, disk: Disk) -> Iterator[TriplicateError]:
        """The places where index and entry logs disagree; none if a start rebuilds the index."""
        path = join(self._ledger_currents[0], INDEX_NAME)
        if not disk.exists(path):
            return
        try:
            with ReadOnlyIndex(disk, path, self._settings.index_cache_bytes) as index:
                if index.fact("complete"):
                    yield from self._disagreements(disk, path, index)
        except CorruptionError as error:
            self.remarks.append(f"{error}; a start rebuilds it")

    def _disagreements(self, disk: Disk, index_path: str, index: Index) -> Iterator[TriplicateError]:
        logs = existing_logs(disk, self._ledger_currents)
        yield from _shorter_than_known(disk, index_path, logs, index.log_sizes())
        yield from self._nameless_logs(disk, logs, index.log_sizes())
        named: dict[int, list[BlockInfo]] = {}
        for ledger_id in _ledgers(index):
            for log, run in index.runs_of(ledger_id):
                named.setdefault(log, []).append(run)
        for number, path in logs.items():
            yield from self._row_problems(disk, number, path, index, named.get(number, []))

    def _row_problems(self, disk: Disk, number: int, path: str, index: Index, named: list[BlockInfo]) -> Iterator[TriplicateError]:
        try:
            content = read_log(disk, number, path, with_states=False, trace=_nothing)
        except CorruptionError:
            return  # Its header has been checked.
        runs = {block.offset: block for block in content.blocks if block.type is BlockType.RUN}
        for run in named:
            if content.damaged_at is None and runs.get(run.offset) != run and run.end <= content.size:
                yield _disagrees(index.path, path, run, "does not hold them")
                return
        durable = index.log_sizes().get(number, 0)
        there = {(run.ledger_id, run.first, run.last, run.count, run.flush_number) for run in named}
        for run in runs.values():
            identity = (run.ledger_id, run.first, run.last, run.count, run.flush_number)
            if run.end <= durable and identity not in there and index.ledger(run.ledger_id) is not None and not _elsewhere(index, run):
                yield _disagrees(index.path, path, run, "holds them, and the index does not name them")
                return


def _shorter_than_known(disk: Disk, index_path: str, logs: dict[int, str], sizes: dict[int, int]) -> Iterator[TriplicateError]:
    for number, durable_bytes in sizes.items():
        path = logs.get(number)
        if path is None:
            yield CorruptionError(
                f"{index_path}: the index names entry log {number}, which is in none of the ledger directories: bring the file back; "
                f"if it is lost, move the rest of the data away and run {REPLACE}"
            )
        elif _size_of(disk, path) < durable_bytes:
            yield CorruptionError(
                f"{path}: it has {_size_of(disk, path)} bytes, and the index knows that {durable_bytes} were written: bring the file "
                f"back; if it is lost, move the rest of the data away and run {REPLACE}"
            )


def _elsewhere(index: Index, run: BlockInfo) -> bool:
    """Whether the index has a run with the same entries elsewhere: compaction has copied it, or its flush was repeated."""
    return any(
        (other.first, other.last, other.count) == (run.first, run.last, run.count) and other.flush_number >= run.flush_number
        for _, other in index.runs_of(run.ledger_id)
    )


def _disagrees(index_path: str, log_path: str, run: BlockInfo, how: str) -> CorruptionError:
    return CorruptionError(
        f"{index_path}: the index disagrees with {log_path} about entries {run.first} to {run.last} of ledger {run.ledger_id} at byte "
        f"{run.offset}: the log {how}: stop the bookie and run {REBUILD}"
    )


def _ledgers(index: Index) -> Iterator[int]:
    after = -1
    while page := index.ledger_ids(after):
        yield from page
        after = page[-1]


def _check_header(disk: Disk, path: str, magic: bytes, number: int | None, ours: FileIdentity) -> bool:
    """Whether the header can be read. If not, the caller judges the rest of the file.

    Args:
        number: from the file's name; None for a journal file. A crash may bring back the old name of a file that was to be reused and has
        its next number already. Replay checks the files behind the mark.

    Raises:
        FormatError: from a newer release. WrongCluster: another bookie's file. CorruptionError: its name has another number.
    """
    file = disk.open(path, readonly=True)
    try:
        found = decode_file_header(file.pread(HEADER_BYTES, 0), magic, path)
    except CorruptionError:
        return False
    finally:
        file.close()
    check_owner(found, ours, number, magic, path)
    return True


def _size_of(disk: Disk, path: str) -> int:
    try:
        file = disk.open(path, readonly=True)
    except FileNotFoundError:
        # A running bookie renames and deletes files, journal files above all.
        return 0
    try:
        return file.size()
    finally:
        file.close()


def cannot_start(error: OSError) -> EnvironmentFault:
    """The error of a start for an error of a disk."""
    if error.errno in NO_SPACE:
        where = error.filename or "a directory of the bookie"
        return EnvironmentFault(f"{where}: the disk is full ({error.strerror}): free some space, and start it again")
    return EnvironmentFault(f"{error.filename or 'a file of the bookie'}: {error.strerror or error}: repair the disk or its permissions")


def _nothing(kind: str, /, **facts: object) -> None:
    """Discard a trace."""


def check_files(disk: Disk, settings: BookieSettings, identity: FileIdentity) -> None:
    """Check that every file belongs to this bookie and has a known format, before a start changes one. Blocks; reads headers only.

    Raises:
        FormatError: one is from a newer release. WrongCluster: another bookie wrote it. CorruptionError: it was renamed, or a journal's
        mark is damaged. OSError.
    """
    for directory in settings.journal_directories:
        current = join(directory, CURRENT)
        mark = join(current, MARK_NAME)
        if disk.exists(mark):
            decode_mark(read_file(disk, mark), mark)
        for path in numbered_files(disk, current, JOURNAL_SUFFIX).values():
            _check_header(disk, path, JOURNAL_MAGIC, None, identity)
    for number, path in existing_logs(disk, [join(directory, CURRENT) for directory in settings.ledger_directories]).items():
        _check_header(disk, path, ENTRY_LOG_MAGIC, number, identity)


def check_data(host: Host, settings: BookieSettings, identity: FileIdentity) -> None:
    """Check that a start will not be refused because of its data, before it changes anything except for undoing an interrupted rebuild.

    Blocks. Raises as `Inspection.check`.
    """
    if rollback_rebuild(host.disk, join(join(settings.ledger_directories[0], CURRENT), INDEX_NAME), settings.index_cache_bytes):
        host.trace("bookie.index_taken_back")
    Inspection(host, settings, identity.bookie_id, identity.instance_id).check()


def cannot_listen(settings: BookieSettings, error: OSError) -> EnvironmentFault:
    reason = error.strerror or str(error)
    if error.errno == errno.EADDRNOTAVAIL or (error.errno or 0) < 0:
        # Error numbers of failed name look-ups are negative.
        return EnvironmentFault(
            f"bookie.host {settings.host} is no address of this machine ({reason}): set it to one that is; what clients connect to may "
            "be another, bookie.advertised_address"
        )
    return EnvironmentFault(
        f"port {settings.port} of {settings.host} cannot be used ({reason}): stop the process that has it, or choose another"
    )


async def port_problem(host: Host, settings: BookieSettings) -> EnvironmentFault | None:
    """Why a bookie cannot listen with these settings, or None. Listens for a moment."""
    try:
        listener = await host.network.listen(asyncio.Protocol, settings.host, settings.port)
    except OSError as error:
        return cannot_listen(settings, error)
    await listener.close()
    return None
