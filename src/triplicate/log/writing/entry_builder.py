"""Records that wait to become one entry."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from triplicate.log.core.compression import Compressor
from triplicate.log.core.payload import Buffer, Producer
from triplicate.log.core.payload_encoder import EncodedEntry, add_headers, columns_of, encode_columns
from triplicate.log.core.producer_table import ProducerTable

Producers = ProducerTable[asyncio.Future[range]]
"""The producers that a writer knows; repetitions wait for the futures of their entries."""


class EntryBuilder:
    """Collects single records in order. All of them share the future of their entry.

    Args:
        limit_bytes: the size up to which records without a producer may join; 0 for an entry of a producer.
        producer: of the records, with the sequence number of the first; None: they have none.
    """

    def __init__(self, limit_bytes: int, producer: Producer | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.producer = producer
        self.size_bytes = 0
        """The bytes that its records occupy in the window."""
        self.future: asyncio.Future[range] = asyncio.get_running_loop().create_future()
        self._values: list[Buffer | None] = []
        self._keys: list[Buffer | None] = []
        self._timestamps_us: list[int | None] = []
        self._headers: list[bytes | None] = []

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: Buffer | None, key: Buffer | None, timestamp_us: int | None, headers: bytes | None, cost: int) -> int:
        """Add a record and return its slot. Its headers are encoded."""
        self._values.append(value)
        self._keys.append(key)
        self._timestamps_us.append(timestamp_us)
        self._headers.append(headers)
        self.size_bytes += cost
        return len(self._values) - 1

    def encode(self, compressor: Compressor, wall_time_us: int) -> EncodedEntry:
        """Encode the entry. Records without a timestamp get the wall time if others have one."""
        keys = self._keys if any(key is not None for key in self._keys) else None
        times = None
        if any(time is not None for time in self._timestamps_us):
            times = [wall_time_us if time is None else time for time in self._timestamps_us]
        columns = columns_of(self._values, keys=keys, timestamps_us=times)
        if any(headers is not None for headers in self._headers):
            add_headers(columns, self._headers)
        return encode_columns(columns, compressor, producer=self.producer)


def joined(ranges: Sequence[range]) -> Sequence[int]:
    """The offsets of several entries, in order: one range if each continues the one before."""
    if ranges and all(left.stop == right.start for left, right in pairwise(ranges)):
        return range(ranges[0].start, ranges[-1].stop)
    return [offset for offsets in ranges for offset in offsets]
