"""Tuning of how the C library's allocator treats freed memory. Source: mallopt(3)."""

from __future__ import annotations

import ctypes
import functools

KEPT_BYTES = 64 * 1024 * 1024
MAPPED_BYTES = 32 * 1024 * 1024
"""The largest value that glibc accepts for this setting."""
MAPPED_ONCE_BYTES = 8 * 1024 * 1024

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Let this process keep up to `KEPT_BYTES` of freed memory instead of returning it to the system at once.

    A server that moves a steady stream of chunks through buffers and caches of fixed size soon needs the same memory again, and each
    returned page costs a page fault.

    Returns:
        False if the C library does not support the settings.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, MAPPED_BYTES))


@functools.cache
def let_freed_memory_linger() -> None:
    """Let glibc keep up to twice `MAPPED_ONCE_BYTES` of freed memory, by freeing one block of that size. For processes other than servers.

    No setting is changed: when a mapped block is freed, glibc raises its threshold to the block's size and keeps twice as much (mallopt(3),
    `M_MMAP_THRESHOLD`). Otherwise a process returns the memory of what it has read a few hundred kilobytes at a time, and each page of the
    next read costs a fault. The block's pages are not touched. Other C libraries are not affected.
    """
    bytearray(MAPPED_ONCE_BYTES)
