"""One replicated database on this node: the state machine that the replica feeds, and the database that clients see."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence

import apsw

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import Diverged, EnvironmentFault, FormatError, SqlError
from triplicate.log import LogEntry, LogWriter
from triplicate.runtime import Host, Metrics, fault_point, shielded, sleep
from triplicate.sql.core.lease import wait_s
from triplicate.sql.engine.leadership import Leadership, LogAppender
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.executor.reader_pool import ReaderPool, ReadLimits
from triplicate.sql.executor.threads import OwnThreads, Threads
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage.applier import Applier, LogBatch, follow
from triplicate.sql.storage.local_copies import is_damage, is_position_mismatch, verify_last_batch, with_file_errors
from triplicate.sql.storage.sqlite_file import ConnectionSetup, StoreState, mark_diverged, mark_epoch, open_follower, open_store, read_state
from triplicate.sql.storage.sqlite_snapshots import SqlSnapshots
from triplicate.sql.storage.transaction_history import RequestLimits
from triplicate.sql.storage.wal_checkpointer import OLD_SNAPSHOT_S, WalCheckpointer


class SqlDatabase:
    """Implements `replica.StateMachine` for the runtime and `interface.Database` for clients.

    Args:
        identity: 16 bytes; the local file must be of this database.
        path: the local file; its folder is made if it is missing.
        setup: called on every new connection, for example to register functions; the same on every node.
        lease_s: how long a leader of this database answers reads on its own, see `core.lease`; the same on every node.
        threads: where its work is done; threads of its own by default.
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
        threads: Threads | None = None,
    ) -> None:
        self._host = host
        self._name = name
        self._identity = identity
        self._path = path
        self.settings = settings
        self._setup = setup
        self._threads = threads if threads is not None else OwnThreads(host)
        self._worker = self._threads.writer(name)
        self._pool: ReaderPool | None = None
        self._connection: apsw.Connection | None = None
        self._applier: Applier | None = None
        self._sessions: dict[int, SqlSession] = {}
        self._session_count = 0
        self._closed = False
        self._wal = WalCheckpointer(settings.wal_limit_bytes, lambda: self.snapshots.holds_wal)
        self._lease_s = lease_s
        self._led_epoch = 0
        """The last epoch that this process led. 0: epoch 0 of a log has no writer, so epoch 1 follows no leader."""
        self.leadership: Leadership | None = None
        self.position = 0
        self.schema_version = 0
        self.unusable: SqlError | None = SqlError("57P03", f"database {name!r} is starting")
        """Why no session can be had, or None."""
        self.catching_up: SqlError | None = None
        """Why no session can be had once the copy is open: it is being built from the log. Set before `open`, ended by `caught_up`."""
        self._suspicion: str | None = None
        self.snapshots = SqlSnapshots(host, self, name, identity, setup, settings.snapshot_wal_limit_bytes)
        """Copies the local file, and puts another in its place."""
        self.find_leader: Callable[[], str | None] = lambda: None
        self.on_leadership: Callable[[bool], None] = lambda leads: None
        """Called on the loop when this node begins or ceases to lead."""
        self._gauges = _DatabaseGauges(metrics, name) if metrics is not None else None
        if metrics is not None:
            self._add_gauges(metrics)

    # What clients see.

    @property
    def name(self) -> str:
        return self._name

    @property
    def path(self) -> str:
        return self._path

    @property
    def is_leader(self) -> bool:
        return self.leadership is not None

    @property
    def leader_hint(self) -> str | None:
        return self.find_leader()

    @property
    def pool(self) -> ReaderPool:
        if self._pool is None:
            raise self.unusable or SqlError("57P03", f"database {self._name!r} is starting")
        return self._pool

    async def session(self, application_name: str = "") -> SqlSession:
        if self.unusable is not None:
            raise self.unusable
        session = SqlSession(self, application_name)
        self._session_count += 1
        self._sessions[id(session)] = session
        return session

    def forget(self, session: SqlSession) -> None:
        """A session was closed."""
        self._sessions.pop(id(session), None)

    def _end_sessions(self, reason: SqlError) -> None:
        for session in list(self._sessions.values()):
            session.end(reason)

    # What the replica's runtime asks.

    @property
    def suspicion(self) -> str | None:
        return self._suspicion

    async def open(self) -> int:
        state = await self._worker.run(self._open)
        self._moved(state)
        if state.diverged is not None and not is_position_mismatch(state.diverged):
            raise Diverged(state.diverged)
        self._suspicion = state.diverged
        self._pool = ReaderPool(
            self._host,
            self._name,
            self._path,
            ReadLimits(
                self.settings.reader_connections,
                self.settings.reader_threads,
                self.settings.reader_wait_s,
                self.settings.read_idle_s,
                self.settings.snapshot_limit_s,
            ),
            setup=self._setup,
            threads=self._threads,
        )
        if self._suspicion is None:
            self._serve()
        return state.position

    def _open(self) -> StoreState:
        return with_file_errors(self._path, self._open_file)

    def _open_file(self) -> StoreState:
        self._host.disk.mkdir(os.path.dirname(self._path))
        self.snapshots.remove_leftovers()
        try:
            open_store(self._path, self._identity)
        except ValueError:
            self._put_aside()
            open_store(self._path, self._identity)
        connection = open_follower(self._path, self._setup)
        try:
            return read_state(connection)
        finally:
            connection.close(True)

    async def replace(self, swap: Callable[[], None]) -> int:
        """Serve another file: sessions end, `swap` puts it in the place of the local copy, and it is opened. Returns its position.

        Raises:
            EnvironmentFault: `swap` failed; what is there then has been opened.
        """
        return await shielded(self._replace(swap))

    async def _replace(self, swap: Callable[[], None]) -> int:
        self.unusable = SqlError("57P03", f"database {self._name!r} is loading a snapshot", hint="Use another node, or try again.")
        self._end_sessions(SqlError("57P01", f"this node's copy of database {self._name!r} is replaced by a snapshot"))
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
        try:
            await self._worker.run(self._close_connection)
            await self._worker.run(with_file_errors, self._path, swap)
        finally:
            await self.open()
        return self.position

    async def verify(self, entry: LogEntry | None) -> None:
        await self._worker.run(self._verify, None if entry is None else _batch_of(entry))
        self._suspicion = None
        self._serve()

    def _verify(self, batch: LogBatch | None) -> None:
        def compare() -> None:
            connection = open_follower(self._path)
            try:
                verify_last_batch(connection, batch)
            finally:
                connection.close(True)

        with_file_errors(self._path, compare)

    def _serve(self) -> None:
        """Let sessions in, unless the copy is being built and not far enough yet."""
        self.unusable = self.catching_up

    def caught_up(self) -> None:
        """The copy is as far as it must be to be read."""
        if self.unusable is not None and self.unusable is self.catching_up:
            self.unusable = None
        self.catching_up = None

    def _put_aside(self) -> None:
        """The file is of an earlier database of this name: keep it under another name and begin with an empty one."""
        for suffix in ("-wal", "-shm", ""):
            if self._host.disk.exists(self._path + suffix):
                self._host.disk.rename(self._path + suffix, f"{self._path}.before-{self._identity[:4].hex()}{suffix}")

    async def follow(self) -> int:
        if self._pool is None:
            await self.open()  # It could not be opened when it was replaced by a snapshot.
        state = await self._worker.run(self._start_following)
        self._moved(state)
        return state.position

    def _start_following(self) -> StoreState:
        def start() -> StoreState:
            self._close_connection()
            self._connection = open_follower(self._path, self._wal.setup(self._setup))
            self._applier = Applier(self._connection)
            return read_state(self._connection)

        return with_file_errors(self._path, start)

    @fault_point("sql.apply")
    async def apply(self, entries: Sequence[LogEntry]) -> int:
        self._moved(await self._worker.run(self._apply, [_batch_of(entry) for entry in entries]))
        return self.position

    def _apply(self, batches: Sequence[LogBatch]) -> tuple[int, int]:
        assert self._applier is not None, "follow comes before apply"
        try:
            follow(self._applier, batches)
        except apsw.Error as error:
            if is_damage(error):
                raise Diverged(f"the local file {self._path} is damaged: {error}") from error
            raise EnvironmentFault(f"the local copy of database {self._name!r} failed: {error}") from error
        return self._applier.position, self._applier.schema_version

    async def lead(self, writer: LogWriter) -> None:
        await self._lead(writer)

    async def _lead(self, log: LogAppender) -> None:
        entered_at = self._host.clock.elapsed()
        numbers = TransactionIds(log.epoch)
        leadership: Leadership | None = None
        try:
            # The applying connection is never used for queries: full-text indexes remember what they saw through another.
            connection: WriterConnection = await shielded(self._open_writer(numbers))
            leadership = Leadership(self._host, log, self._worker, connection, numbers, self.settings, self._name, self._lease_s)
            leadership.on_commit = self._committed
            await self._outwait_predecessor(log.epoch, entered_at)
            # What a client asks first must not be answered by a leader that has been fenced since it was elected.
            await leadership.noop()
            self._led_epoch = log.epoch
            self.pool.ids = numbers
            self.leadership = leadership
            self._lead_changed(leads=True)
            await leadership.run()
        finally:
            self.leadership = None
            if self._pool is not None:
                self._pool.ids = None
            self._end_sessions(
                SqlError("57P01", f"this node does not lead database {self._name!r} any more", hint="Connect again to find the leader.")
            )
            self._lead_changed(leads=False)
            if leadership is not None:
                await shielded(self._close_writer(leadership.writer))

    async def _outwait_predecessor(self, epoch: int, since: float) -> None:
        """Return when no earlier leader answers reads on its own any more. Their fencing was complete at `since`, or before."""
        if epoch == self._led_epoch + 1:
            return  # The leader before was this process, which has ended that leadership, or there was none.
        clock = self._host.clock
        until = since + wait_s(self._lease_s, self.settings.clock_rate_error)
        while (remaining_s := until - clock.elapsed()) > 0:
            await sleep(clock, remaining_s)

    async def _open_writer(self, numbers: TransactionIds) -> WriterConnection:
        return await self._worker.run(self._start_leading, numbers)

    async def _close_writer(self, writer: WriterConnection) -> None:
        await self._worker.run(writer.close)

    def _start_leading(self, numbers: TransactionIds) -> WriterConnection:
        if self._connection is not None:
            mark_epoch(self._connection, numbers.epoch)
        self._close_connection()
        clock, settings = self._host.clock, self.settings
        limits = RequestLimits(
            int(settings.request_keep_s * 1000), settings.request_limit, settings.request_size_bytes, settings.undated_request_limit
        )
        return WriterConnection(
            self._path,
            numbers,
            self._wal.setup(self._setup),
            now=clock.monotonic,
            limit_s=settings.transaction_limit_s,
            wall_us=clock.wall_us,
            request_limits=limits,
        )

    def _committed(self, position: int, schema_version: int) -> None:
        self._moved((position, schema_version))

    def _moved(self, to: StoreState | tuple[int, int]) -> None:
        self.position, self.schema_version = to if isinstance(to, tuple) else (to.position, to.schema_version)
        if self._gauges is not None:
            self._gauges.position(self.position)
        if self._wal.held_back and self._pool is not None:
            self._pool.end_oldest(OLD_SNAPSHOT_S, self._wal.size_bytes)

    def _add_gauges(self, metrics: Metrics) -> None:
        wal = metrics.gauge("triplicate_database_wal_bytes", "Changes that wait to be moved into the database's file.", ("database",))
        wal.labels(self._name).set_function(lambda: self._wal.size_bytes)
        oldest = metrics.gauge("triplicate_database_oldest_snapshot_seconds", "Age of the oldest snapshot that is read.", ("database",))
        oldest.labels(self._name).set_function(lambda: self._pool.oldest_snapshot_s if self._pool is not None else 0.0)

    def _lead_changed(self, *, leads: bool) -> None:
        if self._gauges is not None:
            self._gauges.leading(leads)
        self.on_leadership(leads)

    async def diverge(self, reason: str) -> None:
        if is_position_mismatch(reason):
            hint = "Use another node; this one verifies its copy from time to time, and serves it again when the log confirms it."
        else:
            hint = "Use another node; this one sets its copy aside and builds another from the log."
        message = f"this node's copy of database {self._name!r} is not what the log says and is not served: {reason}"
        self.unusable = SqlError("58000", message, hint=hint)
        self._end_sessions(self.unusable)
        try:
            await self._worker.run(self._mark_diverged, reason)
        except (apsw.Error, FormatError) as error:
            # A file that cannot be marked is found out again when it is opened or followed with.
            self._host.trace("sql.mark_failed", database=self._name, error=repr(error))

    def _mark_diverged(self, reason: str) -> None:
        self._close_connection()
        connection = open_follower(self._path)
        try:
            marked = read_state(connection).diverged
            if marked is None or is_position_mismatch(marked):
                mark_diverged(connection, reason)
        finally:
            connection.close(True)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.unusable = self.unusable or SqlError("57P03", f"database {self._name!r} is being closed")
        ended = SqlError("57P01", f"this node closes its copy of database {self._name!r}", hint="Connect again to find another node.")
        self._end_sessions(ended)
        if self._pool is not None:
            await self._pool.close()
        await self._worker.run(self._close_connection)
        await self._worker.close()

    def _close_connection(self) -> None:
        self._applier = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)


def _batch_of(entry: LogEntry) -> LogBatch:
    return LogBatch(entry.first_offset, [value or b"" for value in entry.values], entry.preamble, entry.epoch)


class _DatabaseGauges:
    def __init__(self, metrics: Metrics, name: str) -> None:
        self._position = metrics.gauge("triplicate_database_position", "Offset after the last log record applied.", ("database",)).labels(
            name
        )
        self._leading = metrics.gauge("triplicate_database_leader", "1 while this node leads the database.", ("database",)).labels(name)

    def position(self, position: int) -> None:
        self._position.set(position)

    def leading(self, leads: bool) -> None:
        self._leading.set(1 if leads else 0)
