"""How many pieces of segments one read task takes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.log import OffsetRange

PACKED_BYTES = 16 * 1024 * 1024
"""One task reads pieces of segments up to this number of stored bytes; a larger piece has a task of its own."""
UNKNOWN_RECORD_BYTES = 1024
"""What a record of an open segment is thought to have."""


def pack(ranges: Sequence[OffsetRange], max_records: int) -> list[tuple[OffsetRange, ...]]:
    """Put neighbouring ranges of one log together, in their order, each group for one task.

    Args:
        max_records: most records of a group of several ranges.
    """
    groups: list[tuple[OffsetRange, ...]] = []
    current: list[OffsetRange] = []
    records = size = 0
    for item in ranges:
        item_bytes = item.size_bytes if item.size_bytes is not None else item.records * UNKNOWN_RECORD_BYTES
        if current and (records + item.records > max_records or size + item_bytes > PACKED_BYTES):
            groups.append(tuple(current))
            current, records, size = [], 0, 0
        current.append(item)
        records += item.records
        size += item_bytes
    return [*groups, tuple(current)] if current else groups
