"""The old index beside the new one while a rebuild goes on, and what a rebuild that was interrupted left.

The old index knows which entry logs there were, which nothing else does. So it keeps a name of its own until the new one is complete, and
comes back where that never happened: an interrupted rebuild is as none. Its two files are moved one after the other, each move durable
before the next, so that what a crash left can be told.
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
    """Give way to a new index. What `rollback_rebuild` left is here, and nothing older."""
    for suffix in ("", COMMITS_SUFFIX):
        if disk.exists(path + suffix):
            disk.rename(path + suffix, path + suffix + ASIDE_SUFFIX)
            _sync(disk, path)


def restore_index(disk: Disk, path: str) -> None:
    """Take the old index back, if there is one, instead of what there is of a new one."""
    if not disk.exists(path + ASIDE_SUFFIX):
        return
    commits_moved = disk.exists(path + COMMITS_SUFFIX + ASIDE_SUFFIX)
    if commits_moved or disk.exists(path):
        disk.delete(path)
        disk.delete(path + COMMITS_SUFFIX)
        _sync(disk, path)
    # The index itself last: as long as it is aside, this begins again after a crash.
    if commits_moved:
        disk.rename(path + COMMITS_SUFFIX + ASIDE_SUFFIX, path + COMMITS_SUFFIX)
        _sync(disk, path)
    disk.rename(path + ASIDE_SUFFIX, path)
    _sync(disk, path)


def discard_backup(disk: Disk, path: str) -> None:
    """The new index is complete: the old one goes."""
    for suffix in ("", COMMITS_SUFFIX):
        disk.delete(path + suffix + ASIDE_SUFFIX)


def rollback_rebuild(disk: Disk, path: str, cache_bytes: int) -> bool:
    """Before an index is used or made: undo a rebuild that was interrupted, and forget what one that ended left.

    Returns:
        whether the old index was taken back. Raises OSError.
    """
    if is_interrupted(disk, path, cache_bytes):
        restore_index(disk, path)
        return True
    discard_backup(disk, path)
    return False


def is_interrupted(disk: Disk, path: str, cache_bytes: int) -> bool:
    """Whether an old index stands aside and the new one is not complete. One that is damaged was complete once: it is left to others."""
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
