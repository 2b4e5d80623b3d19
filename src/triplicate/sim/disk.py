"""The disk port in memory: a crash drops or tears unsynced data, space runs out, a sync can be slow or fail.

`SimulatedDisk` is the medium of one node and survives its crashes. `SimulatedDisk.port` gives one life of the node its view. Directory
entries are durable only after `sync_directory`, as POSIX says, which is stricter than most file systems.
"""

from __future__ import annotations

import asyncio
import errno
import os
import posixpath
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from zlib import crc32

from triplicate.runtime import Buffer, Disk, File, Group, LogDevice, resolve_all
from triplicate.sim.disk_image import DIRECTORY, Directory, DirectoryEntry, Inode, Namespace, Resize, Write, parent_of
from triplicate.sim.recorder import Recorder
from triplicate.sim.virtual_loop import Life, VirtualLoop, context_of

Item = TypeVar("Item")

ROT_TRIES = 64
"""Draws of `SimulatedDisk.rot` until it finds a byte that no pending write covers."""


@dataclass(frozen=True)
class DiskTiming:
    """Delays of a disk. A sync takes a time drawn between the two bounds, and `stall_s` in `stall_rate` of all cases."""

    sync_low_s: float = 0.0003
    sync_high_s: float = 0.004
    stall_rate: float = 0.01
    stall_s: float = 0.060
    bytes_per_s: float = 400e6


