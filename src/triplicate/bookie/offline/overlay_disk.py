"""A disk whose changes stay in memory, to try a start without changing anything.

Only written blocks are held in memory (footers, pages of an index); the rebuild of a large index needs memory for all its rows. On
request, files grow only as far as the space beneath allows; each directory counts as a disk of its own.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from triplicate.bookie.files import nearest
from triplicate.runtime import Buffer, Disk, File, Group, LogDevice

Item = TypeVar("Item")

BLOCK_BYTES = 4096


class OverlayData:
    """A file's content: the one on the disk, and blocks written over it."""

    def __init__(self, below: File | None) -> None:
        self._below = below
        self._blocks: dict[int, bytearray] = {}
        self.size = below.size() if below is not None else 0
        self._below_end = self.size

    def read(self, size: int, offset: int) -> bytes:
        end = min(offset + size, self.size)
        if end <= offset:
            return b""
        data = bytearray(end - offset)
        if self._below is not None and offset < self._below_end:
            part = self._below.pread(min(end, self._below_end) - offset, offset)
            data[: len(part)] = part
        for number in range(offset // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
            block = self._blocks.get(number)
            if block is not None:
                start = max(offset, number * BLOCK_BYTES)
                stop = min(end, (number + 1) * BLOCK_BYTES)
                data[start - offset : stop - offset] = block[start - number * BLOCK_BYTES : stop - number * BLOCK_BYTES]
        return bytes(data)

    def write(self, data: bytes, offset: int) -> None:
        position = 0
        while position < len(data):
            number, start = divmod(offset + position, BLOCK_BYTES)
            part = data[position : position + BLOCK_BYTES - start]
            block = self._blocks.get(number)
            if block is None:
                block = self._blocks[number] = bytearray(self.read(BLOCK_BYTES, number * BLOCK_BYTES).ljust(BLOCK_BYTES, b"\0"))
            block[start : start + len(part)] = part
            position += len(part)
        self.size = max(self.size, offset + len(data))

    def resize(self, size: int) -> None:
        if size < self.size:
            self._below_end = min(self._below_end, size)
            for number in [number for number in self._blocks if number * BLOCK_BYTES >= size]:
                del self._blocks[number]
            last = self._blocks.get(size // BLOCK_BYTES)
            if last is not None:
                last[size % BLOCK_BYTES :] = bytes(BLOCK_BYTES - size % BLOCK_BYTES)
        self.size = size

    def close(self) -> None:
        if self._below is not None:
            self._below.close()


class OverlayFile:
    """`runtime.ports.File` over an `OverlayData`. Files beneath stay open until the disk is closed."""

    def __init__(self, path: str, data: OverlayData, take: Callable[[str, int], None]) -> None:
        self.path = path
        self._data = data
        self._reserve = take

    def pread(self, size: int, offset: int) -> bytes:
        return self._data.read(size, offset)

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> int:
        data = b"".join(buffers)
        self._grow(offset + len(data))
        self._data.write(data, offset)
        return len(data)

    def _grow(self, end: int) -> None:
        if end > self._data.size:
            self._reserve(self.path, end - self._data.size)

    def append(self, buffers: Sequence[Buffer]) -> int:
        offset = self._data.size
        self.pwrite(buffers, offset)
        return offset

    def size(self) -> int:
        return self._data.size

    def truncate(self, size: int) -> None:
        self._reserve(self.path, min(0, size - self._data.size))
        self._data.resize(size)

    def allocate(self, offset: int, length: int) -> None:
        self._grow(offset + length)
        self._data.resize(max(self._data.size, offset + length))

    def sync(self) -> None: ...

    def close(self) -> None: ...


class OverlayDisk:
    """`runtime.ports.Disk` over another one, which is only read.

    Args:
        given_up: the name of a file whose space counts as free; None: there is space for everything.
    """

    def __init__(self, below: Disk, *, given_up: str | None = None) -> None:
        self._below = below
        self._given_up = given_up
        self._room: dict[str, int] = {}
        """Bytes that may still be written, by directory."""
        self._files: dict[str, OverlayData | None] = {}
        """Files opened or created here; None: deleted."""
        self._made: set[str] = set()
        """Directories made here."""

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> File:
        data = self._files.get(path)
        there = data is not None if path in self._files else self._below.exists(path)
        if there and create and exclusive:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if not there and not create:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if data is None:
            below = self._below.open(path, readonly=True) if there else None
            if readonly and below is not None:
                return below
            data = self._files[path] = OverlayData(below)
        return OverlayFile(path, data, self._reserve)

    def _reserve(self, path: str, growth: int) -> None:
        """Account for the growth of a file, negative for shrinking. Raises OSError: there is no space."""
        if self._given_up is None:
            return
        directory = path.rpartition("/")[0]
        room = self._room.get(directory)
        if room is None:
            room, _ = self.free_space(directory)
            if self._below.exists(f"{directory}/{self._given_up}"):
                reserve = self._below.open(f"{directory}/{self._given_up}", readonly=True)
                room += reserve.size()
                reserve.close()
            self._room[directory] = room
        if growth > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self._room[directory] = room - growth

    def _free(self, path: str) -> None:
        if self.exists(path):
            file = self.open(path, readonly=True)
            self._reserve(path, -file.size())
            file.close()

    def close(self) -> None:
        """Discard all changes."""
        for data in self._files.values():
            if data is not None:
                data.close()
        self._files.clear()

    def lock(self, path: str) -> Callable[[], None]:
        return lambda: None

    def exists(self, path: str) -> bool:
        return self._files[path] is not None if path in self._files else self._below.exists(path)

    def names(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        found = dict.fromkeys([] if path in self._made else self._below.names(path))
        for name, data in self._files.items():
            if name.startswith(prefix) and "/" not in name[len(prefix) :]:
                if data is None:
                    found.pop(name[len(prefix) :], None)
                else:
                    found[name[len(prefix) :]] = None
        return sorted(found)

    def mkdir(self, path: str) -> None:
        if not self._below.exists(path):
            self._made.add(path)

    def rename(self, source: str, target: str) -> None:
        self.open(source)
        self._free(target)
        self._files[target], self._files[source] = self._files[source], None

    def delete(self, path: str) -> None:
        self._free(path)
        data = self._files.get(path)
        if data is not None:
            data.close()
        self._files[path] = None

    def sync_directory(self, path: str) -> None: ...

    def free_space(self, path: str) -> tuple[int, int]:
        # A directory created here has the space of its parent.
        return self._below.free_space(nearest(self._below, path))

    def log_device(
        self,
        name: str,
        form: Callable[[list[Item]], tuple[Group, int]],
        done: Callable[[list[Item]], None],
        failed: Callable[[list[Item], OSError], None],
        written: Callable[[list[Item]], None] | None = None,
    ) -> LogDevice[Item]:
        """Raises OSError: nothing is written here."""
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), name)
