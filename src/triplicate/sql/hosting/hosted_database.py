"""One database on a node."""

from __future__ import annotations

from dataclasses import dataclass, replace

from triplicate.errors import SqlError
from triplicate.metadata import own_paths
from triplicate.replica import HostedCopy, NodeParts, ReplicaPlace
from triplicate.security import audit
from triplicate.sql.backup.past_databases import PastDatabases
from triplicate.sql.core.audit import AuditEvent, ConnectedClient
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.executor.threads import WorkerThreads
from triplicate.sql.hosting.database_directory import DatabaseInfo, database_file, log_purpose, read_info
from triplicate.sql.hosting.live_sources import LiveSources
from triplicate.sql.hosting.restoring import source_of
from triplicate.sql.storage.sqlite_file import ConnectionSetup

LEAVING_DELAY_S = 1.0
"""Delay of a copy that this node is to give up, in elections, in favour of the others."""


@dataclass(frozen=True, slots=True)
class NodeResources:
    """Objects that all databases of a node share."""

    node: NodeParts
    setup: ConnectionSetup | None
    threads: WorkerThreads
    past: PastDatabases
    """Databases as they were, for sessions that read the past."""


class HostedDatabase(HostedCopy[SqlDatabase]):
    """One database on this node, with the tasks that run it. `run` it once.

    Args:
        replaces_another: whether this node has shown a copy of it before, so that the new one must catch up before it serves.
    """

    def __init__(self, parts: NodeResources, info: DatabaseInfo, *, replaces_another: bool = False) -> None:
        self.info = info
        self.is_leaving = False
        """Whether this node is to give its copy up."""
        self._parts = parts
        node = parts.node
        node_path = own_paths.database_path(node.client.metadata.own_root, info.name)
        folder = str(database_file(node.settings.directory, info.name).parent)
        logs = node.logs.acting_for(log_purpose(info))
        super().__init__(node, logs, ReplicaPlace("database", info.name, info.log, node_path, folder), replaces_another=replaces_another)

    @property
    def database(self) -> SqlDatabase:
        return self.machine

    def _new_machine(self) -> SqlDatabase:
        node, settings, place, logs = self._node, self._node.settings, self._place, self._logs
        database = SqlDatabase(
            node.host,
            place.name,
            self.info.identity,
            str(database_file(settings.directory, place.name)),
            settings,
            metrics=node.metrics,
            setup=self._parts.setup,
            lease_s=self.info.lease_ms / 1000,
            threads=self._parts.threads,
        )
        database.find_administrator = self._administrator
        sources = LiveSources(node.host, node.client, logs, database, settings.node_id, place.node_path, place.log)
        database.activity.sources.update(sources.by_table())
        database.links.find_past = lambda point: self._parts.past.open(source_of(self.info), database, point)
        database.links.find_leader = lambda: self.leader.address if self.leader is not None else None
        database.progress.find_end = lambda: logs.written_end(place.log)
        return database

    def _lead_delay_s(self) -> float | None:
        placement, node = self.info.placement, self._node.settings.node_id
        if node in placement.readers:
            return None
        return LEAVING_DELAY_S if self.is_leaving or not placement.is_chosen(node) else 0.0

    def _administrator(self, name: str) -> RoleLogin | None:
        administrator = self.info.administrator
        return administrator.login if administrator is not None and administrator.name == name else None

    async def _read_entry(self) -> None:
        """Keep the administrator and the placement up to date."""
        try:
            found = await read_info(self._node.client, self.info.name)
        except SqlError:
            return  # It was dropped or renamed, and the node is about to stop hosting it.
        if found.identity == self.info.identity:
            self.info = replace(self.info, placement=found.placement)
        if found.identity == self.info.identity and found.administrator != self.info.administrator:
            self.info = replace(self.info, administrator=found.administrator)
            role = "" if found.administrator is None else found.administrator.name
            audit(AuditEvent.ADMINISTRATOR_CHANGED.value, self._node.host.clock.wall_us(), ConnectedClient(self.info.name, role).facts())