class SimulatedDisk:
    """One node's file system.

    Args:
        name: the node's name.
        chance: the disk's own random stream.
        total_bytes: capacity. Writes beyond it fail with ENOSPC.
    """

    def __init__(
        self, name: str, rng: random.Random, recorder: Recorder, *, total_bytes: int = 1 << 40, timing: DiskTiming | None = None
    ) -> None:
        self.name = name
        self.total_bytes = total_bytes
        self.timing = timing or DiskTiming()
        self.names = Namespace()
        self.io_time_s = 0.0
        """I/O time, in seconds, of operations since the last `pop_io_time`. Workers and log devices wait for it."""
        self.operations = 0
        """Operations so far that changed data or made it durable: the points at which a crash has a different effect."""
        self.syncs = 0
        self.before_operation: Callable[[str, str], None] | None = None
        """Called with kind and path before each such operation. May crash the node (raise `HostCrashed`) or raise OSError."""
        self.failing_syncs: list[str] = []
        """Path prefixes. The next sync of a file under each fails once with EIO, and its unsynced bytes are lost for good."""
        self.lost_bytes = 0
        """Unsynced bytes dropped by crashes and failed syncs so far."""
        self.torn_writes = 0
        """Writes of which a crash kept a part."""
        self.rotten_bits = 0
        self.failed_syncs = 0
        self.refused_writes = 0
        """Writes and allocations that failed for lack of space."""
        self.slowness = 1.0
        """Factor on the times of writes and syncs; see `slow`."""
        self.locks: dict[str, Life] = {}
        self._limits: dict[str, int] = {}
        """By path prefix, the bytes that its files may occupy while `fill` is in effect."""
        self._used_at_most = 0
        """An upper bound of `used_bytes` that is cheap to maintain."""
        self._rng = rng
        self._recorder = recorder

    def port(self, life: Life, loop: VirtualLoop) -> Disk:
        """Return the view of one life. It is unusable once that life is over."""
        return DiskPort(self, life, loop)

    def make_directory(self, path: str) -> None:
        """Make a durable directory, and its parents, as the machine's administrator would."""
        for part in _lineage(path):
            self.names.live[part] = DIRECTORY
            self.names.durable[part] = DIRECTORY

    def crash(self) -> None:
        """Cut the power: unsynced bytes and names are lost or torn, locks are released."""
        inodes = self._inodes([*self.names.live.values(), *self.names.durable.values()])
        for inode in inodes:
            lost, torn = inode.crash(self._rng)
            self.lost_bytes += lost
            self.torn_writes += torn
        self.names.crash(self._rng)
        # Deleted files and truncated parts may be back.
        self._used_at_most = self.used_bytes()
        self.locks.clear()
        self.io_time_s = 0.0
        self.before_operation = None
        digest = [
            (path, entry.live.size, crc32(entry.live.data)) for path, entry in sorted(self.names.live.items()) if isinstance(entry, Inode)
        ]
        self._recorder.note("disk.crash", self.name, digest)

    def end_process(self) -> None:
        """End the process only: the kernel keeps unsynced data. Locks are released."""
        self.locks.clear()
        self.io_time_s = 0.0
        self.before_operation = None

    def flip_bit(self, path: str, offset: int, bit: int = 0) -> None:
        """Flip one bit of a file, both in programs' view and on the medium."""
        inode = self.names.live[path]
        assert isinstance(inode, Inode), f"{path} is no file"
        for image in (inode.live, inode.durable):
            if offset < len(image.data):
                image.data[offset] ^= 1 << bit
        self.rotten_bits += 1
        self._recorder.note("disk.rot", self.name, path, offset, bit)

    def rot(self, rng: random.Random, prefix: str = "/") -> tuple[str, int] | None:
        """Flip one random bit on the medium, in a file under `prefix`. Each byte is equally likely.

        Bytes covered by a write that waits for its sync are left alone: the sync would repair them.

        Returns:
            path and offset, or None when nothing under `prefix` is durable.
        """
        files = [
            (path, inode)
            for path, inode in sorted(self.names.live.items())
            if isinstance(inode, Inode) and path.startswith(prefix) and inode.durable.data
        ]
        weights = [len(inode.durable.data) for _, inode in files]
        for _ in range(ROT_TRIES if files else 0):
            path, inode = rng.choices(files, weights)[0]
            offset, bit = rng.randrange(len(inode.durable.data)), rng.randrange(8)
            if not inode.is_pending(offset):
                self.flip_bit(path, offset, bit)
                return path, offset
        return None

    def fail_next_sync(self, prefix: str = "/") -> None:
        """Make the next sync of a file under `prefix` fail with EIO. The data it covers is lost for good."""
        self.failing_syncs.append(prefix)

    def slow(self, factor: float) -> None:
        """Multiply the times of writes and syncs by `factor` from now on; 1 is normal."""
        self.slowness = factor
        self._recorder.note("disk.slow", self.name, factor)

    def wipe(self) -> None:
        """Delete everything but the root, as when a disk is replaced."""
        self.names = Namespace()
        self.locks.clear()
        self._used_at_most = 0
        self.before_operation = None
        self._recorder.note("disk.wipe", self.name)

    def delete_durably(self, path: str) -> None:
        """Delete a file, both in programs' view and on the medium."""
        for names in (self.names.live, self.names.durable):
            names.pop(path, None)
        for change in self.names.pending:
            change.moves.pop(path, None)
        self._recorder.note("disk.lose_file", self.name, path)

    def fill(self, free_bytes: int = 0, prefix: str = "/") -> None:
        """Fill the disk but for `free_bytes`. Operations that need more fail with ENOSPC until `relieve`.

        Args:
            prefix: path prefix that the limit applies to, as if it were a disk of its own.
        """
        self._limits[prefix] = self.used_bytes(prefix) + free_bytes
        self._recorder.note("disk.fill", self.name, free_bytes, prefix)

    def relieve(self, prefix: str = "/") -> None:
        """Undo `fill`."""
        self._limits.pop(prefix, None)
        self._recorder.note("disk.relieve", self.name, prefix)

    @property
    def is_filled(self) -> bool:
        """Whether `fill` is in effect for any prefix."""
        return bool(self._limits)

    def free_bytes(self, path: str = "/") -> int:
        """Space left for a path."""
        left = [limit - self.used_bytes(prefix) for prefix, limit in self._limits.items() if (path + "/").startswith(prefix)]
        return max(0, min([self.total_bytes - self.used_bytes(), *left]))

    def reserve_space(self, path: str, growth: int) -> None:
        """Account for the growth of a file.

        Raises:
            OSError: ENOSPC, there is no space for it.
        """
        limit = min(self.total_bytes, self._limits.get("/", self.total_bytes))
        if self._used_at_most + growth > limit:
            self._used_at_most = self.used_bytes()
            if self._used_at_most + growth > limit:
                self._refuse(path, growth)
        for prefix, most in self._limits.items():
            if prefix != "/" and path.startswith(prefix) and self.used_bytes(prefix) + growth > most:
                self._refuse(path, growth)
        self._used_at_most += growth

    def _refuse(self, path: str, growth: int) -> None:
        self.refused_writes += 1
        self._recorder.note("disk.full", self.name, path, growth)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def used_bytes(self, prefix: str = "/") -> int:
        """Bytes occupied by the files under a prefix."""
        inodes = self._inodes([entry for path, entry in self.names.live.items() if path.startswith(prefix)])
        return sum(inode.live.size for inode in inodes)

    def pop_io_time(self) -> float:
        """Return the I/O time in seconds since the last call, and reset it."""
        debt, self.io_time_s = self.io_time_s, 0.0
        return debt

    def operate(self, kind: str, path: str, *facts: int) -> None:
        """Count one operation and call the fault hook."""
        self.operations += 1
        if self.before_operation is not None:
            self.before_operation(kind, path)
        self._recorder.note("disk." + kind, self.name, path, *facts)

    def sync(self, path: str, inode: Inode, last: Write | Resize | None = None) -> None:
        """Make a file's pending operations (up to `last` where given) durable, or fail where a failure was ordered."""
        self.operate("sync", path)
        for index, prefix in enumerate(self.failing_syncs):
            if path.startswith(prefix):
                del self.failing_syncs[index]
                self.failed_syncs += 1
                self.lost_bytes += inode.drop_pending()
                self._recorder.note("disk.sync_failed", self.name, path)
                raise OSError(errno.EIO, "sync failed (injected)", path)
        self.syncs += 1
        inode.sync(last)

    def sync_time(self) -> float:
        """Draw the duration of one sync, in seconds."""
        timing = self.timing
        if self._rng.random() < timing.stall_rate:
            return timing.stall_s * self.slowness
        return self._rng.uniform(timing.sync_low_s, timing.sync_high_s) * self.slowness

    def write_time(self, size: int) -> float:
        """Duration of a write of this size, in seconds."""
        return size / self.timing.bytes_per_s * self.slowness

    @staticmethod
    def _inodes(entries: Sequence[DirectoryEntry]) -> list[Inode]:
        """Each file once, in the order of `entries`, however many names it has."""
        return list({id(entry): entry for entry in entries if isinstance(entry, Inode)}.values())


