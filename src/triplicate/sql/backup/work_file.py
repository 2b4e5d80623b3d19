"""A SQLite file of a database as it was, while it is built: a base, then batches of the log up to a target. All functions block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from triplicate.errors import BackupDamaged, Diverged
from triplicate.runtime import Host
from triplicate.sql.backup.core.record_file import BatchFrame
from triplicate.sql.backup.core.target import TargetSearch, preamble_of_first
from triplicate.sql.core.records import decode_header
from triplicate.sql.executor.transaction_functions import open_applier_connection
from triplicate.sql.storage.applier import Applier, LogBatch, follow
from triplicate.sql.storage.sqlite_copy import delete_file, quick_check
from triplicate.sql.storage.sqlite_file import ConnectionSetup, StoreState, open_store, read_state
from triplicate.sql.storage.sqlite_schema import schema_digest
from triplicate.sql.storage.transaction_history import read_history


@dataclass(frozen=True, slots=True)
class WorkFileState:
    """Where a finished file stands."""

    position: int
    epoch: int
    time_ms: int
    """The log's time at the position; 0 where the log has none."""
    schema: str
    """Digest of its schema, hexadecimal."""


class WorkFile:
    """Applies batches to a file. Call `open`, `apply` until the search has reached its target, and `close`; or `delete`.

    Args:
        identity: 16 bytes; the file must be of this database. It is made empty where it is missing.
        setup: called on the connection.
    """

    def __init__(self, host: Host, path: str, identity: bytes, setup: ConnectionSetup | None = None) -> None:
        self.path = path
        self._host = host
        self._identity = identity
        self._setup = setup
        self._connection: apsw.Connection | None = None
        self._applier: Applier | None = None

    def open(self) -> WorkFileState:
        """Open the file, or make an empty one; where it stands.

        Raises:
            BackupDamaged: it is no sound copy of this database. FormatError: a later release wrote it.
        """
        if not self._host.disk.exists(self.path):
            self._host.disk.open(self.path, create=True).close()  # SQLite would make it readable for others.
        try:
            open_store(self.path, self._identity)
            connection = self._connection = open_applier_connection(self.path, self._setup)
            findings = quick_check(connection)
            state = read_state(connection)
        except (apsw.NotADBError, apsw.CorruptError, ValueError) as error:
            raise BackupDamaged(f"{self.path} is no sound copy of the database: {error}") from error
        if findings or state.diverged is not None:
            raise BackupDamaged(f"{self.path} is no sound copy of the database: {'; '.join(findings) or state.diverged}")
        # Nobody else has the file, and after a crash it is deleted.
        connection.pragma("synchronous", "off")
        self._applier = Applier(connection)
        return _copy_state(connection, state)

    def apply(self, frames: Iterable[BatchFrame], search: TargetSearch) -> None:
        """Apply the records of batches that belong to the target, in one SQLite transaction.

        Raises:
            BackupDamaged: they do not fit the file.
        """
        assert self._applier is not None, "the file is open"
        try:
            follow(self._applier, _wanted(frames, search))
        except Diverged as error:
            raise BackupDamaged(f"the log's records do not fit {self.path}: {error}") from error
        self._host.step_aside()

    def become(self, identity: bytes, epoch: int) -> None:
        """Make the file a copy of another database, whose log goes on from here behind an epoch."""
        assert self._connection is not None, "the file is open"
        self._connection.execute("update triplicate_state set database = ?, epoch = ?, diverged = null", (identity, epoch))
        self._identity = identity

    def close(self) -> WorkFileState:
        """Close the file, with everything in it and nothing in files beside it; where it stands."""
        connection, applier = self._connection, self._applier
        assert connection is not None, "the file is open"
        assert applier is not None, "the file is open"
        applier.rollback()  # A target between two parts of a transaction is the state before it.
        connection.pragma("synchronous", "full")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        state = _copy_state(connection, read_state(connection))
        self.release()
        return state

    def delete(self) -> None:
        """Delete the file, open or not. Idempotent."""
        self.release()
        delete_file(self._host, self.path)

    def release(self) -> None:
        """Close the file as it is. Idempotent."""
        connection, self._connection, self._applier = self._connection, None, None
        if connection is not None:
            connection.close(True)


def _copy_state(connection: apsw.Connection, state: StoreState) -> WorkFileState:
    return WorkFileState(state.position, state.epoch, read_history(connection).time_ms, schema_digest(connection).hex())


def _wanted(frames: Iterable[BatchFrame], search: TargetSearch) -> Iterable[LogBatch]:
    for frame in frames:
        count = search.take(frame.first_offset, decode_header(frame.preamble), frame.records)
        if not count:
            return
        records, preamble = frame.records[:count], frame.preamble
        if count < len(frame.records):
            preamble = preamble_of_first(preamble, records)
        yield LogBatch(frame.first_offset, records, preamble, frame.epoch)
