"""Keeps the old index beside the new one during a rebuild, and rolls back a rebuild that was interrupted.

Only the old index knows which entry logs existed. It therefore keeps a name of its own until the new index is complete, and is restored
if that never happens: an interrupted rebuild has no effect. Its two files are moved one after the other, each move durable before the
next, so that the state after a crash is unambiguous.
"""

from __future__ import annotations

from triplicate.bookie.offline.overlay_disk import OverlayDisk
from triplicate.bookie.storage.index import Index
from triplicate.bookie.storage.index_vfs import COMMITS_SUFFIX
from triplicate.errors import CorruptionError, FormatError
from triplicate.runtime import Disk

ASIDE_SUFFIX = ".replaced"


class ReadOnlyIndex:
    """An index opened without changing it."""

    def __init__(self, disk: Disk, path: str, cache_bytes: int) -> None:
        self._disk = OverlayDisk(disk)
        self._index: Index | None = None
        self._arguments = path, cache_bytes

    def __enter__(self) -> Index:
        self._index = Index(self._disk, *self._arguments)
        return self._index

    def __exit__(self, *_: object) -> None:
        if self._index is not None:
            self._index.close()
        self._disk.close()


def back_up_index(disk: Disk, path: str) -> None:
    """Move the index aside for a new one. `rollback_rebuild` has removed older backups."""
    for suffix in ("", COMMITS_SUFFIX):
        if disk.exists(path + suffix):
            disk.rename(path + suffix, path + suffix + ASIDE_SUFFIX)
            _sync(disk, path)


def restore_index(disk: Disk, path: str) -> None:
    """Restore the old index, if there is one, in place of a new one."""
    if not disk.exists(path + ASIDE_SUFFIX):
        return
    commits_moved = disk.exists(path + COMMITS_SUFFIX + ASIDE_SUFFIX)
    if commits_moved or disk.exists(path):
        disk.delete(path)
        disk.delete(path + COMMITS_SUFFIX)
        _sync(disk, path)
    # The index itself is moved last: while its backup exists, this starts again after a crash.
    if commits_moved:
        disk.rename(path + COMMITS_SUFFIX + ASIDE_SUFFIX, path + COMMITS_SUFFIX)
        _sync(disk, path)
    disk.rename(path + ASIDE_SUFFIX, path)
    _sync(disk, path)


def discard_backup(disk: Disk, path: str) -> None:
    """Delete the backup, since the new index is complete."""
    for suffix in ("", COMMITS_SUFFIX):
        disk.delete(path + suffix + ASIDE_SUFFIX)


def rollback_rebuild(disk: Disk, path: str, cache_bytes: int) -> bool:
    """Before an index is used or made: roll back an interrupted rebuild, and delete the backup of a completed one.

    Returns:
        whether the old index was restored. Raises OSError.
    """
    if is_interrupted(disk, path, cache_bytes):
        restore_index(disk, path)
        return True
    discard_backup(disk, path)
    return False


def is_interrupted(disk: Disk, path: str, cache_bytes: int) -> bool:
    """Whether there is a backup and the new index is not complete. A damaged index was complete once, and is left to other checks."""
    if not disk.exists(path + ASIDE_SUFFIX):
        return False
    if not disk.exists(path):
        return True
    try:
        with ReadOnlyIndex(disk, path, cache_bytes) as index:
            return not index.fact("complete")
    except (CorruptionError, FormatError):
        return False


def _sync(disk: Disk, path: str) -> None:
    disk.sync_directory(path.rpartition("/")[0])