class DiskPort:
    """`runtime.ports.Disk` for one life of a node."""

    def __init__(self, disk: SimulatedDisk, life: Life, loop: VirtualLoop) -> None:
        self._disk = disk
        self._life = life
        self._loop = loop

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> File:
        self._life.check()
        path = _normal(path)
        entry = self._disk.names.live.get(path)
        if isinstance(entry, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if entry is not None and create and exclusive:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if entry is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self._require_directory(parent_of(path))
            self._disk.operate("create", path)
            entry = Inode()
            self._disk.names.change((parent_of(path),), {path: entry})
        return SimulatedFile(self._disk, self._life, path, entry, readonly=readonly)

    def lock(self, path: str) -> Callable[[], None]:
        self._life.check()
        path = _normal(path)
        holder = self._disk.locks.get(path)
        if holder is not None and holder.alive:
            raise BlockingIOError(errno.EWOULDBLOCK, f"locked by {holder.name}", path)
        self.open(path, create=True).close()
        self._disk.locks[path] = self._life

        def release() -> None:
            if self._disk.locks.get(path) is self._life:
                del self._disk.locks[path]

        return release

    def exists(self, path: str) -> bool:
        self._life.check()
        return _normal(path) in self._disk.names.live

    def names(self, path: str) -> list[str]:
        self._life.check()
        path = _normal(path)
        self._require_directory(path)
        return sorted(posixpath.basename(name) for name in self._disk.names.live if name != "/" and parent_of(name) == path)

    def mkdir(self, path: str) -> None:
        self._life.check()
        for part in _lineage(_normal(path)):
            entry = self._disk.names.live.get(part)
            if isinstance(entry, Inode):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), part)
            if entry is None:
                self._disk.operate("mkdir", part)
                self._disk.names.change((parent_of(part),), {part: DIRECTORY})

    def rename(self, source: str, target: str) -> None:
        self._life.check()
        source, target = _normal(source), _normal(target)
        live = self._disk.names.live
        if source not in live:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        self._require_directory(parent_of(target))
        if isinstance(live[source], Directory) and target in live:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        if isinstance(live.get(target), Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
        self._disk.operate("rename", target)
        moves: dict[str, DirectoryEntry | None] = {}
        for path in sorted(live):
            if path == source or path.startswith(source + "/"):
                moves[path] = None
        for path in list(moves):
            moves[target + path[len(source) :]] = live[path]
        self._disk.names.change((parent_of(source), parent_of(target)), moves)

    def delete(self, path: str) -> None:
        self._life.check()
        path = _normal(path)
        entry = self._disk.names.live.get(path)
        if entry is None:
            return
        if isinstance(entry, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._disk.operate("delete", path)
        self._disk.names.change((parent_of(path),), {path: None})

    def sync_directory(self, path: str) -> None:
        self._life.check()
        path = _normal(path)
        self._require_directory(path)
        self._disk.operate("sync_directory", path)
        self._disk.io_time_s += self._disk.sync_time()
        self._disk.names.sync(path)

    def free_space(self, path: str) -> tuple[int, int]:
        self._life.check()
        return self._disk.free_bytes(_normal(path)), self._disk.total_bytes

    def log_device(
        self,
        name: str,
        form: Callable[[list[Item]], tuple[Group, int]],
        done: Callable[[list[Item]], None],
        failed: Callable[[list[Item], OSError], None],
        written: Callable[[list[Item]], None] | None = None,
    ) -> LogDevice[Item]:
        self._life.check()
        return SimulatedLogDevice(self._disk, self._life, self._loop, form, done, failed, written)

    def _require_directory(self, path: str) -> None:
        entry = self._disk.names.live.get(path)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if isinstance(entry, Inode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)


class SimulatedFile:
    """`runtime.ports.File` for one life of a node. Stays usable after its name is gone, as on POSIX."""

    def __init__(self, disk: SimulatedDisk, life: Life, path: str, inode: Inode, *, readonly: bool) -> None:
        self.path = path
        self.inode = inode
        self._disk = disk
        self._life = life
        self._readonly = readonly
        self._closed = False

    def pread(self, size: int, offset: int) -> bytes:
        self._check()
        return self.inode.live.read(size, offset)

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> int:
        self._check(writing=True)
        data = b"".join(buffers)
        if not data:
            return 0
        self._need_space(offset + len(data))
        self._disk.operate("write", self.path, offset, len(data), crc32(data))
        self._disk.io_time_s += self._disk.write_time(len(data))
        self.inode.change(Write(offset, data))
        return len(data)

    def append(self, buffers: Sequence[Buffer]) -> int:
        self._check(writing=True)
        offset = self.inode.live.size
        self.pwrite(buffers, offset)
        return offset

    def size(self) -> int:
        self._check()
        return self.inode.live.size

    def truncate(self, size: int) -> None:
        self._check(writing=True)
        self._need_space(size)
        self._disk.operate("truncate", self.path, size)
        self.inode.change(Resize(size))

    def allocate(self, offset: int, length: int) -> None:
        self._check(writing=True)
        if offset + length > self.inode.live.size:
            self._need_space(offset + length)
            self._disk.operate("allocate", self.path, offset, length)
            self.inode.change(Resize(offset + length))

    def sync(self) -> None:
        self._check()
        self._disk.io_time_s += self._disk.sync_time()
        self._disk.sync(self.path, self.inode)

    def close(self) -> None:
        self._closed = True

    def _check(self, *, writing: bool = False) -> None:
        self._life.check()
        if self._closed:
            raise OSError(errno.EBADF, "the file is closed", self.path)
        if writing and self._readonly:
            raise OSError(errno.EBADF, "the file is open for reading only", self.path)

    def _need_space(self, size: int) -> None:
        growth = size - self.inode.live.size
        if growth > 0:
            self._disk.reserve_space(self.path, growth)


class SimulatedLogDevice(Generic[Item]):
    """`runtime.ports.LogDevice` as scheduled instants: begin, written, synced. A crash between the last two tears the group.

    The sync is the kernel's: it completes while the process is paused, and the process learns of it when it resumes.
    """

    WAKE_S = 0.00002
    """Delay between `submit` on an idle device and the forming of the group: a thread waking up."""

    def __init__(
        self,
        disk: SimulatedDisk,
        life: Life,
        loop: VirtualLoop,
        form: Callable[[list[Item]], tuple[Group, int]],
        done: Callable[[list[Item]], None],
        failed: Callable[[list[Item], OSError], None],
        written: Callable[[list[Item]], None] | None = None,
    ) -> None:
        self._disk = disk
        self._life = life
        self._loop = loop
        self._form = form
        self._done = done
        self._failed = failed
        self._written = written
        self._waiting: list[Item] = []
        self._busy = False
        self._broken = False
        self._closing = False
        self._idle: list[asyncio.Future[None]] = []
        self._context = context_of(life)
        self._kernel = context_of(None)

    def submit(self, item: Item) -> None:
        self._life.check()
        if self._broken or self._closing:
            raise OSError(errno.EIO, "the log device accepts nothing more")
        self._waiting.append(item)
        if not self._busy:
            self._busy = True
            self._loop.call_later(self.WAKE_S, self._begin)

    async def close(self) -> None:
        self._closing = True
        if self._busy:
            idle = self._loop.create_future()
            self._idle.append(idle)
            await idle

    def _begin(self) -> None:
        if not self._waiting:
            self._become_idle()
            return
        self._disk.pop_io_time()
        try:
            group, count = self._form(self._waiting)
            group.file.pwrite(group.buffers, group.offset)
        except OSError as error:
            self._fail(error)
            return
        assert count >= 1, "a log device's form covers at least one item"
        assert isinstance(group.file, SimulatedFile)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        if group.report_written and self._written is not None:
            self._loop.call_soon(self._written, taken)
        last = group.file.inode.pending[-1] if group.file.inode.pending else None
        delay_s = self._disk.pop_io_time() + self._disk.sync_time()
        self._loop.call_later(delay_s, self._sync, group.file, last, taken, context=self._kernel)

    def _sync(self, file: SimulatedFile, last: Write | Resize | None, taken: list[Item]) -> None:
        if not self._life.alive:
            return
        failure: OSError | None = None
        try:
            # The sync covers only writes made before it began.
            self._disk.sync(file.path, file.inode, last)
        except OSError as error:
            failure = error
        self._loop.call_soon(self._synced, taken, failure, context=self._context)

    def _synced(self, taken: list[Item], failure: OSError | None) -> None:
        if failure is not None:
            self._waiting[:0] = taken
            self._fail(failure)
            return
        self._loop.call_soon(self._begin)
        self._done(taken)

    def _fail(self, error: OSError) -> None:
        self._broken = True
        lost, self._waiting = self._waiting, []
        self._become_idle()
        self._failed(lost, error)

    def _become_idle(self) -> None:
        self._busy = False
        resolve_all(self._idle)


def _normal(path: str) -> str:
    assert path.startswith("/"), f"paths are absolute, got {path!r}"
    return "/" + posixpath.normpath(path).lstrip("/")


def _lineage(path: str) -> list[str]:
    """A directory's ancestors below the root, outermost first, and itself."""
    parts = [part for part in _normal(path).split("/") if part]
    return ["/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))]
