"""Encoding and decoding of a store's log: the preamble and the records of an entry.

One log entry is one group of batches. Its preamble is the entry's header. Each record is one batch: its effects, at most one for each key,
in the order of the keys' first changes. All integers are little-endian.

    header       'TK', version u8 (1), flags u8 (0), store 16 bytes, epoch u64, number u64, time u64 (ms since the epoch, the log's time),
                 keys before u64
    record       version u8 (1), kind u8 (1 changes), effects
    effect       kind u8 (1 put, 2 deadline, 3 delete, 4 expire), flags u8 (1 the key existed, 2 it had a deadline, 4 it has a deadline
                 now), key length u16, value length u32, [old deadline u64 if flag 2], [deadline u64 if flag 4], key, value (of a put)

`number` counts the entries of the store. With `keys before`, the number of stored keys, a copy notices that it is not the leader's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import FormatError
from triplicate.kv.core.operations import NEVER
from triplicate.kv.core.store_interface import ChangeKind

FORMAT_VERSION = 1
IDENTITY_SIZE = 16
EFFECT_OVERHEAD = 24
"""Upper bound on the bytes of an effect beside its key and its value."""
_HEADER = struct.Struct("<2sBB16sQQQQ")
_MAGIC = b"TK"
_CHANGES = 1
_RECORD_START = bytes((FORMAT_VERSION, _CHANGES))
_EFFECT = struct.Struct("<BBHI")
_TIME = struct.Struct("<Q")
_EXISTED, _HAD_DEADLINE, _HAS_DEADLINE = 1, 2, 4
_CODES = {ChangeKind.PUT: 1, ChangeKind.DEADLINE: 2, ChangeKind.DELETE: 3, ChangeKind.EXPIRE: 4}
_PUT = _CODES[ChangeKind.PUT]
_KINDS = {code: kind for kind, code in _CODES.items()}


@dataclass(frozen=True, slots=True)
class StoreEntryHeader:
    """The preamble of an entry.

    Args:
        store: identity of the store, 16 bytes.
        epoch: of the leader's writer.
        number: of the entry in the store, from 1.
        time_ms: the log's time, milliseconds since the epoch; it never goes back.
        keys_before: number of keys that are stored before the entry, including those that are expired and not deleted yet.
    """

    store: bytes
    epoch: int
    number: int
    time_ms: int
    keys_before: int


class Effect(NamedTuple):
    """The effect of one batch on one key."""

    kind: ChangeKind
    key: bytes
    value: bytes | None
    """The value after the effect. A decoded `DEADLINE` does not have it."""
    deadline_ms: int = NEVER
    old_deadline_ms: int = NEVER
    existed: bool = False

    @property
    def keys_added(self) -> int:
        """Change of the number of stored keys."""
        if self.kind is ChangeKind.PUT:
            return 0 if self.existed else 1
        return 0 if self.kind is ChangeKind.DEADLINE else -1


def encode_header(header: StoreEntryHeader) -> bytes:
    return _HEADER.pack(_MAGIC, FORMAT_VERSION, 0, header.store, header.epoch, header.number, header.time_ms, header.keys_before)


def decode_header(data: bytes | None) -> StoreEntryHeader:
    """Raises FormatError: not the header of a store's entry, or of an unknown version."""
    try:
        if data is None:
            raise ValueError("the entry has none")
        magic, version, flags, store, epoch, number, time_ms, keys_before = _HEADER.unpack(data)
        if magic != _MAGIC:
            raise ValueError("it does not begin with 'TK'")
        if version != FORMAT_VERSION or flags:
            raise ValueError(f"version {version}, flags {flags:#x}; this release knows version {FORMAT_VERSION}, flags 0")
    except (ValueError, struct.error) as error:
        raise FormatError(f"the header of a key-value entry cannot be read: {error}") from error
    return StoreEntryHeader(store, epoch, number, time_ms, keys_before)


def encode_record(effects: Iterable[Effect]) -> bytes:
    out = bytearray(_RECORD_START)
    for kind, key, value, deadline_ms, old_deadline_ms, existed in effects:
        flags = (_EXISTED if existed else 0) | (_HAD_DEADLINE if old_deadline_ms else 0) | (_HAS_DEADLINE if deadline_ms else 0)
        stored = value if kind is ChangeKind.PUT and value is not None else b""
        out += _EFFECT.pack(_CODES[kind], flags, len(key), len(stored))
        if old_deadline_ms:
            out += _TIME.pack(old_deadline_ms)
        if deadline_ms:
            out += _TIME.pack(deadline_ms)
        out += key
        out += stored
    return bytes(out)


def decode_record(record: bytes | None) -> list[Effect]:
    """The effects of a record.

    Raises:
        FormatError: damaged, or of an unknown kind or version.
    """
    try:
        if record is None or len(record) <= len(_RECORD_START):
            raise ValueError("it is empty")
        if not record.startswith(_RECORD_START):
            raise ValueError(f"version {record[0]}, kind {record[1]}; this release knows version {FORMAT_VERSION}, kind {_CHANGES}")
        effects: list[Effect] = []
        position = len(_RECORD_START)
        while position < len(record):
            effect, position = _decode_effect(record, position)
            effects.append(effect)
    except (ValueError, struct.error) as error:
        raise FormatError(f"a key-value record cannot be read: {error}") from error
    return effects


def _decode_effect(record: bytes, position: int) -> tuple[Effect, int]:
    code, flags, key_length, value_length = _EFFECT.unpack_from(record, position)
    if code == _PUT and flags & ~_EXISTED == 0 and key_length:
        begin = position + _EFFECT.size + key_length
        end = begin + value_length
        if end <= len(record):
            return Effect(ChangeKind.PUT, record[begin - key_length : begin], record[begin:end], NEVER, NEVER, flags == _EXISTED), end
    kind = _KINDS.get(code)
    if kind is None or flags & ~(_EXISTED | _HAD_DEADLINE | _HAS_DEADLINE):
        raise ValueError(f"unknown effect {code}, flags {flags:#x}")
    if not key_length or (value_length and kind is not ChangeKind.PUT) or (kind is not ChangeKind.PUT and not flags & _EXISTED):
        raise ValueError(f"an effect of kind {kind.value!r} with flags {flags:#x} and a value of {value_length} bytes")
    position += _EFFECT.size
    old_deadline_ms = deadline_ms = NEVER
    if flags & _HAD_DEADLINE:
        (old_deadline_ms,) = _TIME.unpack_from(record, position)
        position += _TIME.size
    if flags & _HAS_DEADLINE:
        (deadline_ms,) = _TIME.unpack_from(record, position)
        position += _TIME.size
    end = position + key_length + value_length
    if end > len(record):
        raise ValueError(f"it ends {end - len(record)} bytes too early")
    key = record[position : position + key_length]
    value = record[position + key_length : end] if kind is ChangeKind.PUT else None
    return Effect(kind, key, value, deadline_ms, old_deadline_ms, bool(flags & _EXISTED)), end


def size_of(effects: Sequence[Effect]) -> int:
    """An upper bound on the encoded size of effects, bytes. The value of a changed deadline is not encoded."""
    size_bytes = 0
    for kind, key, value, _, _, _ in effects:
        size_bytes += EFFECT_OVERHEAD + len(key) + (0 if value is None or kind is ChangeKind.DEADLINE else len(value))
    return size_bytes


def held_size_of(effects: Sequence[Effect]) -> int:
    """The size of effects in memory, bytes, with the values whose deadline is changed."""
    return size_of(effects) + sum(len(one.value) for one in effects if one.kind is ChangeKind.DEADLINE and one.value is not None)
