"""One database on a node. Its copy is opened and follows or leads; when that ends by an error, the copy is opened again.

Faults of one database do not affect the others. A copy that failed is opened again after a growing pause. A copy that is damaged, or
whose content is wrong, is set aside, and another is built from the log. A copy whose place in the log was not found is kept and verified.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from triplicate.client import Client
from triplicate.config.node_settings import NodeSettings
from triplicate.errors import FormatError, SessionExpired, SqlError, TriplicateError
from triplicate.log import Logs
from triplicate.metadata import own_paths
from triplicate.replica import (
    Candidate,
    Election,
    PeerLoss,
    Replica,
    ReplicaSettings,
    Role,
    SnapshotKeeper,
    SnapshotSettings,
    set_aside_copy,
)
from triplicate.runtime import Backoff, Host, Metrics, TaskScope, deadline_after, shielded, sleep, timeout_at
from triplicate.security import audit
from triplicate.sql.backup.past_databases import PastDatabases
from triplicate.sql.core.audit import AuditEvent, ConnectedClient
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.executor.threads import WorkerThreads
from triplicate.sql.hosting.database_directory import DatabaseInfo, database_file, log_purpose, read_info
from triplicate.sql.hosting.live_sources import LiveSources
from triplicate.sql.hosting.restoring import source_of
from triplicate.sql.storage.local_copies import is_position_mismatch
from triplicate.sql.storage.sqlite_file import ConnectionSetup

FAILED = "failed"
"""The reported role of a copy that waits to be opened again after an error."""
LAG_INTERVAL_S = 5.0
LEAVING_DELAY_S = 1.0
"""Delay of a copy that this node is to give up, in elections, in favour of the others."""
READ_FIRST_S = 0.1
READ_LONGEST_S = 2.0
"""Bounds, in seconds, of the pause before the database's entry in the metadata is read again after an error."""
WITHDRAW_LIMIT_S = 3.0


@dataclass(frozen=True, slots=True)
class NodeResources:
    """Objects that all databases of a node share."""

    host: Host
    client: Client
    logs: Logs
    settings: NodeSettings
    metrics: Metrics | None
    setup: ConnectionSetup | None
    address: str
    """Address of the PostgreSQL server, as other nodes give it to clients."""
    holds_name: Callable[[], bool]
    """Whether this process has registered the node's id in the cluster."""
    snapshot_turn: asyncio.Lock
    """A node makes one snapshot at a time."""
    threads: WorkerThreads
    gone: Callable[[str], Coroutine[Any, Any, PeerLoss]] | None
    """Returns when the process at an address has ended; None without failure detection."""
    past: PastDatabases
    """Databases as they were, for sessions that read the past."""


class StoppedCopy(NamedTuple):
    """The report of a copy that does not run."""

    role: str
    reason: str


