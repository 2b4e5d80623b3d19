"""The memory of SQLite in a process: a limit, so that a statement which needs too much fails alone, and a store of small blocks.

The operating system ends a process that takes more than the machine has, with every database in it, and cannot know which statement did.
SQLite's library counts what all connections of the process have. Source: its documentation of `sqlite3_hard_heap_limit64`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import apsw

_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_SHARE = 8
"""A row with its Python values and its message takes up to three times what SQLite has of it, and several nodes may share a machine."""
_LEAST = 256 * 1024 * 1024
_CACHE_SHARE = 0.5
"""SQLite gives pages back to stay below this share of the limit, so caches do not cause failures."""

_BLOCK_BYTES, _BLOCKS = 640, 160
"""SQLite cuts them into 400, most of them of 128 bytes. The functions of a connection take some 220."""


def memory_of_machine() -> int:
    """The memory that this process can have, in bytes: the machine's, or its container's where that has less."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in _CONTAINER:
        with suppress(OSError, ValueError):  # Not every machine has these files, and ``max`` is no limit.
            found.append(int(Path(path).read_text()))
    return min(found)


def limit_memory(max_bytes: int) -> int:
    """Limit the memory of SQLite in this process from now on. A statement that needs more fails with `apsw.NoMemError`.

    Args:
        max_bytes: 0 for an eighth of `memory_of_machine`, and 256 MiB at least.

    Returns:
        The limit in bytes.
    """
    limit = max_bytes or max(memory_of_machine() // _SHARE, _LEAST)
    apsw.soft_heap_limit(int(limit * _CACHE_SHARE))
    apsw.hard_heap_limit(limit)
    return limit


def reserve_small_blocks() -> None:
    """Let each connection that is opened from now on keep 100 KiB of small blocks, twice SQLite's default. Source: SQLite's page on its
    allocator, "lookaside".

    The functions of a connection take all blocks of the default. Each string of a statement then comes from the C library, under the
    mutex of the process's count: text built row by row took 1.75 times as long. For the process of a server, before its first
    connection: SQLite is shut down for it. No effect later.
    """
    if not apsw.connections():
        apsw.shutdown()
        apsw.config(apsw.SQLITE_CONFIG_LOOKASIDE, _BLOCK_BYTES, _BLOCKS)
        apsw.initialize()
