"""The entries of a received chunk as the write cache holds them: copied, or as views of the chunk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from triplicate.bookie.core.checksum import Buffer
from triplicate.wire import ADD_HEAD_BYTES

SHARED_ENTRY_BYTES = 4096
"""Entries of at least this size share the chunk that they arrived in, if they are most of it."""
VIEW_OVERHEAD_BYTES = 200
"""Memory of a view beside the bytes that it shows."""


def is_most_of(size_bytes: int, buffer: bytes) -> bool:
    """Whether a part of a chunk is large enough to hold the whole chunk in memory instead of a copy of the part."""
    return 8 * size_bytes >= 7 * len(buffer)


def entries_of(buffer: bytes, offsets: Sequence[int]) -> tuple[list[Buffer], int]:
    """The entries of an `AddRun`, and the memory that they hold, in bytes.

    Small entries are copied, since a view holds the whole chunk in memory and costs more than it saves. Large entries that are most of
    the chunk share it, and the whole chunk counts.
    """
    count, size = len(offsets) - 1, offsets[-1] - offsets[0]
    if size >= SHARED_ENTRY_BYTES * count and is_most_of(size, buffer):
        view = memoryview(buffer)
        return [view[start + ADD_HEAD_BYTES : end] for start, end in pairwise(offsets)], len(buffer) + VIEW_OVERHEAD_BYTES * count
    return [buffer[start + ADD_HEAD_BYTES : end] for start, end in pairwise(offsets)], size - ADD_HEAD_BYTES * count
