"""The files of a node's copies. A copy is the folder ``stores/<name>``, which is RocksDB's.

Beside it are, for a while, ``stores/.<name>.snapshot`` (a file that is made for a snapshot), ``stores/.<name>.restore`` and
``stores/.<name>.replaced`` (folders, while a snapshot is loaded). No store can have such a name.
"""

from __future__ import annotations

import os.path

from triplicate.replica import empty_folder
from triplicate.runtime import Disk

OUTGOING, INCOMING, REPLACED = "snapshot", "restore", "replaced"
ROCKS_FILE = "CURRENT"
"""A file that every copy of RocksDB has."""


def store_folder(directory: str, name: str) -> str:
    """The folder of the copy of a store on a node with this directory."""
    return os.path.join(directory, "stores", name)


def beside(path: str, suffix: str) -> str:
    """The path of a file or folder that belongs to a copy and is not part of it."""
    parent, name = os.path.split(path)
    return os.path.join(parent, f".{name}.{suffix}")


def remove_leftovers(disk: Disk, path: str) -> None:
    """Delete what an interrupted snapshot left beside a copy. None may be running."""
    disk.delete(beside(path, OUTGOING))
    for suffix in (INCOMING, REPLACED):
        empty_folder(disk, beside(path, suffix))


def set_before(disk: Disk, path: str, identity: bytes) -> None:
    """Move the copy of an earlier store of this name out of the way of the store with this identity."""
    target = beside(path, f"before-{identity[:4].hex()}")
    empty_folder(disk, target)
    disk.rename(path, target)
    disk.sync_directory(os.path.dirname(path))


def swap_folders(disk: Disk, path: str) -> None:
    """Put the folder of a loaded snapshot in the place of a copy. Neither is open.

    After a crash the copy is the old one, the new one, or missing. A missing copy begins empty and loads the snapshot again.
    """
    parent = os.path.dirname(path)
    replaced = beside(path, REPLACED)
    empty_folder(disk, replaced)
    if disk.exists(path):
        disk.rename(path, replaced)
        disk.sync_directory(parent)
    disk.rename(beside(path, INCOMING), path)
    disk.sync_directory(parent)
    empty_folder(disk, replaced)
