"""Snapshots of one store on this node: its content is written to a file and read from there, and a snapshot becomes a new copy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Protocol, TypeVar

from triplicate.errors import Diverged, EnvironmentFault, SnapshotDamaged, StoreUnavailable
from triplicate.kv.storage.copy_folder import INCOMING, OUTGOING, beside, swap_folders
from triplicate.kv.storage.rocks_copy import OtherStore, RocksCopy
from triplicate.kv.storage.snapshot_stream import StreamDecoder, encode_stream
from triplicate.kv.storage.store_stand import StoreStand
from triplicate.log import CHUNK_BYTES, Snapshot, SnapshotHeader
from triplicate.replica import empty_folder
from triplicate.runtime import File, Host, RateLimiter, Worker, fault_point, shielded

Result = TypeVar("Result")

MACHINE = "key-value"
CONTENT = "key-value-stream"
CATCH_UP_S = 1.0
"""After slow steps, a copy may exceed its rate until it has made up for this many seconds."""
_SPARE_BYTES = 64 * 1024 * 1024
"""Bytes that must stay free on the disk beside a copy."""


class StoreOwner(Protocol):
    """The part of a store that its snapshots use."""

    @property
    def path(self) -> str: ...

    @property
    def position(self) -> int: ...

    @property
    def copied(self) -> RocksCopy:
        """The open copy. Raises StoreUnavailable."""

    async def replace(self, swap: Callable[[], None]) -> int:
        """Close the copy, call `swap` on a worker, and open the copy that `swap` has put in its place. Returns its position."""


class StreamCopy:
    """A snapshot's content in a file. Implements `replica.StateCopy`. Created by `StoreSnapshots.copy`."""

    def __init__(self, host: Host, worker: Worker, path: str) -> None:
        self.position = self.epoch = self.size_bytes = 0
        self._host = host
        self._worker = worker
        self._path = path
        self._file: File | None = None
        self._parts: Iterator[bytes] | None = None

    @property
    def facts(self) -> Mapping[str, int | str]:
        return {}

    async def write(self, copy: RocksCopy, rate_bytes_per_s: int) -> None:
        """Write the copy's content, which is of the moment at which this begins."""
        await self._run(self._begin, copy)
        rate = RateLimiter(self._host.clock, rate_bytes_per_s, CATCH_UP_S)
        while written := await self._run(self._step):
            await rate.admit(written)

    def _begin(self, copy: RocksCopy) -> None:
        disk = self._host.disk
        disk.delete(self._path)
        self._file = disk.open(self._path, create=True)
        snapshot = copy.moment()
        if snapshot.state.diverged is not None:
            raise Diverged(snapshot.state.diverged)
        self.position, self.epoch = snapshot.state.position, snapshot.state.epoch
        self._parts = encode_stream(snapshot.state, snapshot.items)

    def _step(self) -> int:
        """Write about one chunk. Returns its size; 0 at the end."""
        assert self._file is not None, "begun"
        assert self._parts is not None, "begun"
        parts, size_bytes = list[bytes](), 0
        for part in self._parts:
            parts.append(part)
            size_bytes += len(part)
            if size_bytes >= CHUNK_BYTES:
                break
        if parts:
            self._file.pwrite([b"".join(parts)], self.size_bytes)
            self.size_bytes += size_bytes
            self._check_room()
        self._host.step_aside()
        return size_bytes

    def _check_room(self) -> None:
        free_bytes, _ = self._host.disk.free_space(self._path)
        if free_bytes < _SPARE_BYTES:
            raise EnvironmentFault(f"{self._path}: no room for the copy for a snapshot, {free_bytes} bytes are free; free some space")

    async def read(self, offset: int, size: int, /) -> bytes:
        assert self._file is not None, "written"
        return await self._run(self._file.pread, size, offset)

    async def discard(self) -> None:
        try:
            await self._run(self._close)
        finally:
            await self._worker.close()

    def _close(self) -> None:
        self._parts = None  # RocksDB's iterator ends with it.
        if self._file is not None:
            self._file.close()
        self._host.disk.delete(self._path)

    async def _run(self, function: Callable[..., Result], *arguments: object) -> Result:
        return await on_disk(self._worker, function, *arguments)