class HostedDatabase:
    """One database on this node, with the tasks that run it. `run` it once.

    Args:
        replaces_another: whether this node has shown a copy of it before, so that the new one must catch up before it serves.
    """

    def __init__(self, parts: NodeResources, info: DatabaseInfo, *, replaces_another: bool = False) -> None:
        self.info = info
        self.leader: Candidate | None = None
        self.is_leaving = False
        """Whether this node is to give its copy up."""
        self._parts = parts
        self._logs = parts.logs.acting_for(log_purpose(info))
        self._path = str(database_file(parts.settings.directory, info.name))
        self._node_path = own_paths.database_path(parts.client.metadata.own_root, info.name)
        self._election = Election(
            parts.host,
            parts.client.metadata.tree,
            self._node_path,
            parts.settings.node_id,
            parts.address,
            delay_s=parts.settings.election_delay_s,
            holds_name=parts.holds_name,
            gone=parts.gone,
            lead_delay_s=self._lead_delay_s,
        )
        self._gauges = _HostedGauges(parts.metrics, info.name) if parts.metrics is not None else None
        self._diverged_at: int | None = None
        """Position of the copy when its content was last found to be wrong."""
        self._rebuilds = replaces_another
        """Whether the copy replaces one that was set aside or given up and has not caught up with the log since."""
        self.database, self.replica = self._new_copy()

    @property
    def role(self) -> Role:
        return self.replica.role

    @property
    def start_position(self) -> int:
        """Position of the local copy when the node began to host it, or to rebuild it."""
        return self.replica.start_position

    @property
    def opened(self) -> Awaitable[None]:
        """Done when the local copy is open, or cannot be."""
        return self.replica.opened

    def _new_copy(self) -> tuple[SqlDatabase, Replica]:
        parts, settings, name = self._parts, self._parts.settings, self.info.name
        database = SqlDatabase(
            parts.host,
            name,
            self.info.identity,
            self._path,
            settings,
            metrics=parts.metrics,
            setup=parts.setup,
            lease_s=self.info.lease_ms / 1000,
            threads=parts.threads,
        )
        database.find_administrator = self._administrator
        sources = LiveSources(parts.host, parts.client, self._logs, database, settings.node_id, self._node_path, self.info.log)
        database.activity.sources.update(sources.by_table())
        database.links.find_past = lambda point: parts.past.open(source_of(self.info), database, point)
        database.links.find_leader = lambda: self.leader.address if self.leader is not None else None
        database.progress.find_end = lambda: self._logs.written_end(self.info.log)
        replica = Replica(
            parts.host,
            self._logs,
            self.info.log,
            database,
            self._election,
            settings.node_id,
            ReplicaSettings(
                apply_entries=settings.apply_entries,
                apply_size_bytes=settings.apply_size_bytes,
                report_interval_s=settings.report_interval_s,
                retry_first_s=settings.retry_first_s,
                retry_longest_s=settings.retry_longest_s,
            ),
            on_role=self._role_changed,
            snapshots=self._snapshot_keeper(database),
            drain=database.drain,
        )
        return database, replica

    def _lead_delay_s(self) -> float | None:
        """The delay of this copy in elections; None for a copy that never leads."""
        placement, node = self.info.placement, self._parts.settings.node_id
        if node in placement.readers:
            return None
        return LEAVING_DELAY_S if self.is_leaving or not placement.is_chosen(node) else 0.0

    def _administrator(self, name: str) -> RoleLogin | None:
        administrator = self.info.administrator
        return administrator.login if administrator is not None and administrator.name == name else None

    def _snapshot_keeper(self, database: SqlDatabase) -> SnapshotKeeper:
        parts, settings = self._parts, self._parts.settings
        return SnapshotKeeper(
            parts.host,
            self._logs,
            self.info.log,
            database.snapshots,
            self._node_path,
            settings.node_id,
            SnapshotSettings(
                settings.snapshot_log_bytes,
                settings.snapshot_interval_s,
                settings.snapshot_rate_bytes_per_s,
                settings.snapshot_keep_log_s,
                settings.snapshot_turn_s,
            ),
            parts.snapshot_turn,
            parts.metrics,
        )

    def _role_changed(self, role: Role) -> None:
        if self._gauges is not None:
            self._gauges.role(role)

    async def run(self) -> None:
        """Host the database until cancelled.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        try:
            async with TaskScope(f"database {self.info.name}") as scope:
                scope.spawn(self._retry_forever("leader", self._watch_leader), name="leader")
                scope.spawn(self._retry_forever("lag", self._measure_lag), name="lag")
                scope.spawn(self._watch_entry(), name="entry")
                await self._retry_forever("copy", self._run_copies)
        finally:
            await shielded(self.database.close())

    async def _withdraw(self) -> None:
        """Withdraw the report of a copy that does not run."""
        try:
            async with timeout_at(deadline_after(self._parts.host.clock, WITHDRAW_LIMIT_S)):
                await self._election.withdraw()
        except (TriplicateError, TimeoutError) as error:
            self._trace("node.withdraw", error=repr(error))

    def _trace(self, kind: str, **facts: object) -> None:
        self._parts.host.trace(kind, node=self._parts.settings.node_id, database=self.info.name, **facts)

    def _backoff(self) -> Backoff:
        first_s, longest_s = self._parts.settings.restart_first_s, self._parts.settings.restart_longest_s
        return Backoff(min(first_s, longest_s), longest_s, self._parts.host.entropy.stream(f"node.restart.{self.info.name}"))

    async def _retry_forever(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run work that ends only by an error, and repeat it after each error, with a growing pause.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        backoff = self._backoff()
        while True:
            try:
                await work()
            except SessionExpired:
                raise
            except Exception as error:  # noqa: BLE001  a defect met by one database must not end the others; it is traced
                self._trace("node.retry", during=what, error=repr(error))
            await sleep(self._parts.host.clock, backoff.next_s())

    # The copy, opened again and again.

    async def _run_copies(self) -> None:
        clock, backoff = self._parts.host.clock, self._backoff()
        while True:
            if self.replica.opened.done():
                self.database, self.replica = self._new_copy()
            if self._rebuilds:
                self.database.availability.catch_up(self._rebuild_error())
            began_s = clock.monotonic()
            error = await self._run_replica()
            if clock.monotonic() - began_s > self._parts.settings.restart_longest_s:
                backoff.reset()
            report = await self._handle_end(error)
            await self._report_for(backoff.next_s(), report)

    async def _run_replica(self) -> Exception | None:
        """Run the replica until it ends; the error that ended it, None where it has diverged."""
        async with TaskScope(f"copy of {self.info.name}") as scope:
            scope.spawn(self.database.progress.run(), name="progress")
            if self._rebuilds:
                scope.spawn(self._catch_up(), name="catch up")
            try:
                await self.replica.run()
            except SessionExpired:
                raise
            except Exception as error:  # noqa: BLE001  a defect met by one copy must not end the others; clients and operators see it
                return error
            finally:
                scope.cancel()
        return None

    async def _handle_end(self, error: Exception | None) -> StoppedCopy:
        """Handle the end of a copy; the report until it is opened again."""
        if error is not None:
            self.database.availability.failed(error)
            self._trace("node.copy_failed", error=repr(error))
            return StoppedCopy(FAILED, str(error) or repr(error))
        reason, position = self.replica.reason or "", self.replica.position
        if is_position_mismatch(reason):
            return StoppedCopy(Role.DIVERGED.value, reason)
        if self._diverged_at is not None and position <= self._diverged_at:
            # A copy built from the log alone fails at the same position: the log or this release is at fault. A restart tries again.
            self._trace("node.copy_given_up", position=position, reason=reason)
            await self._report_for(None, StoppedCopy(Role.DIVERGED.value, reason))
        self._diverged_at = position
        self._rebuilds = True
        await self._set_aside(reason)
        return StoppedCopy(Role.DIVERGED.value, reason)

    async def _set_aside(self, reason: str) -> None:
        worker = self._parts.host.new_worker(f"sql-{self.info.name}-aside")
        try:
            place = await worker.run(set_aside_copy, self._parts.host.disk, self._path, self._parts.settings.copies_kept)
        except OSError as error:
            # The copy stays. It is found wrong again when it is opened, and this is tried again.
            self._trace("node.copy_not_set_aside", error=repr(error))
        else:
            self._trace("node.copy_set_aside", place=place, reason=reason)
        finally:
            await worker.close()

    async def _report_for(self, seconds: float | None, report: StoppedCopy) -> None:
        """Report for a time in seconds, or until cancelled with None."""
        clock = self._parts.host.clock
        try:
            async with TaskScope(f"report of {self.info.name}") as scope:
                scope.spawn(self._retry_forever("report", lambda: self._report(report)), name="report")
                while seconds is None:
                    await sleep(clock, self._parts.settings.restart_longest_s)
                await sleep(clock, seconds)
                scope.cancel()
        except asyncio.CancelledError:
            await shielded(self._withdraw())
            raise

    async def _report(self, report: StoppedCopy) -> None:
        while True:
            await self._election.report(self.replica.position, report.role, report.reason)
            await sleep(self._parts.host.clock, self._parts.settings.report_interval_s)

    # A copy that is rebuilt from the log.

    def _rebuild_error(self) -> SqlError:
        message = f"this node's copy of database {self.info.name!r} is being built again from the log"
        return SqlError("57P03", message, hint="Use another node.")

    async def _catch_up(self) -> None:
        """Accept sessions once the copy has reached the end that the log had when the rebuild began."""
        clock, interval_s = self._parts.host.clock, self._parts.settings.report_interval_s
        await self.replica.opened
        end: int | None = None
        while end is None or self.database.position < end:
            if end is None:
                try:
                    end = await self._parts.logs.end_offset(self.info.log)
                except TriplicateError as error:
                    self._trace("node.retry", during="end of the log", error=repr(error))
            await sleep(clock, interval_s)
        self.database.availability.caught_up()
        self._rebuilds = False
        self._trace("node.copy_built", position=self.database.position)

    # Other nodes.

    async def _watch_leader(self) -> None:
        """Keep `leader` up to date, for hints to clients."""
        watch = self._parts.client.metadata.tree.watch(f"{self._node_path}/leader")
        try:
            while True:
                try:
                    self.leader = await self._election.leader()
                except FormatError as error:
                    self.leader = None
                    self._trace("node.leader_unreadable", error=str(error))
                await watch.changed()
        finally:
            watch.close()

    async def _watch_entry(self) -> None:
        """Keep the administrator and the placement up to date. While the metadata do not answer, the last one is served.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        host = self._parts.host
        watch = self._parts.client.metadata.tree.watch(self._node_path)
        backoff = Backoff(READ_FIRST_S, READ_LONGEST_S, host.entropy.stream(f"node.entry.{self.info.name}"))
        try:
            while True:
                try:
                    found = await read_info(self._parts.client, self.info.name)
                except SessionExpired:
                    raise
                except SqlError:
                    await watch.changed()  # It was dropped or renamed, and the node is about to stop hosting it.
                    continue
                except TriplicateError as error:
                    self._trace("node.retry", during="entry", error=repr(error))
                    await sleep(host.clock, backoff.next_s())
                    continue
                backoff.reset()
                if found.identity == self.info.identity:
                    self.info = replace(self.info, placement=found.placement)
                if found.identity == self.info.identity and found.administrator != self.info.administrator:
                    self.info = replace(self.info, administrator=found.administrator)
                    role = "" if found.administrator is None else found.administrator.name
                    audit(AuditEvent.ADMINISTRATOR_CHANGED.value, host.clock.wall_us(), ConnectedClient(self.info.name, role).facts())
                await watch.changed()
        finally:
            watch.close()

    async def _measure_lag(self) -> None:
        """Update the metric of the records that the copy lacks."""
        while self._gauges is not None:
            leads = self.role is Role.LEADER
            end = None if leads else await self._election.leader_position()
            self._gauges.lag.set(0 if leads or end is None else max(0, end - self.database.position))
            await sleep(self._parts.host.clock, LAG_INTERVAL_S)
        while True:
            await sleep(self._parts.host.clock, self._parts.settings.restart_longest_s)


class _HostedGauges:
    def __init__(self, metrics: Metrics, name: str) -> None:
        role = metrics.gauge("triplicate_database_role", "1 for the role that this node's copy is in, 0 for others.", ("database", "role"))
        self._roles = {one: role.labels(name, one.value) for one in Role}
        self._diverged = metrics.gauge(
            "triplicate_database_diverged", "1 while this node's copy is wrong, damaged or suspected, and not served.", ("database",)
        ).labels(name)
        lag = "Log records that the leader has reported and this copy lacks."
        self.lag = metrics.gauge("triplicate_database_lag", lag, ("database",)).labels(name)
        self._diverged.set(0)

    def role(self, role: Role) -> None:
        for one, gauge in self._roles.items():
            gauge.set(1 if one is role else 0)
        if role is not Role.STARTING:
            self._diverged.set(1 if role is Role.DIVERGED else 0)
