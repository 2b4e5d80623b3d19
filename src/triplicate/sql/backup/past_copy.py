"""A copy of a database as it was at a point of its log: the newest snapshot that is kept before it, and the log's records up to it.

It is made from what the cluster keeps, so no node needs to run, and none is disturbed. A node that has a copy of its own may begin with
that one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from triplicate.errors import (
    BackupDamaged,
    CorruptionError,
    Diverged,
    EnvironmentFault,
    FormatError,
    NoSuchLedger,
    NotKept,
    OffsetTruncated,
    SnapshotDamaged,
)
from triplicate.log import LogEntry, Logs, LogSnapshots, Snapshot
from triplicate.runtime import Host, Worker, fault_point, shielded
from triplicate.sql.backup.core.record_file import BatchFrame
from triplicate.sql.backup.core.target import AtPosition, AtTime, Target, TargetSearch, time_text
from triplicate.sql.backup.work_file import WorkFile, WorkFileState
from triplicate.sql.core.records import decode_header
from triplicate.sql.storage.sqlite_copy import check_room, delete_file, on_disk
from triplicate.sql.storage.sqlite_file import ConnectionSetup
from triplicate.sql.storage.sqlite_snapshots import CONTENT, MACHINE

Made = TypeVar("Made")

ATTEMPTS = 3
"""How often a copy is begun again when the snapshot or the log that it reads was truncated meanwhile."""
READ_LIMIT_S = 60.0
"""How long the next record before the end of the log may take."""
APPLY_ENTRIES = 1000
APPLY_SIZE_BYTES = 8 * 1024 * 1024
"""Entries and bytes that are held and applied in one SQLite transaction."""


@dataclass(frozen=True, slots=True)
class DatabaseLog:
    """A database as its copies need it.

    Args:
        identity: 16 bytes. log: the name of its log. created_ms: when it was made.
        lease_ms, administrator: as in the list of databases; of the administrator name and verifier.
    """

    name: str
    identity: bytes
    log: str
    created_ms: int
    lease_ms: int = 0
    administrator: tuple[str, str] | None = field(default=None, repr=False)


class NearCopy(Protocol):
    """The copy of the database that this node has. Implemented by `SqlSnapshots`."""

    @property
    def position(self) -> int: ...

    async def copy_to(self, path: str, latest: int | None) -> bool: ...


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """The part of a database's history that the cluster keeps.

    Args:
        snapshots: the good ones from which the log can be read on, oldest first.
        first_offset, end: of the log.
    """

    snapshots: tuple[Snapshot, ...]
    first_offset: int
    end: int

    @property
    def bases(self) -> Sequence[int]:
        """The positions at which a copy can begin, ascending. 0 stands for an empty copy."""
        return ([0] if self.first_offset == 0 else []) + [one.position for one in self.snapshots if one.position > 0]

    def not_kept(self, name: str, wanted: object) -> NotKept:
        """The error for a point before the oldest that is kept."""
        if not self.bases:
            return NotKept(f"database {name}: {wanted} is not kept: the log begins at {self.first_offset}, and no good snapshot is listed")
        oldest = f"position {self.bases[0]}"
        if self.bases[0] > 0:
            oldest += f", of {time_text(self.snapshots[0].time_ms)}"
        return NotKept(f"database {name}: {wanted} is no longer kept; the oldest that is kept is {oldest}")


class PastCopies:
    """Makes copies of one database as it was.

    Args:
        setup: called on the connections of the copies, as on those of the node.
        near: a copy to begin with; None: there is none.
    """

    def __init__(
        self, host: Host, logs: Logs, source: DatabaseLog, setup: ConnectionSetup | None = None, near: NearCopy | None = None
    ) -> None:
        self._host = host
        self._logs = logs
        self._source = source
        self._setup = setup
        self._near = near
        self._door: LogSnapshots = logs.snapshots(source.log)

    async def kept(self) -> KeptHistory:
        """The history that is kept now. Raises NoSuchLog."""
        listed = await self._door.read(fresh=True)
        head = await self._logs.head(self._source.log)
        usable = (
            one
            for one in listed.good
            if (one.machine, one.content, one.identity) == (MACHINE, CONTENT, self._source.identity.hex())
            and one.position >= head.first_offset
        )
        return KeptHistory(tuple(usable), head.first_offset, await self._logs.end_offset(self._source.log))

    async def resolve(self, target: Target | None) -> int:
        """The position of a target; for None the end of the log, with everything that was acknowledged before while a leader runs.

        A time resolves to the last record whose log time is not later.

        Raises:
            NotKept: it lies before what is kept, or beyond the end. Also the errors of `Logs.acknowledged_end`.
        """
        return await self._repeated(lambda: self._resolve(target))

    async def _resolve(self, target: Target | None) -> int:
        kept = await self.kept()
        if not isinstance(target, AtPosition) or target.position > kept.end:
            acknowledged = await self._logs.acknowledged_end(self._source.log)
            kept = await self.kept()
            kept = replace(kept, end=max(kept.end, acknowledged))
        if target is None:
            return kept.end
        if isinstance(target, AtPosition):
            self._check_position(kept, target)
            return target.position
        if isinstance(target, AtTime):
            self._check_time(target)
        uppers = [*kept.bases[1:], kept.end]
        for base, upper in zip(reversed(kept.bases), reversed(uppers), strict=True):
            search = TargetSearch(target, base)
            async with aclosing(self.frames(base, upper)) as frames:
                async for frame in frames:
                    search.take(frame.first_offset, decode_header(frame.preamble), frame.records)
                    if search.reached:
                        break
            if search.is_missing:
                continue
            if search.position > base:
                return search.position
            if isinstance(target, AtTime) and base == 0 and target.time_ms >= self._source.created_ms:
                return 0
            if isinstance(target, AtTime) and base == kept.bases[0] > 0:
                return base  # Its file shows whether it is old enough, see `make` and `PastDatabases.open`.
        raise kept.not_kept(self._source.name, target)

    def _check_position(self, kept: KeptHistory, target: AtPosition) -> None:
        if target.position > kept.end:
            raise NotKept(f"database {self._source.name}: {target} is not written yet; the log ends at position {kept.end}")
        if not kept.bases or target.position < kept.bases[0]:
            raise kept.not_kept(self._source.name, target)

    def _check_time(self, target: AtTime) -> None:
        now_ms = self._host.clock.wall_us() // 1000
        if target.time_ms > now_ms:
            raise NotKept(f"database {self._source.name}: {target} lies ahead; it is {time_text(now_ms)} now")

    @fault_point("sql.past_copy")
    async def make(self, target: Target | None, path: str) -> WorkFileState:
        """Make a copy as a SQLite file with the internal tables, at a path that no file has.

        Raises:
            NotKept: see `resolve`. EnvironmentFault: the disk has no room or fails. BackupDamaged: the log does not fit the snapshot.
            Also the errors of reading ledgers. No file is left then.
        """
        return await self._repeated(lambda: self._make(target, path))

    async def _make(self, target: Target | None, path: str) -> WorkFileState:
        position = await self._resolve(target)
        kept = await self.kept()
        near = await self._begun_near(target, position, path, kept)
        if near is not None:
            return near
        failure: SnapshotDamaged | NoSuchLedger | None = None
        for base in reversed(kept.bases):
            if base > position:
                continue
            snapshot = next((one for one in reversed(kept.snapshots) if one.position == base), None)
            try:
                begin = None if snapshot is None else partial(self._download, snapshot, path)
                made = await self._build(begin, target, position, path, kept)
                assert made is not None, "a snapshot that is downloaded is a file"
                return made
            except (SnapshotDamaged, NoSuchLedger) as error:
                failure = error  # An older snapshot, or the log alone, takes longer and serves as well.
                self._host.trace("sql.past_copy_without_snapshot", database=self._source.name, position=base, error=repr(error))
        if failure is not None:
            raise failure
        raise kept.not_kept(self._source.name, f"position {position}")

    async def _begun_near(self, target: Target | None, position: int, path: str, kept: KeptHistory) -> WorkFileState | None:
        """Make the copy from this node's own one, if that is nearer than every snapshot. None, if the snapshots serve better."""
        near, or_later = self._near, isinstance(target, AtPosition) and target.or_later
        before = [base for base in kept.bases if base <= position]
        if near is None or (near.position > position and not or_later) or (before and near.position < before[-1]):
            return None
        try:
            return await self._build(lambda _: near.copy_to(path, None if or_later else position), target, position, path, kept)
        except (BackupDamaged, CorruptionError, Diverged, EnvironmentFault) as error:
            self._host.trace("sql.past_copy_without_near", database=self._source.name, position=position, error=repr(error))
            return None

    async def _build(
        self, begin: Callable[[Worker], Awaitable[bool]] | None, target: Target | None, position: int, path: str, kept: KeptHistory
    ) -> WorkFileState | None:
        """Make the copy from a file that `begin` has made, or from nothing. None, if `begin` has made none."""
        worker = self._host.new_worker(f"sql-{self._source.name}-past")
        file = WorkFile(self._host, path, self._source.identity, self._setup)
        try:
            await on_disk(worker, delete_file, self._host, path)
            if begin is not None and not await begin(worker):
                return None
            state: WorkFileState = await on_disk(worker, file.open)
            if isinstance(target, AtTime) and state.time_ms > target.time_ms:
                raise kept.not_kept(self._source.name, target)
            position = max(position, state.position)
            search = TargetSearch(AtPosition(position), state.position)
            await apply_all(worker, file, self.frames(state.position, position), search)
            made: WorkFileState = await on_disk(worker, file.close)
            return made
        except BaseException:
            await shielded(on_disk(worker, file.delete))
            raise
        finally:
            await shielded(worker.close())

    async def _download(self, snapshot: Snapshot, path: str, worker: Worker) -> bool:
        await on_disk(worker, check_room, self._host, path, snapshot.size_bytes, f"a copy of database {self._source.name!r}")
        file = await on_disk(worker, lambda: self._host.disk.open(path, create=True))
        try:
            offset = 0
            async with self._door.open(snapshot) as reader:
                async for content in reader.chunks():
                    offset += await on_disk(worker, file.pwrite, [content], offset)
        finally:
            await shielded(on_disk(worker, file.close))
        return True

    async def frames(self, begin: int, end: int) -> AsyncGenerator[BatchFrame, None]:
        """The log's batches between two positions. The last may end beyond `end`.

        Raises:
            OffsetTruncated, OffsetGap: records are missing. Also the errors of reading ledgers.
        """
        if begin >= end:
            return
        async with await self._logs.reader(self._source.log, begin) as reader:
            while reader.position < end:
                entry = await reader.next_entry(READ_LIMIT_S)
                if entry is None:
                    raise NotKept(f"log {self._source.log}: offset {reader.position} cannot be read within {READ_LIMIT_S:.0f} s; try again")
                yield _frame_of(entry)

    async def _repeated(self, attempt: Callable[[], Awaitable[Made]]) -> Made:
        for left in reversed(range(ATTEMPTS)):
            try:
                return await attempt()
            except (OffsetTruncated, NoSuchLedger):
                if not left:
                    raise
        raise AssertionError("the last attempt returns or raises")


async def apply_all(worker: Worker, file: WorkFile, frames: AsyncGenerator[BatchFrame, None], search: TargetSearch) -> None:
    """Apply batches until the target is reached or they end. Raises as `WorkFile.apply`, and the errors of `frames`."""
    held: list[BatchFrame] = []
    size = 0
    async with aclosing(frames):
        async for frame in frames:
            if search.reached:
                break
            held.append(frame)
            size += sum(map(len, frame.records))
            if len(held) >= APPLY_ENTRIES or size >= APPLY_SIZE_BYTES:
                await on_disk(worker, file.apply, held, search)
                held, size = [], 0
    if held:
        await on_disk(worker, file.apply, held, search)


def _frame_of(entry: LogEntry) -> BatchFrame:
    preamble = entry.preamble
    if preamble is None:
        raise FormatError(f"offset {entry.first_offset} has no batch header; this is not the log of a database")
    return BatchFrame(entry.first_offset, entry.epoch, preamble, [value or b"" for value in entry.values])
