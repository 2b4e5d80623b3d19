"""How the C library's allocator treats memory that was freed. Source: mallopt(3)."""

from __future__ import annotations

import ctypes
import functools

KEPT_BYTES = 64 * 1024 * 1024
MAPPED_BYTES = 32 * 1024 * 1024
"""The most that glibc takes for this setting."""
MAPPED_ONCE_BYTES = 8 * 1024 * 1024

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Have this process keep up to `KEPT_BYTES` of freed memory instead of giving it back to the system at once.

    A server that moves a steady stream of chunks through buffers and caches of fixed size needs the same memory again a moment
    later, and a page that was given back costs a page fault to get. False where the C library does not know the settings.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, MAPPED_BYTES))


@functools.cache
def let_freed_memory_linger() -> None:
    """Have glibc keep up to twice `MAPPED_ONCE_BYTES` of freed memory, as after any block of that size: for what is no server.

    Nothing is set: where a mapped block is freed, glibc takes it for the size of what comes and goes, and keeps twice as much (mallopt(3),
    `M_MMAP_THRESHOLD`). A process that has no such block gives the memory of what it read back a few hundred kilobytes at a time, and every
    page of what it reads next costs a fault. The block is not touched; other C libraries do nothing about it.
    """
    bytearray(MAPPED_ONCE_BYTES)
