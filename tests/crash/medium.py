"""A disk and its possible contents after a crash: every operation in order, and those that a power cut can undo.

The model: a file's bytes are durable after a sync of the file, a name after a sync of its directory. A power cut keeps any part of the
unsynced changes. Files are independent of each other and of names, writes of each other, and so are the sectors of one write. Changes of
one directory keep their order, because a file system's journal is written in order; directories are independent. A killed process loses
nothing: the kernel still holds its writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

SECTOR_BYTES = 512
"""Bytes that a disk writes atomically."""
DIRECTORY = 0
"""The number that the path of a directory maps to; files are numbered from 1."""


@dataclass(frozen=True, slots=True)
class Write:
    file: int
    offset: int
    data: bytes

    def sectors(self) -> int:
        """Number of sectors that the write touches."""
        return (self.offset + len(self.data) - 1) // SECTOR_BYTES - self.offset // SECTOR_BYTES + 1

    def part(self, sector: int) -> tuple[int, bytes]:
        """(offset, bytes) of the write's part in its sector of this number, from 0."""
        start = max(self.offset, (self.offset // SECTOR_BYTES + sector) * SECTOR_BYTES)
        end = min(self.offset + len(self.data), (self.offset // SECTOR_BYTES + sector + 1) * SECTOR_BYTES)
        return start, self.data[start - self.offset : end - self.offset]


@dataclass(frozen=True, slots=True)
class Resize:
    """A truncation or an allocation: the size afterwards."""

    file: int
    size: int


@dataclass(frozen=True, slots=True)
class NameChange:
    """A creation, rename or deletion: the file of each path afterwards, None for no file."""

    directory: str
    moves: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class Sync:
    """A file's sync that succeeded. It covers the operations before number `upto`: those before it began."""

    file: int
    upto: int


@dataclass(frozen=True, slots=True)
class FailedSync:
    """A failed sync: programs still see the bytes, and no later sync writes them. `kept`: they reached the disk all the same."""

    file: int
    upto: int
    kept: bool


@dataclass(frozen=True, slots=True)
class SyncDirectory:
    path: str


Change = Write | Resize | NameChange
Operation = Change | Sync | FailedSync | SyncDirectory


@dataclass(slots=True)
class Image:
    """Contents of a disk: names, and the bytes of files."""

    names: dict[str, int] = field(default_factory=dict)
    files: dict[int, bytearray] = field(default_factory=dict)
    own: set[int] = field(default_factory=set)
    """Files whose bytes no copy of this image shares; the others are copied before they are changed."""

    def copy(self) -> Image:
        self.own.clear()
        return Image(dict(self.names), dict(self.files))

    def mine(self, number: int) -> bytearray:
        """A file's bytes, to be changed."""
        if number not in self.own:
            self.files[number] = bytearray(self.files.get(number, b""))
            self.own.add(number)
        return self.files[number]

    def change(self, operation: Change, kept_sectors: Iterable[int] | None = None) -> None:
        """Apply a change; of a write only these sectors, if given."""
        if isinstance(operation, NameChange):
            for path, target in operation.moves:
                if target is None:
                    self.names.pop(path, None)
                else:
                    self.names[path] = target
                    if target != DIRECTORY:
                        self.files.setdefault(target, bytearray())
            return
        data = self.mine(operation.file)
        if isinstance(operation, Resize):
            del data[operation.size :]
            data.extend(bytes(operation.size - len(data)))
        elif kept_sectors is None:
            _write(data, operation.offset, operation.data)
        else:
            for sector in kept_sectors:
                _write(data, *operation.part(sector))

    def digest(self) -> bytes:
        """A digest that is equal for disks which look the same to a starting program."""
        digest = blake2b(digest_size=16)
        for path, number in sorted(self.names.items()):
            digest.update(path.encode() + b"\0")
            if number != DIRECTORY:
                data = self.files.get(number, b"")
                digest.update(b"%d\0" % len(data))
                digest.update(data)
        return digest.digest()

    def without_strays(self) -> Image:
        """A copy without names in missing directories."""
        while strays := [path for path in self.names if path != "/" and parent_of(path) not in self.names]:
            for path in strays:
                del self.names[path]
        return self

    def file(self, path: str) -> bytearray:
        """The bytes of a file, by its path; not to be changed."""
        return self.files[self.names[path]]


def _write(data: bytearray, offset: int, part: bytes) -> None:
    if len(data) < offset:
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(part)] = part


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class Medium:
    """A disk at one moment: the image that programs see, the durable image, and the changes between them."""

    def __init__(self, image: Image) -> None:
        self.live = image
        self.durable = image.copy()
        self.pending: dict[int, Change] = {}
        """By their number, in order."""
        self.count = 0
        """Operations so far; the number of the next one."""

    def copy(self) -> Medium:
        other = Medium.__new__(Medium)
        other.live, other.durable = self.live.copy(), self.durable.copy()
        other.pending, other.count = dict(self.pending), self.count
        return other

    def apply(self, operation: Operation) -> None:
        if isinstance(operation, Write | Resize | NameChange):
            self.live.change(operation)
            self.pending[self.count] = operation
        elif isinstance(operation, SyncDirectory):
            for number, change in list(self.pending.items()):
                if isinstance(change, NameChange) and change.directory == operation.path:
                    self.durable.change(change)
                    del self.pending[number]
        else:
            for number, change in list(self.pending.items()):
                if number < operation.upto and not isinstance(change, NameChange) and change.file == operation.file:
                    if isinstance(operation, Sync) or operation.kept:
                        self.durable.change(change)
                    del self.pending[number]
        self.count += 1

    def cut(self, kept: Iterable[int], torn: dict[int, tuple[int, ...]] | None = None) -> Image:
        """The image after a power cut.

        Args:
            kept: numbers of the pending changes that reached the disk.
            torn: for writes among these, the sectors that reached the disk.
        """
        image = self.durable.copy()
        chosen = set(kept)
        closed: dict[str, None] = {}
        for number, change in self.pending.items():
            if isinstance(change, NameChange):
                # A directory that lost a change also lost all later ones.
                if number not in chosen:
                    closed[change.directory] = None
                if change.directory in closed:
                    continue
            if number in chosen:
                image.change(change, torn.get(number) if torn is not None else None)
        return image.without_strays()
