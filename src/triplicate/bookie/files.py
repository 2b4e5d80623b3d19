"""Small helpers over the disk port, shared by journal, entry logs and marks. All block."""

from __future__ import annotations

import errno
import posixpath

from triplicate.runtime import Disk

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk."""


def join(directory: str, name: str) -> str:
    return f"{directory.rstrip('/')}/{name}"


def read_file(disk: Disk, path: str) -> bytes:
    """A whole small file. Raises OSError."""
    file = disk.open(path, readonly=True)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def replace_file(disk: Disk, directory: str, name: str, data: bytes) -> None:
    """Write a small file so that after a crash either the old or the new content is there, whole."""
    target, beside = join(directory, name), join(directory, name + ".new")
    file = disk.open(beside, create=True)
    try:
        file.truncate(0)
        file.pwrite([data], 0)
        file.sync()
    finally:
        file.close()
    disk.rename(beside, target)
    disk.sync_directory(directory)


def make_directory(disk: Disk, path: str) -> None:
    """Make a directory and those above it that are missing, and their names durable. Raises OSError."""
    above = [_parent(path), _parent(_parent(path))]
    while not disk.exists(above[-1]) and above[-1] != "/":
        above.append(_parent(above[-1]))
    was_there = disk.exists(above[0])
    disk.mkdir(path)
    # From the top, and always two levels: an earlier process may have made them and ended before their sync.
    for directory in reversed(above):
        try:
            disk.sync_directory(directory)
        except PermissionError:
            # A directory that this user may not read was made by another user.
            if directory != above[1] or not was_there:
                raise


def _parent(path: str) -> str:
    # A name without a folder is in the working directory, which is synced like any other.
    return posixpath.dirname(path.rstrip("/") or "/") or "."


def nearest(disk: Disk, path: str) -> str:
    """The path, or its nearest existing parent."""
    while not disk.exists(path):
        path = _parent(path)
    return path


def numbered_files(disk: Disk, directory: str, suffix: str) -> dict[int, str]:
    """Files named by ``<decimal number><suffix>``, by number, ascending."""
    found: dict[int, str] = {}
    for name in disk.names(directory):
        stem = name.removesuffix(suffix)
        if stem != name and stem.isdecimal():
            found[int(stem)] = join(directory, name)
    return dict(sorted(found.items()))


def numbered_name(number: int, suffix: str) -> str:
    return f"{number:016d}{suffix}"
