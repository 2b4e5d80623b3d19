"""The local file of one database as the log's state machine: opened, followed with, verified, replaced, and led with.

All methods block and run on the database's writer thread, one at a time.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence
from typing import NamedTuple

import apsw

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import Diverged, EnvironmentFault
from triplicate.replica import is_position_mismatch
from triplicate.runtime import Host
from triplicate.sql.core.access_rights import NOTHING_STORED, AccessRights
from triplicate.sql.core.notifications import Notification
from triplicate.sql.executor.transaction_functions import TransactionIds, open_applier_connection
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage.access_tables import load_access_rights
from triplicate.sql.storage.applier import Applier, LogBatch, follow
from triplicate.sql.storage.local_copies import is_damage, verify_last_batch, with_file_errors
from triplicate.sql.storage.sqlite_file import ConnectionSetup, StoreState, mark_diverged, mark_epoch, open_follower, open_store, read_state
from triplicate.sql.storage.sqlite_snapshots import remove_leftovers
from triplicate.sql.storage.transaction_history import RequestLimits
from triplicate.sql.storage.wal_checkpointer import WalCheckpointer


class AppliedState(NamedTuple):
    """Where a copy stands after batches were applied."""

    position: int
    schema_version: int
    access: AccessRights
    notifications: Sequence[Notification] = ()
    """Those of the batches, in order."""


class LocalCopy:
    """One copy of a database. At most one connection changes it: that of the applier, or the leader's writer.

    Args:
        name: the database's name, for messages.
        identity: 16 bytes; the file must be of this database.
        path: the file; its folder is made if it is missing.
        setup: called on every new connection.
    """

    def __init__(
        self, host: Host, name: str, identity: bytes, path: str, setup: ConnectionSetup | None, checkpointer: WalCheckpointer
    ) -> None:
        self._host = host
        self._name = name
        self._identity = identity
        self.path = path
        self.setup = setup
        self._checkpointer = checkpointer
        self._connection: apsw.Connection | None = None
        self._applier: Applier | None = None
        self.access = NOTHING_STORED
        """The roles and rights at the copy's position. Changed by `open`, `follow` and `apply`."""
        self._access_changes = 0
        """`Applier.access_changes` when `access` was loaded."""
        self.followed_epoch = 0
        """The last epoch that the copy has seen while it followed. Changed by `follow` and `apply`."""

    def open(self) -> StoreState:
        """Make the file, or check it.

        Raises:
            Diverged: the file is damaged. EnvironmentFault: it cannot be opened now. FormatError: it was written by a later release.
        """
        return with_file_errors(self.path, self._open_file)

    def _open_file(self) -> StoreState:
        self._host.disk.mkdir(os.path.dirname(self.path))
        remove_leftovers(self._host, self.path)
        try:
            open_store(self.path, self._identity)
        except ValueError:
            self._set_aside()
            open_store(self.path, self._identity)
        connection = open_follower(self.path, self.setup)
        try:
            self.access = load_access_rights(connection)
            return read_state(connection)
        finally:
            connection.close(True)

    def _set_aside(self) -> None:
        """The file is of an earlier database of this name: keep it under another name and begin with an empty one."""
        for suffix in ("-wal", "-shm", ""):
            if self._host.disk.exists(self.path + suffix):
                self._host.disk.rename(self.path + suffix, f"{self.path}.before-{self._identity[:4].hex()}{suffix}")

    def replace(self, swap: Callable[[], None]) -> None:
        """Close the file and let `swap` put another in its place.

        Raises:
            EnvironmentFault: `swap` failed.
        """
        self.close()
        with_file_errors(self.path, swap)

    def verify(self, batch: LogBatch | None) -> None:
        """Compare the batch that was applied last with the log's.

        Raises:
            Diverged: they differ. EnvironmentFault: the file cannot be opened now.
        """

        def compare() -> None:
            connection = open_follower(self.path)
            try:
                verify_last_batch(connection, batch)
            finally:
                connection.close(True)

        with_file_errors(self.path, compare)

    def follow(self) -> StoreState:
        """Open the applier's connection; returns the copy's position.

        Raises:
            Diverged, EnvironmentFault: as `open`.
        """

        def start() -> StoreState:
            self.close()
            self._connection = open_applier_connection(self.path, self._checkpointer.setup(self.setup))
            self._applier = Applier(self._connection)
            self._access_changes, self.access = 0, load_access_rights(self._connection)
            self.followed_epoch = self._applier.epoch
            return read_state(self._connection)

        return with_file_errors(self.path, start)

    def apply(self, batches: Sequence[LogBatch]) -> AppliedState:
        """Apply batches of the log.

        Raises:
            Diverged: the copy does not agree with the log. EnvironmentFault: the local disk or file failed.
        """
        assert self._applier is not None, "follow comes before apply"
        assert self._connection is not None, "the applier has a connection"
        try:
            follow(self._applier, batches)
            if self._applier.access_changes != self._access_changes:
                self._access_changes, self.access = self._applier.access_changes, load_access_rights(self._connection)
        except apsw.Error as error:
            if is_damage(error):
                raise Diverged(f"the local file {self.path} is damaged: {error}") from error
            raise EnvironmentFault(f"the local copy of database {self._name!r} failed: {error}") from error
        self.followed_epoch = self._applier.epoch
        return AppliedState(self._applier.position, self._applier.schema_version, self.access, self._applier.taken_notifications())

    def lead(
        self, ids: TransactionIds, settings: NodeSettings, monotonic: Callable[[], float], wall_us: Callable[[], int]
    ) -> WriterConnection:
        """Open the leader's connection in the place of the applier's, which full-text queries would confuse: their indexes remember what
        they saw through another connection.

        Args:
            monotonic: a clock in seconds that never goes back. wall_us: µs since the epoch.
        """
        if self._connection is not None and self._applier is not None:
            self._applier.rollback()
            mark_epoch(self._connection, ids.epoch)
        self.close()
        limits = RequestLimits(
            int(settings.request_keep_s * 1000), settings.request_limit, settings.request_size_bytes, settings.undated_request_limit
        )
        return WriterConnection(
            self.path,
            ids,
            self._checkpointer.setup(self.setup, defers=True),
            now=monotonic,
            limit_s=settings.transaction_limit_s,
            wall_us=wall_us,
            request_limits=limits,
            checkpointer=self._checkpointer,
            functions=self.setup,
            max_bytes=settings.transaction_bytes,
        )

    def mark_diverged(self, reason: str) -> None:
        """Close the file and record in it why it must not be served. A reason about its content is not replaced."""
        self.close()
        connection = open_follower(self.path)
        try:
            marked = read_state(connection).diverged
            if marked is None or is_position_mismatch(marked):
                mark_diverged(connection, reason)
        finally:
            connection.close(True)

    def close(self) -> None:
        """Close the applier's connection. Idempotent."""
        self._applier = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)
