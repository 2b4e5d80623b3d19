"""The folders of local copies: setting a copy aside, so that another can be built in its place, moving it, and deleting it.

A copy is a folder of files. It is set aside as a whole, by one rename. ``.<name>.aside-1`` beside it is the newest. No database and no
store can have such a name.
"""

from __future__ import annotations

import os.path

from triplicate.runtime import Disk


def set_aside_folder(disk: Disk, folder: str, copies: int) -> str | None:
    """Move the folder of a copy out of the way and give the new one an empty folder. Blocks.

    Args:
        folder: nothing in it is open.
        copies: number of set-aside folders to keep; the content of older ones is deleted.

    Returns:
        The folder's new path; None if there was no copy.

    Raises:
        OSError: the disk fails.
    """
    if not disk.exists(folder):
        disk.mkdir(folder)
        return None
    parent, name = os.path.split(folder)
    folders = [os.path.join(parent, f".{name}.aside-{number}") for number in range(1, copies + 1)]
    empty_folder(disk, folders[-1])
    for older, newer in zip(reversed(folders[1:]), reversed(folders[:-1]), strict=True):
        if disk.exists(newer):
            disk.rename(newer, older)
    disk.rename(folder, folders[0])
    disk.mkdir(folder)
    disk.sync_directory(parent)
    return folders[0]


def empty_folder(disk: Disk, folder: str) -> None:
    """Delete the files of a folder, if it is there. Nothing in it is open. The empty folder stays. Blocks.

    Raises:
        OSError: the disk fails.
    """
    if disk.exists(folder):
        for name in disk.names(folder):
            disk.delete(os.path.join(folder, name))


def rename_folder(disk: Disk, folder: str, new_file: str) -> bool:
    """Move the folder of a copy, nothing in which is open; False when there is another copy already. Blocks.

    Args:
        new_file: the path that a file of the copy is to have, which every copy has.

    Raises:
        OSError: the disk fails.
    """
    if not disk.exists(folder) or disk.exists(new_file):
        return False
    new_folder = os.path.dirname(new_file)
    disk.rename(folder, new_folder)
    disk.sync_directory(os.path.dirname(new_folder))
    return True
