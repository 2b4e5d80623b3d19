"""Groups pieces of segments into read tasks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.log import OffsetRange

PACKED_BYTES = 16 * 1024 * 1024
"""A task reads pieces of segments up to this number of stored bytes. A larger piece gets a separate task."""
UNKNOWN_RECORD_BYTES = 1024
"""Assumed size in bytes of a record in an open segment."""


def pack(ranges: Sequence[OffsetRange], max_records: int) -> list[tuple[OffsetRange, ...]]:
    """Group neighbouring ranges of one log, in order, one group per task.

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
