"""Snapshots of one replica: making them while the log grows, truncating the log behind them, and loading one in place of the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from triplicate.errors import (
    ConnectionLost,
    CorruptionError,
    FormatError,
    NoSuchLedger,
    NoSuchLog,
    SessionExpired,
    SnapshotDamaged,
    TriplicateError,
)
from triplicate.log import (
    CHUNK_BYTES,
    LogLength,
    Logs,
    LogSnapshots,
    SegmentState,
    Snapshot,
    SnapshotHeader,
    SnapshotList,
    SnapshotReader,
    sources,
    truncation_offset,
)
from triplicate.replica.core.snapshot_policy import (
    SegmentAge,
    SnapshotPeer,
    SnapshotSettings,
    SnapshotSituation,
    cut_offset,
    has_grown_due,
    is_snapshot_faster,
    is_turn,
    may_grow_due,
    pressing_reason,
    snapshot_rank,
)
from triplicate.replica.election import candidates_of, leader_of
from triplicate.runtime import Backoff, Host, Metrics, fault_point, first_of, shielded, sleep

_LONGEST_PAUSE_S = 600.0


class StateCopy(Protocol):
    """A consistent copy of a machine's state."""

    @property
    def position(self) -> int:
        """Offset after the last record that is part of the copy."""

    @property
    def epoch(self) -> int:
        """Epoch of the last batch that is part of the copy."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def facts(self) -> Mapping[str, int | str]:
        """Small properties that `restore` needs before the content."""

    async def read(self, offset: int, size: int, /) -> bytes:
        """Read `size` bytes of content from `offset`; fewer only at the end. Raises EnvironmentFault."""

    async def discard(self) -> None:
        """Delete the copy. Idempotent."""


class SnapshotMachine(Protocol):
    """A state machine whose state can be copied and replaced."""

    @property
    def machine(self) -> str:
        """The kind of the machine, for example ``sql``."""

    @property
    def content(self) -> str:
        """The format of its copies, for example ``sqlite``."""

    @property
    def identity(self) -> str:
        """Identity of the state, hexadecimal. A copy of another state is never loaded."""

    @property
    def position(self) -> int: ...

    async def copy(self, rate_bytes_per_s: int, /) -> StateCopy:
        """Copy the state at one position, while it is changed and read.

        Args:
            rate_bytes_per_s: the rate limit; 0 for none.

        Raises:
            EnvironmentFault: the disk has no room, or copying takes too long. Diverged, CorruptionError: the state is not sound.
        """

    async def restore(self, snapshot: Snapshot, header: SnapshotHeader, chunks: AsyncIterator[memoryview], /) -> int:
        """Replace the state by a snapshot's content. Nothing is replaced before `chunks` has ended.

        Returns:
            The position of the snapshot.

        Raises:
            SnapshotDamaged: the content is not a sound state of this machine. EnvironmentFault: a retry may succeed. FormatError: this
                release cannot read the content. Also the errors of `chunks`.
        """


class SnapshotKeeper:
    """Makes and loads the snapshots of one replica.

    Args:
        path: the replica's node in the metadata, below which candidates report.
        turn: the replicas of one node share it, because a node makes one snapshot at a time.
    """

    def __init__(
        self,
        host: Host,
        logs: Logs,
        log: str,
        machine: SnapshotMachine,
        path: str,
        node_id: str,
        settings: SnapshotSettings,
        turn: asyncio.Lock,
        metrics: Metrics | None = None,
    ) -> None:
        self._host = host
        self._logs = logs
        self._log = log
        self._machine = machine
        self._path = path
        self._node_id = node_id
        self._settings = settings
        self._turn = turn
        self._log_snapshots: LogSnapshots = logs.snapshots(log)
        self._metrics = _SnapshotMetrics(metrics, log) if metrics is not None else None
        pause_s = settings.check_s()
        self._backoff = Backoff(pause_s, _LONGEST_PAUSE_S, host.entropy.stream(f"replica.snapshot.{log}"))
        self._due_since: float | None = None
        self._requested = False
        self.loaded = 0
        """Snapshots that have replaced the copy since this node started."""

    # Making.

    async def run(self) -> None:
        """Make snapshots that are due when it is this node's turn. Runs beside following and leading until it is cancelled.

        Raises:
            SessionExpired: the metadata session has ended.
        """
        watch = self._log_snapshots.watch()
        try:
            while True:
                try:
                    await self._check()
                except SessionExpired:
                    raise
                except TriplicateError as error:
                    self._failed("look", error)
                    await sleep(self._host.clock, self._backoff.next_s())
                await first_of(
                    [watch.changed(), sleep(self._host.clock, self._settings.check_s(requested=self._requested))], name="snapshot due"
                )
        finally:
            watch.close()

    async def _check(self) -> None:
        """Make a snapshot if one is due and it is this node's turn."""
        listed = await self._log_snapshots.read()
        self._requested = listed.wanted is not None
        if self._metrics is not None:
            self._metrics.listed(listed)
        reason = await self._reason(listed)
        if reason is None:
            self._due_since = None
            return
        now = self._host.clock.monotonic()
        self._due_since = now if self._due_since is None else self._due_since
        if is_turn(await self._rank(listed), now - self._due_since, self._settings.turn_s):
            await self._make(reason)

    async def _reason(self, listed: SnapshotList) -> str | None:
        """Why a snapshot is due, or None."""
        head = await self._logs.head(self._log)
        newest = listed.good[-1] if listed.good else None
        situation = SnapshotSituation(
            self._machine.position,
            head.first_offset,
            self._host.clock.wall_us() // 1000,
            listed.wanted,
            None if newest is None else newest.position,
            0 if newest is None else newest.time_ms,
            len(listed.good) < len(listed.snapshots),
        )
        reason = pressing_reason(situation, self._settings)
        if reason is not None or not may_grow_due(situation, self._settings):
            return reason
        if newest is None:
            grown = await self._log_snapshots.size_since(head.first_offset)
        else:
            # The log's length was read before the copy was made, so the snapshot may contain later records. A record has at least one byte.
            grown = max(await self._log_snapshots.grown_since(newest), self._machine.position - newest.position)
        return f"the log has grown by {grown} bytes" if has_grown_due(grown, self._settings) else None

    async def _rank(self, listed: SnapshotList) -> int | None:
        """This node's `snapshot_rank` among the candidates."""
        tree = self._logs.client.metadata.tree
        # A copy that is not served makes no snapshot, so this node does not wait for it.
        candidates = await candidates_of(tree, self._path)
        members = [SnapshotPeer(candidate.node_id, candidate.position) for candidate in candidates if candidate.serves]
        leader = await leader_of(tree, self._path)
        base = listed.good[-1].position if listed.good else 0
        return snapshot_rank(self._node_id, self._machine.position, members, None if leader is None else leader.node_id, base)

    async def _make(self, reason: str) -> None:
        """Make one snapshot unless another node is making one. A failed attempt is traced, not raised."""
        async with self._turn:
            if not await self._log_snapshots.claim():
                return
            try:
                await self._attempt(reason)
            except SessionExpired:
                raise
            except TriplicateError as error:
                self._failed("make", error)
            else:
                self._backoff.reset()
                self._due_since = None
                return
            finally:
                await shielded(self._release())
        # The lock and the claim are released before the pause, because other databases of this node, or other nodes, may succeed.
        await sleep(self._host.clock, self._backoff.next_s())

    async def _release(self) -> None:
        try:
            await self._log_snapshots.release()
        except TriplicateError as error:
            self._host.trace("replica.snapshot_claim", log=self._log, error=repr(error))

    @fault_point("replica.snapshot")
    async def _attempt(self, reason: str) -> None:
        started = self._host.clock.monotonic()
        listed = await self._log_snapshots.read(fresh=True)
        self._host.trace("replica.snapshot_begun", log=self._log, reason=reason, position=self._machine.position)
        log_length = await self._log_snapshots.length()
        copy = await self._machine.copy(self._settings.rate_bytes_per_s)
        try:
            snapshot = await self._write(copy, log_length)
        finally:
            await shielded(copy.discard())
        published = await self._publish(snapshot, listed.newest_id)
        seconds = self._host.clock.monotonic() - started
        self._host.trace(
            "replica.snapshot" if published else "replica.snapshot_discarded",
            log=self._log,
            snapshot=snapshot.snapshot_id,
            ledger=snapshot.ledger_id,
            position=snapshot.position,
            size_bytes=snapshot.size_bytes,
            stored_bytes=snapshot.stored_bytes,
            seconds=round(seconds, 3),
        )
        if self._metrics is not None:
            self._metrics.made(snapshot, seconds, published=published)

    async def _write(self, copy: StateCopy, log_length: LogLength) -> Snapshot:
        """Write a copy to a ledger and close it. The snapshot is not listed yet."""
        log_id, compression = await self._log_snapshots.header_fields()
        machine = self._machine
        header = SnapshotHeader(
            self._log_snapshots.new_id(),
            log_id,
            copy.position,
            copy.epoch,
            self._host.clock.wall_us() // 1000,
            machine.machine,
            machine.content,
            machine.identity,
            self._node_id,
            compression,
            copy.facts,
        )
        async with await self._log_snapshots.writer(header, rate_bytes_per_s=self._settings.rate_bytes_per_s) as writer:
            offset = 0
            while offset < copy.size_bytes:
                content = await copy.read(offset, CHUNK_BYTES)
                await writer.append(content)
                offset += len(content)
            return await writer.finish(log_length)

    async def _publish(self, snapshot: Snapshot, after: str | None) -> bool:
        """Read the snapshot back from the bookies, and then list it. The log is truncated only behind snapshots that were read once.

        Args:
            after: id of the newest listed snapshot when the copy began, or None.

        Returns:
            Whether the snapshot was listed.
        """
        listed = unknown = False
        try:
            await self._log_snapshots.verify(snapshot, rate_bytes_per_s=self._settings.rate_bytes_per_s)
            unknown = True
            listed = await self._log_snapshots.publish(snapshot, after)
            unknown = False
        except (NoSuchLog, NoSuchLedger):
            unknown = False
            raise
        finally:
            # If the outcome is unknown, the snapshot may be listed. The sweep of orphans then handles its ledger.
            if not listed and not unknown:
                await shielded(self._log_snapshots.discard(snapshot.ledger_id))
        return listed

    def _failed(self, during: str, error: TriplicateError) -> None:
        self._host.trace("replica.snapshot_failed", log=self._log, during=during, error=repr(error))
        if self._metrics is not None and not isinstance(error, ConnectionLost):
            self._metrics.failures.inc()

    # Truncating.

    async def truncate_log(self) -> None:
        """Truncate the log behind the older of the last two good snapshots whenever the list changes. Runs beside leading.

        The log is not truncated if snapshots are made on request only.

        Raises:
            SessionExpired: the metadata session has ended.
        """
        watch = self._log_snapshots.watch()
        try:
            while True:
                try:
                    if self._settings.log_bytes > 0:
                        await self._truncate()
                except SessionExpired:
                    raise
                except TriplicateError as error:
                    self._host.trace("replica.retry", log=self._log, during="truncate", error=repr(error))
                    await sleep(self._host.clock, self._backoff.next_s())
                    continue
                # Segments become old enough as time passes, without a change of the list.
                pause_s = self._settings.check_s() if self._settings.keep_log_s > 0 else _LONGEST_PAUSE_S
                await first_of([watch.changed(), sleep(self._host.clock, pause_s)], name="truncation due")
        finally:
            watch.close()

    @fault_point("replica.truncate")
    async def _truncate(self) -> None:
        # A stale list could contain a snapshot as good that has since been marked as damaged.
        offset = truncation_offset(await self._log_snapshots.read(fresh=True))
        if offset is None or (await self._logs.head(self._log)).first_offset >= offset:
            return
        if self._settings.keep_log_s > 0:
            times = [
                SegmentAge(segment.first_offset, None if segment.state is SegmentState.OPEN else segment.max_time_us)
                for segment in await self._logs.segments(self._log)
            ]
            offset = cut_offset(offset, times, self._settings.keep_log_s, self._host.clock.wall_us())
            if (await self._logs.head(self._log)).first_offset >= offset:
                return
        first = await self._logs.truncate(self._log, offset)
        self._host.trace("replica.log_truncated", log=self._log, first_offset=first)

    # Loading.

    async def load(self) -> bool:
        """Load the newest good snapshot if the log begins after this copy's position, or takes longer to read.

        Returns:
            Whether the copy was replaced.

        Raises:
            TriplicateError: the log begins after this copy, and no snapshot could be read; a retry may succeed.
        """
        while True:
            position, head = self._machine.position, await self._logs.head(self._log)
            candidates = await self._sources(position, position < head.first_offset)
            if not candidates:
                return False
            replay_bytes = await self._log_snapshots.size_since(position) - await self._log_snapshots.grown_since(candidates[0])
            if not is_snapshot_faster(position, head.first_offset, replay_bytes, candidates[0].stored_bytes):
                return False
            loaded = await self._load_first_possible(candidates, position < head.first_offset)
            if loaded is not None:
                return loaded

    async def _sources(self, position: int, needed: bool) -> Sequence[Snapshot]:
        """The good snapshots beyond `position`, newest first; empty if the list cannot be read and the log suffices.

        Args:
            needed: whether the log begins after this copy.

        Raises:
            FormatError, CorruptionError: the list cannot be read, and the log does not suffice.
        """
        try:
            return sources(await self._log_snapshots.read(), position)
        except (FormatError, CorruptionError) as error:
            if needed:
                raise
            # A later release may have written the list.
            self._host.trace("replica.snapshots_unreadable", log=self._log, error=repr(error))
            return ()

    async def _load_first_possible(self, candidates: Sequence[Snapshot], needed: bool) -> bool | None:
        """Load the first snapshot that can be loaded.

        Args:
            candidates: snapshots beyond this copy, newest first.
            needed: whether the log begins after this copy.

        Returns:
            Whether one was loaded; None if some were removed from the list since it was read, so that it may contain others now.

        Raises:
            TriplicateError: none could be read, and the log does not suffice.
        """
        failure: TriplicateError | None = None
        replaced = False
        for snapshot in candidates:
            if not self._is_loadable(snapshot):
                continue
            try:
                await self._load(snapshot)
            except SessionExpired:
                raise
            except SnapshotDamaged as error:
                await self._report_damaged(snapshot, error)
            except NoSuchLedger as error:
                if (await self._log_snapshots.read(fresh=True)).find(snapshot.snapshot_id) is not None:
                    await self._report_damaged(snapshot, error)
                else:
                    replaced = True
            except TriplicateError as error:
                failure = error
                self._not_loaded(snapshot, error)
            else:
                return True
        if failure is not None and needed:
            raise failure
        return None if replaced else False

    def _is_loadable(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is of this machine and in its format. Otherwise this is traced."""
        machine = self._machine
        if (snapshot.machine, snapshot.content, snapshot.identity) == (machine.machine, machine.content, machine.identity):
            return True
        self._not_loaded(snapshot, FormatError(f"it is {snapshot.content} of {snapshot.machine} {snapshot.identity}"))
        return False

    @fault_point("replica.snapshot_load")
    async def _load(self, snapshot: Snapshot) -> None:
        started = self._host.clock.monotonic()
        before = self._machine.position
        reader: SnapshotReader
        async with self._log_snapshots.open(snapshot) as reader:
            header = await reader.header()
            position = await self._machine.restore(snapshot, header, reader.chunks())
        self.loaded += 1
        seconds = self._host.clock.monotonic() - started
        self._host.trace(
            "replica.snapshot_loaded",
            log=self._log,
            snapshot=snapshot.snapshot_id,
            position=position,
            before=before,
            seconds=round(seconds, 3),
        )
        if self._metrics is not None:
            self._metrics.loads.inc()

    async def _report_damaged(self, snapshot: Snapshot, error: TriplicateError) -> None:
        self._host.trace(
            "replica.snapshot_damaged",
            level="error",
            log=self._log,
            snapshot=snapshot.snapshot_id,
            ledger=snapshot.ledger_id,
            position=snapshot.position,
            error=str(error),
        )
        if self._metrics is not None:
            self._metrics.damaged.inc()
        try:
            await self._log_snapshots.mark_damaged(snapshot.snapshot_id, f"{self._node_id}: {error}")
        except SessionExpired:
            raise
        except TriplicateError as failure:
            self._host.trace("replica.retry", log=self._log, during="mark a snapshot as damaged", error=repr(failure))

    def _not_loaded(self, snapshot: Snapshot, error: TriplicateError) -> None:
        self._host.trace(
            "replica.snapshot_not_loaded",
            level="error",
            log=self._log,
            snapshot=snapshot.snapshot_id,
            error=f"{type(error).__name__}: {error}",
        )


class _SnapshotMetrics:
    def __init__(self, metrics: Metrics, log: str) -> None:
        made = metrics.counter("triplicate_snapshots", "Snapshots made by this node, by outcome.", ("log", "outcome"))
        self._published = made.labels(log, "published")
        self._discarded = made.labels(log, "discarded")
        self.failures = made.labels(log, "failed")
        self.loads = metrics.counter("triplicate_snapshot_loads", "Snapshots that replaced this node's copy.", ("log",)).labels(log)
        self.damaged = metrics.counter("triplicate_snapshots_damaged", "Snapshots that this node found damaged.", ("log",)).labels(log)
        self._good = metrics.gauge("triplicate_snapshots_listed", "Good snapshots that are listed.", ("log",)).labels(log)
        self._position = metrics.gauge("triplicate_snapshot_position", "Position of the newest good snapshot.", ("log",)).labels(log)
        self._time = metrics.gauge(
            "triplicate_snapshot_time_seconds", "When the newest good snapshot was made, seconds since the epoch.", ("log",)
        ).labels(log)
        self._size = metrics.gauge("triplicate_snapshot_size_bytes", "Content of the newest good snapshot.", ("log",)).labels(log)
        self._stored = metrics.gauge("triplicate_snapshot_stored_bytes", "The same as it is stored, one copy.", ("log",)).labels(log)
        self._seconds = metrics.gauge(
            "triplicate_snapshot_duration_seconds", "How long the last one made by this node took.", ("log",)
        ).labels(log)

    def listed(self, listed: SnapshotList) -> None:
        good = listed.good
        self._good.set(len(good))
        if good:
            self._position.set(good[-1].position)
            self._time.set(good[-1].time_ms / 1000)
            self._size.set(good[-1].size_bytes)
            self._stored.set(good[-1].stored_bytes)

    def made(self, snapshot: Snapshot, seconds: float, *, published: bool) -> None:
        (self._published if published else self._discarded).inc()
        self._seconds.set(seconds)
