"""The local copy of one store as the log's state machine: opened, applied to, verified, replaced. All methods block.

They run on the store's worker, one at a time.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence
from typing import NamedTuple

from triplicate.errors import CorruptionError, Diverged
from triplicate.kv.core.key_expiry import next_time_ms
from triplicate.kv.core.store_records import decode_header, decode_record
from triplicate.kv.storage.copy_folder import remove_leftovers, set_before
from triplicate.kv.storage.rocks_copy import AppliedBatch, OtherStore, RocksCopy
from triplicate.kv.storage.store_stand import StoreStand
from triplicate.replica import STANDS_AT
from triplicate.runtime import Host


class LoggedEntry(NamedTuple):
    """One entry of the log with records."""

    first_offset: int
    epoch: int
    preamble: bytes | None
    records: Sequence[bytes | None]


class LocalStore:
    """One copy of a store.

    Args:
        identity: 16 bytes; the copy must be of this store. path: its folder.
    """

    def __init__(self, host: Host, identity: bytes, path: str) -> None:
        self._host = host
        self._identity = identity
        self.path = path
        self.copy: RocksCopy | None = None

    def open(self) -> RocksCopy:
        """Open the copy, or make an empty one.

        Raises:
            Diverged: it is damaged. EnvironmentFault: it cannot be opened now. FormatError: a later release wrote it.
        """
        if self.copy is None:
            self._host.disk.mkdir(os.path.dirname(self.path))
            remove_leftovers(self._host.disk, self.path)
            try:
                self.copy = self._opened()
            except CorruptionError as error:
                raise Diverged(str(error)) from error
        return self.copy

    def _opened(self) -> RocksCopy:
        try:
            return RocksCopy(self.path, self._identity)
        except OtherStore:
            # An earlier store of this name: its copy is kept under another name.
            set_before(self._host.disk, self.path, self._identity)
            return RocksCopy(self.path, self._identity)

    def apply(self, entries: Sequence[LoggedEntry]) -> list[AppliedBatch]:
        """Apply entries of the log in order; those that were applied before are left out. Returns the batches that were applied.

        Raises:
            Diverged: the copy does not agree with the log. EnvironmentFault: the disk fails.
        """
        copy = self.open()
        state, batches = copy.state, list[AppliedBatch]()
        for entry in entries:
            end = entry.first_offset + len(entry.records)
            if end <= state.position:
                continue
            if entry.first_offset != state.position:
                raise Diverged(f"{STANDS_AT} {state.position}, where no entry of its log begins: the next begins at {entry.first_offset}")
            applied, state = _decoded(entry, state)
            batches += applied
        if batches:
            try:
                copy.write(batches, state)
            except CorruptionError as error:
                raise Diverged(str(error)) from error
        return batches

    def verify(self, entry: LoggedEntry | None) -> None:
        """Compare the entry that was applied last with the log's, and clear the copy's mark.

        Raises:
            Diverged: they differ.
        """
        copy = self.open()
        state = copy.state
        if entry is not None:
            end = entry.first_offset + len(entry.records)
            if end != state.position:
                raise Diverged(f"the log's entry before offset {state.position} ends at offset {end}")
            header = decode_header(entry.preamble)
            logged, applied = (header.store, header.epoch, header.number), (state.identity, state.epoch, state.number)
            if logged != applied:
                raise Diverged(
                    f"the log's entry before offset {state.position} has number {header.number} of epoch {header.epoch}, this copy has "
                    f"applied number {state.number} of epoch {state.epoch} last"
                )
        copy.write((), state._replace(diverged=None))

    def mark_diverged(self, reason: str) -> None:
        """Record why the copy must not be served. A reason about its content is not replaced by one about its position."""
        copy = self.open()
        if copy.state.diverged is None or copy.state.diverged.startswith(STANDS_AT):
            copy.write((), copy.state._replace(diverged=reason))
            copy.flush()

    def replace(self, swap: Callable[[], None]) -> None:
        """Close the copy and let `swap` put another in its place."""
        self.close()
        swap()

    def close(self) -> None:
        """Close the copy. Idempotent."""
        copy, self.copy = self.copy, None
        if copy is not None:
            copy.close()


def _decoded(entry: LoggedEntry, state: StoreStand) -> tuple[list[AppliedBatch], StoreStand]:
    """The batches of an entry, and the state after it.

    Raises:
        Diverged: the entry does not follow the state. FormatError: a later release wrote it.
    """
    header = decode_header(entry.preamble)
    expected = (state.identity, state.number + 1, state.keys)
    found = (header.store, header.number, header.keys_before)
    if found != expected or header.epoch < state.epoch or header.time_ms != next_time_ms(state.time_ms, header.time_ms):
        raise Diverged(
            f"the log's entry at offset {entry.first_offset} has number {header.number}, epoch {header.epoch}, time {header.time_ms} and "
            f"follows {header.keys_before} keys of store {header.store.hex()}; this copy of {state.identity.hex()} has applied number "
            f"{state.number}, epoch {state.epoch}, time {state.time_ms} and has {state.keys} keys"
        )
    batches = [AppliedBatch(entry.first_offset + index + 1, decode_record(record)) for index, record in enumerate(entry.records)]
    keys = state.keys + sum(effect.keys_added for batch in batches for effect in batch.effects)
    return batches, state.after(header, entry.first_offset + len(entry.records), keys)
