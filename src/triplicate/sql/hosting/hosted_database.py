"""One database on a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from triplicate.replica import HostedCopy, NodeParts, Replica, Role
from triplicate.security import audit
from triplicate.sql.backup.past_databases import PastDatabases
from triplicate.sql.core.audit import AuditEvent, ConnectedClient
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.executor.threads import WorkerThreads
from triplicate.sql.hosting.database_directory import DatabaseInfo, log_purpose
from triplicate.sql.hosting.hosted_databases import DatabaseDirectory
from triplicate.sql.hosting.live_sources import LiveSources
from triplicate.sql.hosting.restoring import source_of
from triplicate.sql.storage.sqlite_file import ConnectionSetup


@dataclass(frozen=True, slots=True)
class NodeResources:
    """Objects that all databases of a node share."""

    node: NodeParts
    setup: ConnectionSetup | None
    threads: WorkerThreads
    past: PastDatabases
    """Databases as they were, for sessions that read the past."""


class HostedDatabase(HostedCopy[SqlDatabase, DatabaseInfo]):
    """One database on this node, with the tasks that run it. `run` it once."""

    def __init__(
        self,
        parts: NodeResources,
        directory: DatabaseDirectory,
        info: DatabaseInfo,
        on_gone: Callable[[], None],
        *,
        replaces_another: bool = False,
    ) -> None:
        """See `HostedCopy`."""
        self._parts = parts
        logs = parts.node.logs.acting_for(log_purpose(info))
        super().__init__(parts.node, logs, directory, info, on_gone, replaces_another=replaces_another)

    def _new_machine(self) -> SqlDatabase:
        node, settings, info, logs = self._node, self._node.settings, self.info, self._logs
        database = SqlDatabase(
            node.host,
            info.name,
            info.identity,
            self._directory.copy_file(info.name),
            settings,
            metrics=node.metrics,
            setup=self._parts.setup,
            lease_s=info.lease_ms / 1000,
            threads=self._parts.threads,
        )
        database.find_administrator = self._administrator
        sources = LiveSources(node.host, node.client, logs, database, settings.node_id, self._entry_path, info.log, info.identity)
        database.activity.sources.update(sources.by_table())
        database.links.find_past = lambda point: self._parts.past.open(source_of(self.info), database, point, database.snapshots)
        database.links.find_leader = lambda: self._leader_address(database)
        database.progress.find_end = lambda: logs.written_end(info.log)
        return database

    def _new_copy(self) -> tuple[SqlDatabase, Replica]:
        database, replica = super()._new_copy()
        database.progress.hurry = replica.hurry
        return database, replica

    def _leader_address(self, database: SqlDatabase) -> str | None:
        """Where clients find the leader. A database has ceased to lead a moment before its replica."""
        leader = self.leader_for_clients
        if leader is None:
            return None
        has_led = leader.node_id == self._node.settings.node_id and self.role is Role.LEADER and not database.is_leader
        return None if has_led else leader.address

    def _administrator(self, name: str) -> RoleLogin | None:
        administrator = self.info.administrator
        return administrator.login if administrator is not None and administrator.name == name else None

    def _entry_changed(self, entry: DatabaseInfo) -> None:
        """Keep the administrator and the placement up to date."""
        self.info = replace(self.info, placement=entry.placement)
        if entry.administrator != self.info.administrator:
            self.info = replace(self.info, administrator=entry.administrator)
            role = "" if entry.administrator is None else entry.administrator.name
            audit(AuditEvent.ADMINISTRATOR_CHANGED.value, self._node.host.clock.wall_us(), ConnectedClient(self.info.name, role).facts())
