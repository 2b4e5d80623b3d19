"""The disk port on the operating system: files by ``os.*``, and one thread per log device for group commit."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from triplicate.runtime.oneshot import resolve
from triplicate.runtime.ports import Buffer, File, Group, LogDevice

Item = TypeVar("Item")

BUFFERS_PER_WRITE_MAX = 1024
"""IOV_MAX on Linux: more buffers than this in one call are refused."""


LOCK_ATTEMPTS = 5
LOCK_PAUSE_S = 0.01
"""A probe of a lock, such as that of the doctor, holds it for a moment. A process that starts just then must not take it for in use."""


class RealFile:
    """A file descriptor. Memory views handed in must be of bytes (format ``B``). Every OSError names the file."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def pread(self, size: int, offset: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, offset)
            if len(data) == size or not data:
                return data
            parts = [data]
            missing = size - len(data)
            offset += len(data)
            while missing > 0:
                data = os.pread(self._descriptor, missing, offset)
                if not data:
                    break
                parts.append(data)
                missing -= len(data)
                offset += len(data)
        except OSError as error:
            error.filename = self.path
            raise
        return b"".join(parts)

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> int:
        total = sum(map(len, buffers))
        written = 0
        try:
            for start in range(0, len(buffers), BUFFERS_PER_WRITE_MAX):
                batch = buffers if len(buffers) <= BUFFERS_PER_WRITE_MAX else buffers[start : start + BUFFERS_PER_WRITE_MAX]
                done = os.pwritev(self._descriptor, batch, offset + written)
                if done != (total if batch is buffers else sum(map(len, batch))):
                    self._go_on(batch, done, offset + written)
                    done = sum(map(len, batch))
                written += done
        except OSError as error:
            error.filename = self.path
            raise
        return total

    def _go_on(self, buffers: Sequence[Buffer], done: int, offset: int) -> None:
        """Write the rest after a short write (a signal, a nearly full disk)."""
        rest = memoryview(b"".join(buffers))
        while done < len(rest):
            written = os.pwritev(self._descriptor, [rest[done:]], offset + done)
            if written == 0:
                raise OSError(errno.EIO, "the disk accepted no byte", self.path)
            done += written

    def append(self, buffers: Sequence[Buffer]) -> int:
        offset = os.fstat(self._descriptor).st_size
        self.pwrite(buffers, offset)
        return offset

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            error.filename = self.path
            raise

    def allocate(self, offset: int, length: int) -> None:
        try:
            os.posix_fallocate(self._descriptor, offset, length)
        except OSError as error:
            error.filename = self.path
            raise

    def sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            error.filename = self.path
            raise

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700
"""Modes of what is created here: entries and copies of databases are for the user of the process alone under any umask."""


def _make_private(path: str) -> None:
    """Make a directory and those above it that are missing. `os.makedirs` would give those above the mode of the umask."""
    try:
        os.mkdir(path, PRIVATE_DIRECTORY)
    except FileNotFoundError:
        above = os.path.dirname(path.rstrip("/"))
        if not above or os.path.exists(above):
            raise
        _make_private(above)
        _make_private(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


class RealDisk:
    """The file system of this machine. Files and directories that it makes are its user's alone."""

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> File:
        return self._open(RealFile, path, create=create, exclusive=exclusive, readonly=readonly)

    def _open(self, kind: type[RealFile], path: str, *, create: bool, exclusive: bool, readonly: bool) -> File:
        flags = os.O_CLOEXEC | (os.O_RDONLY if readonly else os.O_RDWR)
        if create:
            flags |= os.O_CREAT | (os.O_EXCL if exclusive else 0)
        return kind(path, os.open(path, flags, PRIVATE_FILE))

    def lock(self, path: str) -> Callable[[], None]:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            _lock(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        held = [descriptor]

        def release() -> None:
            if held:
                os.close(held.pop())

        return release

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def mkdir(self, path: str) -> None:
        _make_private(path)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def delete(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def free_space(self, path: str) -> tuple[int, int]:
        facts = os.statvfs(path)
        return facts.f_bavail * facts.f_frsize, facts.f_blocks * facts.f_frsize

    def log_device(
        self,
        name: str,
        form: Callable[[list[Item]], tuple[Group, int]],
        done: Callable[[list[Item]], None],
        failed: Callable[[list[Item], OSError], None],
        written: Callable[[list[Item]], None] | None = None,
    ) -> LogDevice[Item]:
        return RealLogDevice(name, form, done, failed, written)


class RealLogDevice(Generic[Item]):
    """One thread that writes and syncs all queued items as one group, and reports the group by one call to the loop.

    Items pass through a deque, whose append and popleft are atomic. One token wakes the thread, and only if it may sleep, so that a submit
    under load costs an append and a test.
    """

    def __init__(
        self,
        name: str,
        form: Callable[[list[Item]], tuple[Group, int]],
        done: Callable[[list[Item]], None],
        failed: Callable[[list[Item], OSError], None],
        written: Callable[[list[Item]], None] | None = None,
    ) -> None:
        self._name = name
        self._form = form
        self._done = done
        self._failed = failed
        self._written = written
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[Item] = deque()
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._woken = False
        self._closing = False
        self._error: OSError | None = None
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, item: Item) -> None:
        """See `LogDevice.submit`.

        Raises:
            OSError: the device failed or was closed.
        """
        if self._error is not None:
            raise OSError(errno.EIO, f"log device {self._name} is dead since: {self._error}")
        if self._closing:
            raise OSError(errno.EBADF, f"log device {self._name} is closed")
        self._arrived.append(item)
        if not self._woken:
            self._woken = True
            self._wake.put(None)

    async def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._wake.put(None)
        await asyncio.shield(self._ended)

    def _run(self) -> None:
        arrived = self._arrived
        waiting: list[Item] = []
        while True:
            if not arrived and not waiting:
                if self._closing:
                    break
                self._wake.get()
            # The flag is cleared before the items are removed: a submit in between adds a spare token, and none is missing.
            self._woken = False
            waiting += [arrived.popleft() for _ in range(len(arrived))]
            if not waiting:
                continue
            try:
                group, count = self._form(waiting)
                if count < 1:
                    raise OSError(errno.EINVAL, f"log device {self._name}: a group of {count} items")
                group.file.pwrite(group.buffers, group.offset)
                if group.report_written and self._written is not None:
                    self._call_loop(self._written, waiting[:count])
                group.file.sync()
            except Exception as error:  # noqa: BLE001 -- every error must fail all waiting items, and nothing more may be written
                reason = error if isinstance(error, OSError) else OSError(errno.EIO, f"log device {self._name}: {error!r}")
                reason.__cause__ = error if reason is not error else None
                self._call_loop(self._fail, waiting, reason)
                break
            covered, waiting = waiting[:count], waiting[count:]
            self._call_loop(self._done, covered)
        self._call_loop(self._end)

    def _call_loop(self, function: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            return  # The loop is closed, so nothing waits.

    def _fail(self, waiting: list[Item], error: OSError) -> None:
        self._error = error
        while self._arrived:
            waiting.append(self._arrived.popleft())
        self._failed(waiting, error)

    def _end(self) -> None:
        self._closing = True
        resolve(self._ended, None)


def _lock(descriptor: int) -> None:
    """Lock a file for this open file alone. Raises BlockingIOError: another one holds it for longer than a probe does."""
    for attempt in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt == LOCK_ATTEMPTS - 1:
                raise
            time.sleep(LOCK_PAUSE_S)
        else:
            return