class StoreSnapshots:
    """Implements `replica.SnapshotMachine` for one store on this node.

    Args:
        name: of the store. identity: its id, 16 bytes; snapshots of another store are refused.
    """

    machine = MACHINE
    content = CONTENT

    def __init__(self, host: Host, owner: StoreOwner, name: str, identity: bytes) -> None:
        self._host = host
        self._owner = owner
        self._name = name
        self._identity = identity

    @property
    def identity(self) -> str:
        return self._identity.hex()

    @property
    def position(self) -> int:
        return self._owner.position

    @fault_point("kv.copy")
    async def copy(self, rate_bytes_per_s: int, /) -> StreamCopy:
        """Write the content to a file. Reads and writes continue meanwhile.

        Raises:
            EnvironmentFault: the disk has no room. Diverged: this copy is marked as wrong.
        """
        try:
            source = self._owner.copied
        except StoreUnavailable as error:
            raise EnvironmentFault(str(error)) from error
        copy = StreamCopy(self._host, self._host.new_worker(f"kv-{self._name}-snapshot"), beside(self._owner.path, OUTGOING))
        try:
            await copy.write(source, rate_bytes_per_s)
        except BaseException:
            await shielded(copy.discard())
            raise
        return copy

    @fault_point("kv.restore")
    async def restore(self, snapshot: Snapshot, header: SnapshotHeader, chunks: AsyncIterator[memoryview], /) -> int:
        """Replace the local copy by a snapshot's content. Returns its position.

        The content becomes a copy in another folder, which is renamed when it is complete.

        Raises:
            SnapshotDamaged: the content is not a sound state of this store. EnvironmentFault: the disk failed. FormatError: a later release
                wrote the content. Also the errors of `chunks`.
        """
        worker = self._host.new_worker(f"kv-{self._name}-restore")
        path = beside(self._owner.path, INCOMING)
        incoming = _IncomingCopy(self._host, path, self._identity)
        try:
            await on_disk(worker, incoming.open)
            async for chunk in chunks:
                await on_disk(worker, incoming.feed, chunk)
            await on_disk(worker, incoming.finish, snapshot, header)
            return await self._owner.replace(lambda: swap_folders(self._host.disk, self._owner.path))
        finally:
            await shielded(self._remove_incoming(worker, incoming))

    async def _remove_incoming(self, worker: Worker, incoming: _IncomingCopy) -> None:
        try:
            await on_disk(worker, incoming.remove)
        except EnvironmentFault as error:
            self._host.trace("kv.leftover", store=self._name, error=repr(error))
        await worker.close()


class _IncomingCopy:
    """A copy that is made from a snapshot's content. All methods block."""

    def __init__(self, host: Host, path: str, identity: bytes) -> None:
        self._host = host
        self._path = path
        self._identity = identity
        self._copy: RocksCopy | None = None
        self._decoder = StreamDecoder()

    def open(self) -> None:
        empty_folder(self._host.disk, self._path)
        try:
            self._copy = RocksCopy(self._path, self._identity)
        except OtherStore as error:
            raise EnvironmentFault(f"{self._path} could not be emptied: {error}") from error

    def feed(self, chunk: memoryview) -> None:
        assert self._copy is not None, "open"
        items = self._decoder.feed(chunk)
        if items:
            self._copy.load(items)
        self._host.step_aside()

    def finish(self, snapshot: Snapshot, header: SnapshotHeader) -> None:
        """Check the state of the content, store it, and close the copy."""
        assert self._copy is not None, "open"
        state = self._decoder.finish()
        listed = StoreStand(self._identity, snapshot.position, header.epoch, state.number, state.time_ms, state.keys)
        if state != listed:
            raise SnapshotDamaged(
                f"snapshot {snapshot.snapshot_id} is listed at position {snapshot.position}, epoch {header.epoch} of store "
                f"{self._identity.hex()}; its content has position {state.position}, epoch {state.epoch} of store {state.identity.hex()}"
            )
        self._copy.write((), state)
        self._copy.flush()
        self._copy.close()

    def remove(self) -> None:
        if self._copy is not None:
            self._copy.close()
        empty_folder(self._host.disk, self._path)


async def on_disk(worker: Worker, function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function on a worker. Raises EnvironmentFault if the disk fails."""
    try:
        return await worker.run(function, *arguments)
    except OSError as error:
        raise EnvironmentFault(f"{error.filename or 'the disk'}: {error.strerror or error}") from error
