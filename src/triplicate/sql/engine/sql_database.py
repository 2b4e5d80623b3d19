"""One replicated database on this node: the state machine that the replica feeds, and the database that clients see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import apsw

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import Diverged, FormatError, SqlError
from triplicate.log import LogEntry, LogWriter
from triplicate.replica import LeaseSuccession, is_position_mismatch
from triplicate.runtime import Clock, Host, Metrics, fault_point, shielded
from triplicate.sql.core.access_rights import AccessRights
from triplicate.sql.core.audit import IN_PROCESS, ConnectedClient
from triplicate.sql.core.commit_notices import changed_tables
from triplicate.sql.core.copy_availability import CopyAvailability
from triplicate.sql.core.database_activity import DatabaseActivity
from triplicate.sql.core.follower_lag import FollowerLag
from triplicate.sql.core.interface import Session
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.core.statement_statistics import StatementUse
from triplicate.sql.engine.copy_progress import CopyProgress
from triplicate.sql.engine.database_roles import DatabaseRoles
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.local_copy import LocalCopy
from triplicate.sql.engine.log_appender import LogAppender
from triplicate.sql.engine.read_place import ReadPlace
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.engine.session_database import SessionDatabase
from triplicate.sql.executor.reader_pool import ReaderPool, ReadLimits
from triplicate.sql.executor.threads import ThreadPerWorker, WorkerThreads
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.pg.protocol.activity_rows import ActivityRows
from triplicate.sql.storage.applier import LogBatch
from triplicate.sql.storage.sqlite_file import ConnectionSetup
from triplicate.sql.storage.sqlite_snapshots import SqlSnapshots
from triplicate.sql.storage.wal_checkpointer import OLD_SNAPSHOT_S, WalCheckpointer


async def _no_past(_: str) -> SessionDatabase:
    raise SqlError("0A000", "this database does not read its past: it is not hosted by a node")


@dataclass(slots=True)
class ClusterLinks:
    """The answers of the node that hosts a database to its questions."""

    find_leader: Callable[[], str | None] = lambda: None
    """The address of the leader, where it is known."""
    find_past: Callable[[str], Awaitable[SessionDatabase]] = _no_past
    """The database as it was at a point, for one session."""


class SqlDatabase:
    """Implements `replica.HostedMachine` for the replica and `interface.Database` for clients.

    Args:
        identity: 16 bytes; the local file must be of this database.
        path: the local file; its folder is made if it is missing.
        setup: called on every new connection, for example to register functions; the same on every node.
        lease_s: how long a leader of this database answers reads on its own, see `replica.core.lease`; the same on every node.
        threads: the threads for its work; threads of its own by default.
    """

    def __init__(
        self,
        host: Host,
        name: str,
        identity: bytes,
        path: str,
        settings: NodeSettings,
        *,
        metrics: Metrics | None = None,
        setup: ConnectionSetup | None = None,
        lease_s: float = 0.0,
        threads: WorkerThreads | None = None,
    ) -> None:
        self._host = host
        self.activity = DatabaseActivity()
        self.activity.sources.update(ActivityRows(name, self.activity, host.clock).by_table())
        self.settings = settings
        self._threads = threads if threads is not None else ThreadPerWorker(host)
        self._worker = self._threads.writer(name)
        self._pool: ReaderPool | None = None
        self.activity.statements.slow_s, self.activity.statements.on_slow = settings.slow_statement_s, self._note_slow
        self._checkpointer = WalCheckpointer(settings.wal_limit_bytes, lambda: self.snapshots.holds_wal)
        self.progress = CopyProgress(host, name)
        place = ReadPlace(settings.node_id, self._age_s)
        self._copy = LocalCopy(host, name, identity, path, place.setup(setup), self._checkpointer)
        self._lease_s = lease_s
        self._succession = LeaseSuccession(host.clock, lease_s, settings.clock_rate_error)
        self.leadership: Leadership | None = None
        self.schema_version = 0
        self.generation = 0
        self.availability = CopyAvailability(name)
        self.snapshots = SqlSnapshots(host, self, name, identity, setup, settings.snapshot_wal_limit_bytes)
        """Copies the local file, and replaces it by another."""
        self.links = ClusterLinks()
        self.roles = DatabaseRoles(host, name)
        self.roles.catch_up = self._report_application
        self.on_leadership: Callable[[bool], None] = lambda leads: None
        """Called on the loop when this node begins or ceases to lead."""
        self._gauges = _DatabaseGauges(metrics, name, host.clock) if metrics is not None else None
        if metrics is not None:
            self._add_gauges(metrics)

    # For clients.

    @property
    def name(self) -> str:
        return self.availability.name

    @property
    def path(self) -> str:
        return self._copy.path

    @property
    def clock(self) -> Clock:
        return self._host.clock

    @property
    def is_leader(self) -> bool:
        return self.leadership is not None

    @property
    def position(self) -> int:
        return self.progress.position

    def _age_s(self) -> float | None:
        """This copy lacks nothing that was acknowledged anywhere longer ago than this; None if that is unknown. Called on any thread."""
        leadership = self.leadership
        return leadership.reads.age_s() if leadership is not None else self.progress.freshness.age_s(self.progress.now())

    @property
    def leader_hint(self) -> str | None:
        return self.links.find_leader()

    @property
    def unusable(self) -> SqlError | None:
        """Why no session is accepted, or None."""
        return self.availability.unusable

    @property
    def pool(self) -> ReaderPool:
        if self._pool is None:
            raise self.unusable or SqlError("57P03", f"database {self.name!r} is starting")
        return self._pool

    async def session(self, application_name: str = "", client: ConnectedClient = IN_PROCESS) -> SqlSession:
        self.availability.check()
        session = SqlSession(self, application_name, client, self.roles.of_client(client))
        self.activity.add_session(session)
        return session

    @property
    def find_administrator(self) -> Callable[[str], RoleLogin | None]:
        """The login of the administrator in the list of databases, if that is the role's name."""
        return self.roles.find_administrator

    @find_administrator.setter
    def find_administrator(self, find: Callable[[str], RoleLogin | None]) -> None:
        self.roles.find_administrator = find

    async def role_login(self, name: str) -> RoleLogin | None:
        return self.find_administrator(name) or await self.stored_role_login(name)

    async def stored_role_login(self, name: str) -> RoleLogin | None:
        """The login of a role that is stored in the database itself, by this copy's state. None if there is none."""
        self.availability.check()
        return self.roles.login(name)

    @property
    def as_of(self) -> int | None:
        return None

    @property
    def present(self) -> SessionDatabase:
        return self

    async def past(self, point: str) -> SessionDatabase:
        return await self.links.find_past(point)

    def leave(self) -> None:
        """Nothing is held for the sessions of the present."""

    def forget(self, session: Session) -> None:
        """A session was closed."""
        self.activity.forget_session(session)

    def _note_slow(self, use: StatementUse, seconds: float, rows: int) -> None:
        facts = {"role": use.role, "seconds": round(seconds, 3), "rows": rows, "statement": use.text}
        self._host.trace("sql.slow_statement", database=self.name, **facts)

    def _end_sessions(self, reason: SqlError) -> None:
        self.activity.end_sessions(reason)

    # The replica's state machine.

    @property
    def suspicion(self) -> str | None:
        return self.availability.suspicion

    async def open(self) -> int:
        state = await self._worker.run(self._copy.open)
        self.generation += 1
        self._moved(state.position, state.schema_version, self._copy.access)
        if state.diverged is not None and not is_position_mismatch(state.diverged):
            raise Diverged(state.diverged)
        settings = self.settings
        self._pool = ReaderPool(
            self._host,
            self.name,
            self.path,
            ReadLimits(
                settings.reader_connections,
                settings.reader_threads,
                settings.reader_wait_s,
                settings.read_idle_s,
                settings.snapshot_limit_s,
            ),
            setup=self._copy.setup,
            threads=self._threads,
        )
        self.availability.opened(state.diverged)
        return state.position

    async def replace(self, swap: Callable[[], None]) -> int:
        """Serve another file: sessions end, `swap` replaces the local file, and it is opened. Returns its position.

        Raises:
            EnvironmentFault: `swap` failed; the file that is there then has been opened.
        """
        return await shielded(self._replace(swap))

    async def _replace(self, swap: Callable[[], None]) -> int:
        self.availability.loads_snapshot()
        self._end_sessions(SqlError("57P01", f"this node's copy of database {self.name!r} is replaced by a snapshot"))
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
        try:
            await self._worker.run(self._copy.replace, swap)
        finally:
            await self.open()
        return self.position

    async def verify(self, entry: LogEntry | None) -> None:
        await self._worker.run(self._copy.verify, None if entry is None else _batch_of(entry))
        self.availability.verified()

    async def follow(self) -> int:
        if self._pool is None:
            await self.open()  # A snapshot replaced the file, and it could not be opened then.
        state = await self._worker.run(self._copy.follow)
        self._moved(state.position, state.schema_version, self._copy.access)
        return state.position

    @fault_point("sql.apply")
    async def apply(self, entries: Sequence[LogEntry]) -> int:
        if not all(self._is_known_control(entry) for entry in entries):
            applied = await self._worker.run(self._copy.apply, [_batch_of(entry) for entry in entries])
            self._moved(applied.position, applied.schema_version, applied.access)
            self.activity.notices.publish(applied.position, applied.notifications, partial(_changed_by, entries))
            if self._gauges is not None:
                self._gauges.lag.applied(self._host.clock.monotonic(), self._host.clock.wall_us(), entries[-1].wall_time_us)
        return self.position

    async def _report_application(self) -> None:
        """Return when the application that runs, if one does, has been reported."""
        if self.leadership is None:
            await self._worker.run(lambda: None)  # The thread runs one function at a time, in order.

    def _is_known_control(self, entry: LogEntry) -> bool:
        """Whether an entry changes nothing: a control entry, such as a no-op, of an epoch that the copy has seen."""
        return entry.is_control and entry.epoch <= self._copy.followed_epoch and entry.first_offset == self.position

    async def lead(self, writer: LogWriter, serves: Callable[[], None]) -> None:
        await self._lead(writer, serves)

    async def _lead(self, log: LogAppender, serves: Callable[[], None]) -> None:
        entered_at = self._host.clock.elapsed()
        ids = TransactionIds(log.epoch)
        leadership: Leadership | None = None
        try:
            writer: WriterConnection = await shielded(self._open_writer(ids))
            leadership = Leadership(self._host, log, self._worker, writer, ids, self.settings, self.name, self._lease_s)
            leadership.on_commit = partial(self._committed, writer)
            leadership.on_over = self._cease
            leadership.notices = self.activity.notices
            self._moved(writer.position, writer.schema_version, writer.access)
            await self._succession.outwait_predecessor(log.epoch, entered_at)
            # The first answer to a client must not come from a leader that has been fenced since its election.
            await leadership.reads.noop()
            self._succession.leads(log.epoch)
            self.pool.ids = ids
            self.leadership = leadership
            self._lead_changed(leads=True)
            serves()
            await leadership.run()
        finally:
            if self.leadership is not None:
                self._cease()
            self._lead_changed(leads=False)
            if leadership is not None:
                await shielded(self._close_writer(leadership.writer))

    def _cease(self) -> None:
        """End the sessions, which have found a leader. Those that come later find a follower."""
        self.leadership = None
        if self._pool is not None:
            self._pool.ids = None
        self._end_sessions(
            SqlError("57P01", f"this node does not lead database {self.name!r} any more", hint="Connect again to find the leader.")
        )

    def catch_up(self) -> None:
        message = f"this node's copy of database {self.name!r} is being built again from the log"
        self.availability.catch_up(SqlError("57P03", message, hint="Use another node."))

    def caught_up(self) -> None:
        self.availability.caught_up()

    def failed(self, error: Exception) -> None:
        self.availability.failed(error)

    async def run_beside(self) -> None:
        await self.progress.run()

    async def drain(self) -> bool:
        """As the leader, begin no further transaction and wait for those that run; returns whether none runs. See `Leadership.drain`."""
        leadership = self.leadership
        return leadership is None or await leadership.drain(self.settings.handover_limit_s)

    async def _open_writer(self, ids: TransactionIds) -> WriterConnection:
        clock = self._host.clock
        writer: WriterConnection = await self._worker.run(self._copy.lead, ids, self.settings, clock.monotonic, clock.wall_us)
        return writer

    async def _close_writer(self, writer: WriterConnection) -> None:
        await self._worker.run(writer.close)

    def _committed(self, writer: WriterConnection, position: int, schema_version: int) -> None:
        self._moved(position, schema_version, writer.access)

    def _moved(self, position: int, schema_version: int, access: AccessRights) -> None:
        """The copy has moved on to a position of the log."""
        self.schema_version = schema_version
        self.progress.moved(position)
        if access is not self.roles.access:
            self.activity.end_dropped(access.roles)
        self.roles.moved(schema_version, access)
        if self._gauges is not None:
            self._gauges.position(position)
        if self._checkpointer.held_back and self._pool is not None:
            self._pool.end_oldest(OLD_SNAPSHOT_S, self._checkpointer.size_bytes)

    def _add_gauges(self, metrics: Metrics) -> None:
        wal = metrics.gauge("triplicate_database_wal_bytes", "Changes that wait to be moved into the database's file.", ("database",))
        wal.labels(self.name).set_function(lambda: self._checkpointer.size_bytes)
        oldest = metrics.gauge("triplicate_database_oldest_snapshot_seconds", "Age of the oldest snapshot that is read.", ("database",))
        oldest.labels(self.name).set_function(lambda: self._pool.oldest_snapshot_s if self._pool is not None else 0.0)

    def _lead_changed(self, *, leads: bool) -> None:
        if self._gauges is not None:
            self._gauges.leading(leads)
        self.on_leadership(leads)

    async def diverge(self, reason: str) -> None:
        self._end_sessions(self.availability.diverged(reason, is_position_mismatch=is_position_mismatch(reason)))
        try:
            await self._worker.run(self._copy.mark_diverged, reason)
        except (apsw.Error, FormatError) as error:
            # A file that cannot be marked fails again when it is opened or followed with.
            self._host.trace("sql.mark_failed", database=self.name, error=repr(error))

    async def close(self) -> None:
        if not self.availability.closing():
            return
        ended = SqlError("57P01", f"this node closes its copy of database {self.name!r}", hint="Connect again to find another node.")
        self._end_sessions(ended)
        if self._pool is not None:
            await self._pool.close()
        await self._worker.run(self._copy.close)
        await self._worker.close()


def _changed_by(entries: Sequence[LogEntry]) -> list[str]:
    """The names of the tables that entries change."""
    return changed_tables([entry.preamble for entry in entries if not entry.is_control])


def _batch_of(entry: LogEntry) -> LogBatch:
    return LogBatch(entry.first_offset, [value or b"" for value in entry.values], entry.preamble, entry.epoch)


class _DatabaseGauges:
    def __init__(self, metrics: Metrics, name: str, clock: Clock) -> None:
        lag = self.lag = FollowerLag()
        text = "Time from the append of the last applied entry by the leader to its application; 0 if none was applied for 10 s."
        metrics.gauge("triplicate_database_lag_seconds", text, ("database",)).labels(name).set_function(
            lambda: lag.seconds(clock.monotonic())
        )
        self._position = metrics.gauge("triplicate_database_position", "Offset after the last log record applied.", ("database",)).labels(
            name
        )
        self._leading = metrics.gauge("triplicate_database_leader", "1 while this node leads the database.", ("database",)).labels(name)

    def position(self, position: int) -> None:
        self._position.set(position)

    def leading(self, leads: bool) -> None:
        self._leading.set(1 if leads else 0)
