"""The state of one ledger on one bookie, as journaled and as carried in entry logs.

A record holds the whole state, never a change, so that replaying one twice or late does no harm; fences only ever join.
Big-endian::

    0   1  record version (1; 2 where flag 8 is set)
    1   1  flags: 1 fenced, 2 has an explicit LAC record, 4 limbo (entries may be missing: the disk was replaced), 8 deleted
    2   2  length k of the master key
    4   8  ledger id
    12  4  length m of the explicit LAC record
    16  k  master key
    ..  m  explicit LAC record, as the client sent it

A list of records has a u32 length before each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from triplicate.errors import CorruptionError, FormatError

STATE_VERSION = 1
DELETED_VERSION = 2
"""Version of a tombstone's record: a release without tombstones must not take the ledger for a living one."""
_FENCED = 1
_HAS_LAC = 2
_LIMBO = 4
_DELETED = 8
_KNOWN_FLAGS = {STATE_VERSION: _FENCED | _HAS_LAC | _LIMBO, DELETED_VERSION: _FENCED | _HAS_LAC | _LIMBO | _DELETED}
_HEAD = struct.Struct(">BBHqI")
_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class LedgerData:
    """The state of a ledger on a bookie, without its entries."""

    ledger_id: int
    master_key: bytes
    fenced: bool = False
    explicit_lac: bytes | None = None
    """The signed record of the last WRITE_LAC, verbatim."""
    limbo: bool = False
    deleted: bool = False
    """A tombstone: the ledger was fenced and deleted, and is gone for good."""

    def merged(self, older: LedgerData) -> LedgerData:
        """This state merged with an older one: fences and tombstones are only added."""
        fenced = self.fenced or older.fenced
        lac = self.explicit_lac if self.explicit_lac is not None else older.explicit_lac
        return LedgerData(self.ledger_id, self.master_key or older.master_key, fenced, lac, self.limbo, self.deleted or older.deleted)

    def tombstone(self) -> LedgerData:
        """The record that remains of a fenced ledger when it is deleted."""
        return LedgerData(self.ledger_id, self.master_key, True, deleted=True)


def encode_state(state: LedgerData) -> bytes:
    lac = state.explicit_lac
    flags = (_FENCED if state.fenced else 0) | (_HAS_LAC if lac is not None else 0) | (_LIMBO if state.limbo else 0)
    flags |= _DELETED if state.deleted else 0
    key, version = state.master_key, DELETED_VERSION if state.deleted else STATE_VERSION
    return _HEAD.pack(version, flags, len(key), state.ledger_id, len(lac or b"")) + key + (lac or b"")


def decode_state(data: bytes) -> LedgerData:
    """Raises CorruptionError (lengths do not fit), FormatError (unknown version or flag)."""
    if len(data) < _HEAD.size:
        raise CorruptionError(f"a state record of {len(data)} bytes is shorter than its head")
    version, flags, key_length, ledger_id, lac_length = _HEAD.unpack_from(data)
    if version not in _KNOWN_FLAGS or flags & ~_KNOWN_FLAGS[version]:
        raise FormatError(f"state record of ledger {ledger_id}: version {version}, flags {flags:#x} are not known to this release")
    end = _HEAD.size + key_length
    if len(data) != end + lac_length:
        raise CorruptionError(f"state record of ledger {ledger_id}: {len(data)} bytes where its lengths say {end + lac_length}")
    lac = data[end:] if flags & _HAS_LAC else None
    return LedgerData(ledger_id, data[_HEAD.size : end], bool(flags & _FENCED), lac, bool(flags & _LIMBO), bool(flags & _DELETED))


def encode_states(states: Iterable[LedgerData]) -> tuple[bytes, int]:
    """A list of records; returns (bytes, number of records)."""
    records = [encode_state(state) for state in states]
    return b"".join([_LENGTH.pack(len(record)) + record for record in records]), len(records)


def decode_states(body: bytes, count: int) -> Iterator[LedgerData]:
    """Raises CorruptionError, FormatError."""
    position = 0
    for _ in range(count):
        if position + 4 > len(body):
            raise CorruptionError(f"a list of {count} state records ends after {position} bytes")
        (length,) = _LENGTH.unpack_from(body, position)
        yield decode_state(body[position + 4 : position + 4 + length])
        position += 4 + length
    if position != len(body):
        raise CorruptionError(f"{len(body) - position} bytes are left over after {count} state records")
