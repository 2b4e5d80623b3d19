"""A machine for one bookie whose disk records every operation.

It implements the ports of `Host` without network, threads or sleep, and is fast enough for thousands of starts.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import ssl
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from tests.crash.medium import DIRECTORY, FailedSync, Image, Medium, NameChange, Operation, Resize, Sync, SyncDirectory, Write, parent_of
from triplicate.runtime import Buffer, File, Group, Host, Listener
from triplicate.sim.virtual_loop import Life, VirtualLoop, context_of

Item = TypeVar("Item")
Result = TypeVar("Result")

SYNC_S = 0.001
"""Duration of a log device's sync, so that operations of workers fall before, into and behind it."""
EPOCH_US = 1_750_000_000_000_000
Fault = Callable[[str, str, int], OSError | None]
"""Called before each operation that takes space or syncs with (kind, path, bytes). An error that it returns is raised."""


class RecordingDisk:
    """`runtime.ports.Disk` over a `Medium`, with a record of all operations."""

    def __init__(self, medium: Medium, loop: VirtualLoop) -> None:
        self.medium = medium
        self.record: list[Operation] = []
        self.fault: Fault | None = None
        self.failed_sync_kept = False
        """Whether the bytes of a sync that `fault` makes fail reach the disk all the same."""
        self.interleave: random.Random | None = None
        """Draws at which operations of a busy worker the log devices take their next step."""
        self._loop = loop
        self._files = max([0, *medium.live.files])
        self._locks: dict[str, bool] = {}
        self._devices: list[RecordingDevice[Any]] = []
        self.working = False
        """Whether a worker's function runs, so that another thread may act between two of its operations."""

    def forget_process(self) -> None:
        """End the process: release its locks and stop its devices."""
        self._locks.clear()
        self._devices.clear()

    def operate(self, operation: Operation) -> None:
        self.medium.apply(operation)
        self.record.append(operation)
        if self.working and self.interleave is not None:
            for device in self._devices:
                if self.interleave.random() < 0.4:
                    self.working = False
                    device.step()
                    self.working = True

    def check(self, kind: str, path: str, size: int = 0) -> None:
        if self.fault is not None:
            error = self.fault(kind, path, size)
            if error is not None:
                raise error

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> RecordingFile:
        number = self.medium.live.names.get(path)
        if number == DIRECTORY:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if number is not None and create and exclusive:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if number is None:
            if not create or parent_of(path) not in self.medium.live.names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self.check("create", path)
            self._files += 1
            number = self._files
            self.operate(NameChange(parent_of(path), ((path, number),)))
        return RecordingFile(self, path, number)

    def lock(self, path: str) -> Callable[[], None]:
        if self._locks.get(path):
            raise BlockingIOError(errno.EWOULDBLOCK, "locked", path)
        self.open(path, create=True)
        self._locks[path] = True
        return lambda: self._locks.__setitem__(path, False)

    def exists(self, path: str) -> bool:
        return path in self.medium.live.names

    def names(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        if path not in self.medium.live.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        names = [name[len(prefix) :] for name in self.medium.live.names if name.startswith(prefix)]
        return sorted(name for name in names if name and "/" not in name)

    def mkdir(self, path: str) -> None:
        parts = path.strip("/").split("/")
        for depth in range(len(parts)):
            part = "/" + "/".join(parts[: depth + 1])
            if part not in self.medium.live.names:
                self.check("create", part)
                self.operate(NameChange(parent_of(part), ((part, DIRECTORY),)))

    def rename(self, source: str, target: str) -> None:
        assert parent_of(source) == parent_of(target), "the model has no moves between directories"
        self.operate(NameChange(parent_of(source), ((source, None), (target, self.medium.live.names[source]))))

    def delete(self, path: str) -> None:
        if path in self.medium.live.names:
            self.operate(NameChange(parent_of(path), ((path, None),)))

    def sync_directory(self, path: str) -> None:
        self.check("sync", path)
        self.operate(SyncDirectory(path))

    def free_space(self, path: str) -> tuple[int, int]:
        return 1 << 40, 1 << 40

    def log_device(
        self,
        name: str,
        form: Callable[[list[Item]], tuple[Group, int]],
        done: Callable[[list[Item]], None],
        failed: Callable[[list[Item], OSError], None],
        written: Callable[[list[Item]], None] | None = None,
    ) -> RecordingDevice[Item]:
        device = RecordingDevice(self, self._loop, form, done, failed, written)
        self._devices.append(device)
        return device


class RecordingFile:
    """`runtime.ports.File`."""

    def __init__(self, disk: RecordingDisk, path: str, number: int) -> None:
        self.path = path
        self.number = number
        self._disk = disk

    def pread(self, size: int, offset: int) -> bytes:
        return bytes(self._disk.medium.live.files[self.number][offset : offset + size])

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> int:
        data = b"".join(buffers)
        if data:
            try:
                self._disk.check("write", self.path, len(data))
            except OSError:
                # The part that fits is written.
                part = data[: len(data) // 2 // 512 * 512]
                if part:
                    self._disk.operate(Write(self.number, offset, part))
                raise
            self._disk.operate(Write(self.number, offset, data))
        return len(data)

    def append(self, buffers: Sequence[Buffer]) -> int:
        offset = self.size()
        self.pwrite(buffers, offset)
        return offset

    def size(self) -> int:
        return len(self._disk.medium.live.files[self.number])

    def truncate(self, size: int) -> None:
        if size != self.size():
            self._disk.operate(Resize(self.number, size))

    def allocate(self, offset: int, length: int) -> None:
        if offset + length > self.size():
            self._disk.check("allocate", self.path, length)
            self._disk.operate(Resize(self.number, offset + length))

    def sync(self, upto: int | None = None) -> None:
        upto = self._disk.medium.count if upto is None else upto
        try:
            self._disk.check("sync", self.path)
        except OSError:
            self._disk.operate(FailedSync(self.number, upto, self._disk.failed_sync_kept))
            raise
        self._disk.operate(Sync(self.number, upto))

    def close(self) -> None: ...


class RecordingDevice(Generic[Item]):
    """`runtime.ports.LogDevice`: a thread cut into steps (form and write, then sync), which a timer or a busy worker triggers."""

    def __init__(
        self,
        disk: RecordingDisk,
        loop: VirtualLoop,
        form: Callable[[list[Item]], tuple[Group, int]],
        done: Callable[[list[Item]], None],
        failed: Callable[[list[Item], OSError], None],
        written: Callable[[list[Item]], None] | None,
    ) -> None:
        self._disk, self._loop = disk, loop
        self._form, self._done, self._failed, self._written = form, done, failed, written
        self._waiting: list[Item] = []
        self._group: tuple[File, int, list[Item]] | None = None
        """The write that is not synced yet: file, number of operations at that time, items."""
        self._steps = 0
        self._broken = self._closing = False
        self._idle: list[asyncio.Future[None]] = []

    def submit(self, item: Item) -> None:
        if self._broken or self._closing:
            raise OSError(errno.EIO, "the log device takes nothing more")
        self._waiting.append(item)
        if self._group is None and len(self._waiting) == 1:
            self._later(0.00002)

    async def close(self) -> None:
        self._closing = True
        while (self._waiting or self._group is not None) and not self._broken:
            idle = self._loop.create_future()
            self._idle.append(idle)
            await idle

    def step(self) -> None:
        """The thread's next step, if it has any."""
        self._steps += 1
        try:
            if self._group is not None:
                self._sync(*self._group)
            elif self._waiting and not self._broken:
                self._write()
        except OSError as error:
            self._broken = True
            lost = ([] if self._group is None else self._group[2]) + self._waiting
            self._group, self._waiting = None, []
            self._loop.call_soon(self._end, lost, error)

    def _later(self, delay_s: float) -> None:
        self._loop.call_later(delay_s, self._timed, self._steps)

    def _timed(self, steps: int) -> None:
        if steps == self._steps:
            self.step()

    def _write(self) -> None:
        group, count = self._form(self._waiting)
        group.file.pwrite(group.buffers, group.offset)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        self._group = group.file, self._disk.medium.count, taken
        if group.report_written and self._written is not None:
            self._loop.call_soon(self._written, taken)
        self._later(SYNC_S)

    def _sync(self, file: File, upto: int, taken: list[Item]) -> None:
        # The sync does not cover writes made since it began.
        if isinstance(file, RecordingFile):
            file.sync(upto)
        else:
            file.sync()
        self._group = None
        if self._waiting:
            self._later(0.0)
        self._loop.call_soon(self._end, taken, None)

    def _end(self, items: list[Item], error: OSError | None) -> None:
        for idle in self._idle:
            if not idle.done():
                idle.set_result(None)
        self._idle.clear()
        if error is None:
            self._done(items)
        else:
            self._failed(items, error)


class VirtualWorker:
    """`runtime.ports.Worker`: functions run one after another, each at its own instant."""

    def __init__(self, loop: VirtualLoop, disk: RecordingDisk) -> None:
        self._loop, self._disk = loop, disk
        self._queue: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()

    def run(self, function: Callable[..., Result], *args: Any, answer: asyncio.Future[Result] | None = None) -> asyncio.Future[Result]:
        future: asyncio.Future[Result] = self._loop.create_future() if answer is None else answer
        self._queue.append((future, lambda: function(*args)))
        if len(self._queue) == 1:
            self._loop.call_soon(self._work)
        return future

    async def close(self) -> None:
        while self._queue:
            await asyncio.sleep(0)

    def _work(self) -> None:
        future, function = self._queue[0]
        result, error = None, None
        self._disk.working = True
        try:
            result = function()
        except Exception as fault:
            error = fault
        self._disk.working = False
        self._loop.call_soon(self._after, future, result, error)

    def _after(self, future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
        self._queue.popleft()
        if not future.done():
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        if self._queue:
            self._loop.call_soon(self._work)


class VirtualClock:
    def __init__(self, loop: VirtualLoop) -> None:
        self.monotonic = self.elapsed = loop.time
        self.call_at = loop.call_at

    def wall_us(self) -> int:
        return EPOCH_US + round(self.monotonic() * 1e6)


class Entropy:
    def stream(self, purpose: str) -> random.Random:
        return random.Random(purpose)

    def secret(self, size: int) -> bytes:
        return bytes(size)


class Endpoint:
    """`runtime.ports.Network` of a bookie with clients in the same process: `accept` makes the bookie's side of a connection."""

    def __init__(self) -> None:
        self._factory: Callable[[], asyncio.Protocol] | None = None
        self.address = ("127.0.0.1", 3181)

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> tuple[asyncio.Transport, asyncio.Protocol]:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "there is nobody else")

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        self._factory = factory
        return self

    async def start_tls(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        *,
        limit_s: float,
        server_name: str | None,
        received: bytes = b"",
    ) -> asyncio.Transport:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "there is nobody else")

    async def close(self) -> None:
        self._factory = None

    def accept(self) -> asyncio.Protocol:
        if self._factory is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")
        return self._factory()


class Machine:
    """One life of a machine: a loop, a disk, and the processes on them."""

    def __init__(self, medium: Medium) -> None:
        self.loop = VirtualLoop()
        self.disk = RecordingDisk(medium, self.loop)
        self.facts: list[tuple[str, dict[str, object]]] = []
        """Trace events of the code: kind and fields."""
        self.life = Life("bookie")
        self.clock = VirtualClock(self.loop)

    def new_process(self) -> tuple[Host, Endpoint]:
        """End the present process, as a kill does, and return the ports of the next one."""
        self.loop.kill(self.life)
        self.life = Life("bookie", self.life.number + 1)
        self.disk.forget_process()
        endpoint = Endpoint()
        host = Host(
            name="bookie",
            clock=self.clock,
            network=endpoint,
            disk=self.disk,
            entropy=Entropy(),
            trace=self._trace,
            new_worker=lambda name: VirtualWorker(self.loop, self.disk),
        )
        return host, endpoint

    def _trace(self, kind: str, /, **facts: object) -> None:
        self.facts.append((kind, facts))

    async def as_process(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine as part of the process, so that it ends with it."""
        return await self.loop.start_task(coroutine, context=context_of(self.life))

    def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run_until_complete(main)

    def close(self) -> None:
        self.loop.kill(self.life)
        self.loop.close()


def empty_disk(directories: Sequence[str]) -> Image:
    """The empty directories that an administrator provides."""
    image = Image({"/": DIRECTORY})
    for path in directories:
        parts = path.strip("/").split("/")
        for depth in range(len(parts)):
            image.names["/" + "/".join(parts[: depth + 1])] = DIRECTORY
    return image
