"""Contents of a simulated disk: file images and names, each with its durable part.

A file has the bytes that programs see and the bytes on stable storage; between them lie the operations since the last sync. A power cut
keeps the durable bytes and the part of those operations that the seed selects.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

SECTOR_BYTES = 512
"""Writes are torn only at multiples of this: the unit that disks write whole."""


class SparseBytes:
    """A growing run of bytes that reads as zeros where it was never written, so that preallocated files cost nothing."""

    __slots__ = ("data", "size")

    def __init__(self) -> None:
        self.data = bytearray()
        self.size = 0

    def read(self, size: int, offset: int) -> bytes:
        end = min(offset + size, self.size)
        if end <= offset:
            return b""
        part = bytes(self.data[offset:end])
        return part + bytes(end - offset - len(part))

    def write(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        if len(self.data) < offset:
            self.data.extend(bytes(offset - len(self.data)))
        self.data[offset:end] = data
        self.size = max(self.size, end)

    def resize(self, size: int) -> None:
        del self.data[size:]
        self.size = size

    def copy(self) -> SparseBytes:
        other = SparseBytes()
        other.data[:] = self.data
        other.size = self.size
        return other


@dataclass(slots=True)
class Write:
    """Bytes written and not yet synced."""

    offset: int
    data: bytes

    def apply(self, target: SparseBytes) -> None:
        target.write(self.offset, self.data)


@dataclass(slots=True)
class Resize:
    """A truncation or extension not yet synced."""

    size: int

    def apply(self, target: SparseBytes) -> None:
        target.resize(self.size)


class Inode:
    """One file's content, apart from its names."""

    __slots__ = ("durable", "live", "pending")

    def __init__(self) -> None:
        self.live = SparseBytes()
        self.durable = SparseBytes()
        self.pending: list[Write | Resize] = []

    def change(self, operation: Write | Resize) -> None:
        """Apply an operation to programs' view."""
        operation.apply(self.live)
        self.pending.append(operation)

    def sync(self, last: Write | Resize | None = None) -> None:
        """Make the pending operations durable: all, or those up to `last` (none if another sync has already covered it)."""
        count = len(self.pending)
        if last is not None:
            count = next((index + 1 for index, operation in enumerate(self.pending) if operation is last), 0)
        for operation in self.pending[:count]:
            operation.apply(self.durable)
        del self.pending[:count]

    def drop_pending(self) -> int:
        """Drop pending operations after a failed sync. Programs still see the bytes, but they are never written: fsync clears the error and
        the dirty pages.

        Returns:
            the number of bytes of the dropped writes.
        """
        unsynced = sum(len(operation.data) for operation in self.pending if isinstance(operation, Write))
        self.pending = []
        return unsynced

    def is_pending(self, offset: int) -> bool:
        """Whether an unsynced operation is about to write or cut off this byte."""
        for operation in self.pending:
            if isinstance(operation, Resize):
                if offset >= operation.size:
                    return True
            elif operation.offset <= offset < operation.offset + len(operation.data):
                return True
        return False

    def crash(self, rng: random.Random) -> tuple[int, int]:
        """Lose unsynced data, or most of it. Returns the bytes lost and the number of writes torn.

        The seed selects one of three ways: all unsynced data is lost; a prefix of the operations survives and the write after it is torn;
        each sector of each write survives or not, as with a disk cache that writes in its own order.
        """
        unsynced = sum(len(operation.data) for operation in self.pending if isinstance(operation, Write))
        kept = torn = 0
        if self.pending:
            way = rng.random()
            if way < 0.4:
                pass
            elif way < 0.8:
                kept, torn = self._keep_prefix(rng)
            else:
                kept, torn = self._keep_sectors(rng)
        self.pending = []
        self.live = self.durable.copy()
        return unsynced - kept, torn

    def _keep_prefix(self, rng: random.Random) -> tuple[int, int]:
        """Return bytes kept and writes torn. The cut is drawn over bytes, so that it usually falls into a write and tears it."""
        lengths = [max(1, len(operation.data)) if isinstance(operation, Write) else 1 for operation in self.pending]
        ends = list(accumulate(lengths))
        cut = rng.randrange(ends[-1] + 1)
        whole = bisect_right(ends, cut)
        kept = 0
        for operation in self.pending[:whole]:
            operation.apply(self.durable)
            kept += len(operation.data) if isinstance(operation, Write) else 0
        torn = self.pending[whole] if whole < len(self.pending) else None
        if isinstance(torn, Write):
            inside = cut - (ends[whole - 1] if whole else 0)
            end = (torn.offset + inside) // SECTOR_BYTES * SECTOR_BYTES
            if end > torn.offset:
                self.durable.write(torn.offset, torn.data[: end - torn.offset])
                return kept + end - torn.offset, 1
        return kept, 0

    def _keep_sectors(self, rng: random.Random) -> tuple[int, int]:
        kept = torn = 0
        for operation in self.pending:
            if isinstance(operation, Resize):
                if rng.random() < 0.5:
                    operation.apply(self.durable)
                continue
            position = kept_of_write = 0
            while position < len(operation.data):
                end = min(len(operation.data), ((operation.offset + position) // SECTOR_BYTES + 1) * SECTOR_BYTES - operation.offset)
                if rng.random() < 0.5:
                    self.durable.write(operation.offset + position, operation.data[position:end])
                    kept_of_write += end - position
                position = end
            kept += kept_of_write
            torn += 0 < kept_of_write < len(operation.data)
        return kept, torn


class Directory:
    """A directory has no content of its own: names are kept by full path."""

    __slots__ = ()


DIRECTORY = Directory()
DirectoryEntry = Inode | Directory


def parent_of(path: str) -> str:
    """The directory that holds a path."""
    return path.rpartition("/")[0] or "/"


@dataclass(slots=True)
class NameChange:
    """A creation, rename or deletion that is not yet durable. `moves` maps a path to its new target; None removes it."""

    directories: tuple[str, ...]
    moves: dict[str, DirectoryEntry | None]


@dataclass
class Namespace:
    """Paths in programs' view and on stable storage."""

    live: dict[str, DirectoryEntry] = field(default_factory=lambda: {"/": DIRECTORY})
    durable: dict[str, DirectoryEntry] = field(default_factory=lambda: {"/": DIRECTORY})
    pending: list[NameChange] = field(default_factory=list)

    def change(self, directories: tuple[str, ...], moves: dict[str, DirectoryEntry | None]) -> None:
        """Apply a change to programs' view. It becomes durable once one of `directories` is synced."""
        change = NameChange(directories, moves)
        _apply(change, self.live)
        self.pending.append(change)

    def sync(self, directory: str) -> None:
        """Make the changes of one directory durable."""
        left: list[NameChange] = []
        for change in self.pending:
            if directory in change.directories:
                _apply(change, self.durable)
            else:
                left.append(change)
        self.pending = left

    def crash(self, rng: random.Random) -> None:
        """Keep the durable names and, by the seed, the first few changes after them: a file system's journal is written in order."""
        kept = 0 if rng.random() < 0.5 else rng.randrange(len(self.pending) + 1)
        for change in self.pending[:kept]:
            _apply(change, self.durable)
        self.pending = []
        for path in sorted(self.durable):
            if path != "/" and parent_of(path) not in self.durable:
                del self.durable[path]
        self.live = dict(self.durable)


def _apply(change: NameChange, names: dict[str, DirectoryEntry]) -> None:
    for path, entry in change.moves.items():
        if entry is None:
            names.pop(path, None)
        else:
            names[path] = entry
