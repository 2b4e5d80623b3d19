"""The state record of a local copy: where it stands in the log. It is written with the data, in the same batch."""

from __future__ import annotations

import struct
from typing import NamedTuple

from triplicate.errors import FormatError
from triplicate.kv.core.store_records import StoreEntryHeader

FORMAT_VERSION = 1
_STATE = struct.Struct("<B16sQQQQQ")


class StoreStand(NamedTuple):
    """Where a copy stands."""

    identity: bytes
    """Of the store, 16 bytes."""
    position: int = 0
    """Offset after the last record that is part of the copy."""
    epoch: int = 0
    """Epoch of the last entry."""
    number: int = 0
    """Number of the last entry, from 1; 0 in an empty copy."""
    time_ms: int = 0
    """Time of the last entry: the log's time of this copy."""
    keys: int = 0
    """Number of stored keys, including those that are expired and not deleted yet."""
    diverged: str | None = None
    """Why the copy is wrong, or None."""

    def after(self, header: StoreEntryHeader, position: int, keys: int) -> StoreStand:
        """The state after an entry."""
        return StoreStand(self.identity, position, header.epoch, header.number, header.time_ms, keys, self.diverged)


def encode_state(state: StoreStand) -> bytes:
    fields = _STATE.pack(FORMAT_VERSION, state.identity, state.position, state.epoch, state.number, state.time_ms, state.keys)
    return fields + (state.diverged or "").encode()


def decode_state(data: bytes) -> StoreStand:
    """Raises FormatError: damaged, or written by a later release."""
    try:
        version, identity, position, epoch, number, time_ms, keys = _STATE.unpack_from(data)
        if version != FORMAT_VERSION:
            raise ValueError(f"version {version}; this release knows version {FORMAT_VERSION}")
        diverged = data[_STATE.size :].decode() or None
    except (struct.error, ValueError) as error:
        raise FormatError(f"the state of a key-value copy cannot be read: {error}") from error
    return StoreStand(identity, position, epoch, number, time_ms, keys, diverged)
