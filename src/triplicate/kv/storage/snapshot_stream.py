"""The content of a snapshot: a header, all keys in their order, and their number. Encoding and decoding, a part at a time.

    header       'TKSN', version u8 (1), flags u8 (0), store 16 bytes, position u64, epoch u64, number u64, time u64, keys u64
    item         key length u16 (not 0), value length u32, version u64, deadline u64, key, value
    end          key length u16 (0), number of items u64

Integers are little-endian. The stream is the same for equal copies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from triplicate.errors import FormatError, SnapshotDamaged
from triplicate.kv.core.store_interface import Item, Record
from triplicate.kv.storage.store_stand import StoreStand

FORMAT_VERSION = 1
_MAGIC = b"TKSN"
_HEADER = struct.Struct("<4sBB16sQQQQQ")
_LENGTH = struct.Struct("<H")
_ITEM = struct.Struct("<HIQQ")
_END = struct.Struct("<HQ")


def encode_stream(state: StoreStand, items: Iterator[Item]) -> Iterator[bytes]:
    """The parts of a snapshot's content: the header, each item, the end."""
    yield _HEADER.pack(_MAGIC, FORMAT_VERSION, 0, state.identity, state.position, state.epoch, state.number, state.time_ms, state.keys)
    count = 0
    for key, record in items:
        yield _ITEM.pack(len(key), len(record.value), record.version, record.deadline_ms) + key + record.value
        count += 1
    yield _END.pack(0, count)


class StreamDecoder:
    """Decodes a snapshot's content that arrives in chunks."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._items = 0
        self._last_key = b""
        self._state: StoreStand | None = None

    def feed(self, chunk: memoryview) -> list[Item]:
        """The items that are complete after this chunk.

        Raises:
            SnapshotDamaged: the content is not valid. FormatError: a later release wrote it.
        """
        self._rest += chunk
        items: list[Item] = []
        position = 0
        if self._state is None:
            if len(self._rest) < _HEADER.size:
                return items
            self._state = _decode_header(bytes(self._rest[: _HEADER.size]))
            position = _HEADER.size
        while (end := self._item_end(position)) is not None:
            key_length, _, version, deadline_ms = _ITEM.unpack_from(self._rest, position)
            begin = position + _ITEM.size
            key, value = bytes(self._rest[begin : begin + key_length]), bytes(self._rest[begin + key_length : end])
            if key <= self._last_key:
                raise SnapshotDamaged(f"item {self._items + len(items) + 1} is not in the order of the keys")
            self._last_key = key
            items.append(Item(key, Record(value, version, deadline_ms)))
            position = end
        self._items += len(items)
        del self._rest[:position]
        return items

    def _item_end(self, position: int) -> int | None:
        """Where the item at a position ends; None if it is not complete, or if the end is there."""
        rest = len(self._rest) - position
        if rest < _LENGTH.size:
            return None
        (key_length,) = _LENGTH.unpack_from(self._rest, position)
        if key_length == 0:
            return None
        if rest < _ITEM.size:
            return None
        end = position + _ITEM.size + key_length + int(_ITEM.unpack_from(self._rest, position)[1])
        return end if end <= len(self._rest) else None

    def finish(self) -> StoreStand:
        """The state of the snapshot, after the last chunk.

        Raises:
            SnapshotDamaged: the content is not complete.
        """
        if self._state is None or len(self._rest) != _END.size:
            raise SnapshotDamaged(f"the content ends after {self._items} items without an end mark")
        mark, count = _END.unpack(self._rest)
        if mark != 0 or count != self._items or count != self._state.keys:
            raise SnapshotDamaged(f"the content has {self._items} items for {count} at its end and {self._state.keys} in its header")
        return self._state


def _decode_header(data: bytes) -> StoreStand:
    magic, version, flags, identity, position, epoch, number, time_ms, keys = _HEADER.unpack(data)
    if magic != _MAGIC:
        raise SnapshotDamaged("the content does not begin with 'TKSN'")
    if version != FORMAT_VERSION or flags:
        raise FormatError(
            f"the content of a key-value snapshot has version {version}, flags {flags:#x}; this release knows version {FORMAT_VERSION}"
        )
    return StoreStand(identity, position, epoch, number, time_ms, keys)
