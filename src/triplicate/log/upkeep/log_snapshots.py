"""The snapshots of a log: the list that names them, and its changes by compare-and-set.

A snapshot is written as a ledger first (`snapshot_ledgers`) and listed afterwards. A ledger that was never listed, or has left the list and
could not be deleted, is an orphan: its custom metadata say ``component=snapshot``, and the sweep of orphans finds it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import BadVersion, ConnectionLost, NodeExists, NoNode, NoSuchLedger, TriplicateError
from triplicate.log.core import snapshot_list
from triplicate.log.core.encryption import LedgerDecryptor
from triplicate.log.core.head import LogSegment, SegmentState
from triplicate.log.core.payload import decode_header
from triplicate.log.core.snapshot_format import SnapshotHeader
from triplicate.log.core.snapshot_list import NO_SEGMENTS, LogLength, Snapshot, SnapshotList, decode_snapshots, encode_snapshots
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.log_encryption import LogEncryption
from triplicate.log.store.segments import password_of
from triplicate.log.upkeep.snapshot_ledgers import SnapshotReader, SnapshotWriter
from triplicate.metadata import CheckVersion, CreateNode, DeleteNode, SetData, TreeOperation, Watch, delete_of_session, own_paths
from triplicate.runtime import fault_point, sleep


@dataclass(frozen=True, slots=True)
class StoredList:
    """The list, and the version of its node; None without a node."""

    listed: SnapshotList
    version: int | None


async def read_list(store: HeadStore, name: str) -> StoredList:
    """Read the present list. Raises FormatError, CorruptionError: it cannot be read."""
    path = own_paths.snapshots_path(store.own_root, name)
    try:
        data, stat = await store.persist(lambda: store.tree.get(path))
    except NoNode:
        return StoredList(SnapshotList(), None)
    return StoredList(decode_snapshots(data, name), stat.version)


async def snapshot_ledgers(store: HeadStore, name: str) -> tuple[frozenset[int], list[TreeOperation]]:
    """Ids of the ledgers that the list names, and operations that fail once the list has changed.

    The caller has synced the store where a list that is behind would do harm.
    """
    path, stored = own_paths.snapshots_path(store.own_root, name), await read_list(store, name)
    ids = frozenset(snapshot.ledger_id for snapshot in stored.listed.snapshots)
    # No single operation checks for absence; this pair does.
    return ids, [CreateNode(path), DeleteNode(path)] if stored.version is None else [CheckVersion(path, stored.version)]


async def delete_ledgers(client: LedgerClient, ledger_ids: Sequence[int]) -> None:
    """Delete ledgers of snapshots, ignoring those already deleted."""
    for ledger_id in ledger_ids:
        try:
            await client.delete(ledger_id)
        except NoSuchLedger:
            client.host.trace("log.already_deleted", ledger=ledger_id)


class LogSnapshots:
    """The snapshots of one log. Made by `Logs.snapshots`; holds no connection of its own."""

    def __init__(self, name: str, client: LedgerClient, store: HeadStore, settings: LogClientSettings, encryption: LogEncryption) -> None:
        self.name = name
        self._encryption = encryption
        self._client = client
        self._store = store
        self._settings = settings
        self._path = own_paths.snapshots_path(store.own_root, name)
        self._log_id = ""

    async def _unchanged(self) -> list[TreeOperation]:
        """Operations that fail once the head has changed. Raises NoSuchLog: the log is gone, or another one has its name since."""
        stored = await (self._store.read_same(self.name, self._log_id) if self._log_id else self._store.read(self.name))
        self._log_id = stored.head.log_id
        identity = await self._store.identity(self.name, self._log_id)
        return [CheckVersion(self._store.path(self.name), stored.version), identity]

    def watch(self) -> Watch:
        """A watch that fires when the list may have changed."""
        return self._store.tree.watch(self._path)

    async def read(self, *, fresh: bool = False) -> SnapshotList:
        """Read the present list; empty if nothing was ever listed.

        Args:
            fresh: synchronize the metadata first, for decisions that a stale list would make wrong.

        Raises:
            FormatError, CorruptionError: it cannot be read.
        """
        if fresh:
            await self._store.persist(lambda: self._store.tree.sync(self._path))
        return (await read_list(self._store, self.name)).listed

    @fault_point("log.snapshot_list")
    async def publish(self, snapshot: Snapshot, after: str | None) -> bool:
        """List a snapshot whose ledger is closed. Ledgers that it displaces from the list are deleted.

        Args:
            after: id of the newest listed snapshot when the copy was taken, None if there was none.

        Returns:
            False when another snapshot was listed meanwhile: the caller deletes its own ledger.

        Raises:
            NoSuchLog: the log has been deleted. NoSuchLedger: the snapshot's ledger has.
        """

        def decide(listed: SnapshotList) -> SnapshotList | None:
            return None if listed.find(snapshot.snapshot_id) is not None else snapshot_list.add(listed, snapshot, after)

        before, _ = await self._change(decide, snapshot.ledger_id)
        # After an unknown outcome it may be listed although the last attempt changed nothing.
        now = await self.read(fresh=True)
        kept = {item.ledger_id for item in now.snapshots}
        if snapshot.ledger_id not in kept:
            return False
        await self._delete_dropped([item.ledger_id for item in before.snapshots if item.ledger_id not in kept])
        return True

    async def mark_damaged(self, snapshot_id: str, reason: str) -> bool:
        """Mark a snapshot as damaged: it is not loaded, and the log is not truncated behind it.

        Returns:
            False if it is not listed as a good one.
        """
        _, after = await self._change(lambda listed: snapshot_list.mark_damaged(listed, snapshot_id, reason))
        return after is not None

    async def want(self, position: int) -> SnapshotList:
        """Request a snapshot at an offset or beyond. Returns the list, which holds the request until it is fulfilled."""
        before, after = await self._change(lambda listed: snapshot_list.want(listed, position))
        return before if after is None else after

    # The claim.

    async def claim(self) -> bool:
        """Claim the making of a snapshot for this session; False if another session has the claim.

        The claim only avoids wasted work: the list decides which snapshot is kept.
        """
        path = f"{self._path}/claim"
        for _ in range(2):
            # Not in a log that is being deleted: the node would block the deletion.
            unchanged = await self._unchanged()
            try:
                await self._store.tree.multi([*unchanged, CreateNode(path, ephemeral=True)])
            except NodeExists:
                stat = await self._store.tree.exists(path)
                return stat is not None and stat.ephemeral_owner == self._store.tree.session_id
            except BadVersion:
                continue
            except NoNode:
                await self._make_node()
            else:
                return True
        return False

    async def _make_node(self) -> None:
        unchanged = await self._unchanged()
        try:
            await self._store.tree.multi([*unchanged, CreateNode(self._path, encode_snapshots(SnapshotList()))])
        except (NodeExists, BadVersion):
            return  # The next attempt to claim finds out.

    async def release(self) -> None:
        """Delete the claim if it is this session's."""
        await self._store.persist(lambda: delete_of_session(self._store.tree, f"{self._path}/claim"))

    async def _change(
        self, decide: Callable[[SnapshotList], SnapshotList | None], ledger_id: int | None = None
    ) -> tuple[SnapshotList, SnapshotList | None]:
        """Read, decide, compare and set; repeat if the list has changed meanwhile or the outcome is unknown.

        Args:
            decide: returns the new list, or None if nothing is to be changed, for example because the change was applied already.
            ledger_id: a ledger that must exist for the change to be made.

        Returns:
            The first list that was read, and the last one written; None where nothing was written in the last attempt.
        """
        backoff = self._store.backoff()
        first: SnapshotList | None = None
        while True:
            operations = await self._unchanged()
            stored = await read_list(self._store, self.name)
            first = first or stored.listed
            changed = decide(stored.listed)
            if changed is None:
                return first, None
            data = encode_snapshots(changed)
            if ledger_id is not None:
                operations.append(CheckVersion(self._store.ledgers.node_path(ledger_id)))
            operations.append(self._write(data, stored.version))
            try:
                await self._store.tree.multi(operations)
            except NoNode:
                await self._explain(ledger_id)
            except (BadVersion, NodeExists, ConnectionLost):
                # The next round reads the list again, and with it this change or another one.
                if backoff.attempts >= self._settings.change_attempts:
                    raise
            else:
                return first, changed
            await sleep(self._store.host.clock, backoff.next_s())

    def _write(self, data: bytes, version: int | None) -> TreeOperation:
        """The compare-and-set of the list itself."""
        return CreateNode(self._path, data) if version is None else SetData(self._path, data, version)

    async def _explain(self, ledger_id: int | None) -> None:
        """Find out what was missing in a transaction: the log, the ledger, or the list, which is then read again.

        Raises:
            NoSuchLog, NoSuchLedger.
        """
        await self._store.read(self.name)
        if ledger_id is not None:
            await self._client.metadata_of(ledger_id)

    async def _delete_dropped(self, ledger_ids: Sequence[int]) -> None:
        try:
            await delete_ledgers(self._client, ledger_ids)
        except TriplicateError as error:
            self._client.host.trace("log.orphan", log=self.name, ledgers=list(ledger_ids), error=repr(error))

    # Content.

    async def writer(self, header: SnapshotHeader, *, rate_bytes_per_s: int = 0) -> SnapshotWriter:
        """Begin a ledger for a snapshot with the log's quorums and compression.

        Args:
            rate_bytes_per_s: limit of the rate; 0 for none.

        Raises:
            NoSuchLog, NotEnoughBookies. LogKeyMissing, ConfigError: the log is encrypted, and its key cannot be had.
        """
        head = (await self._store.read(self.name)).head
        return await SnapshotWriter.create(self._client, self._settings, self._encryption, head, self.name, header, rate_bytes_per_s)

    async def header_fields(self) -> tuple[str, str]:
        """Log id and compression, for the header of a new snapshot. Raises NoSuchLog."""
        head = (await self._store.read(self.name)).head
        return head.log_id, head.settings.compression

    def new_id(self) -> str:
        """A new unique id of a snapshot."""
        return self._store.token()

    def open(self, snapshot: Snapshot, *, rate_bytes_per_s: int = 0) -> SnapshotReader:
        """Open a snapshot for reading. Its content is checked against the list while it is read."""
        return SnapshotReader(self._client, self._settings, snapshot, rate_bytes_per_s, self._decryptor)

    async def _decryptor(self) -> LedgerDecryptor | None:
        return self._encryption.snapshot_decryptor(self.name, (await self._store.read(self.name)).head)

    async def verify(self, snapshot: Snapshot, *, rate_bytes_per_s: int = 0) -> None:
        """Read a snapshot from the bookies and compare it with the list.

        Raises:
            SnapshotDamaged, NoSuchLedger: it cannot be loaded. ReadFailed and others: the state is unknown.
        """
        async with self.open(snapshot, rate_bytes_per_s=rate_bytes_per_s) as reader:
            chunks: AsyncIterator[memoryview] = reader.chunks()
            async for _ in chunks:
                pass

    async def discard(self, ledger_id: int) -> None:
        """Delete the ledger of an attempt that is not listed. If that fails, the sweep of orphans deletes it later."""
        await self._delete_dropped([ledger_id])

    # How long the log is.

    async def length(self) -> LogLength:
        """How far the log is written now."""
        segments = await self._segments()
        return LogLength(segments[-1].ledger_id, segments[-1].size_bytes) if segments else NO_SEGMENTS

    async def size_since(self, offset: int) -> int:
        """The approximate size of the log beyond an offset, bytes. Part of a segment is estimated from its records."""
        return sum(_beyond(segment, offset) for segment in await self._segments())

    async def grown_since(self, snapshot: Snapshot) -> int:
        """The growth of the log since a snapshot was made, bytes; as `size_since` if the segment of that time no longer exists."""
        segments = await self._segments()
        for place, segment in enumerate(segments):
            if segment.ledger_id == snapshot.log_ledger:
                return max(segment.size_bytes - snapshot.log_bytes, 0) + sum(later.size_bytes for later in segments[place + 1 :])
        return sum(_beyond(segment, snapshot.position) for segment in segments)

    async def _segments(self) -> list[LogSegment]:
        """The log's segments, oldest first. The open one is included with its present records and length."""
        segments = await self._store.segments(self.name)
        if not segments or segments[-1].state is not SegmentState.OPEN:
            return segments
        try:
            view = await self._client.open(segments[-1].ledger_id, password=password_of(self._settings))
        except NoSuchLedger:
            return segments[:-1]  # Taken over since, and empty; the next look counts what is there.
        try:
            last = view.last_add_confirmed
            if last < 0:
                return segments
            (entry,) = await view.read(last, last)
        finally:
            await view.aclose()
        records = decode_header(entry.payload).end_index
        return [*segments[:-1], replace(segments[-1], records=records, size_bytes=entry.length)]


def _beyond(segment: LogSegment, offset: int) -> int:
    """Bytes of a segment beyond an offset, assuming records of equal size."""
    if offset <= segment.first_offset:
        return segment.size_bytes
    return segment.size_bytes * max(segment.end_offset - offset, 0) // max(segment.records, 1)
