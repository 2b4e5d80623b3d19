"""The connections of PostgreSQL clients to a database node: start-up, conversations, limits."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

from triplicate.errors import ProtocolError, SqlError
from triplicate.runtime import Host, TaskScope, has_result
from triplicate.sql.core.interface import Database, Databases
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.conversation import Conversation
from triplicate.sql.pg.protocol.message_stream import MessageStream
from triplicate.sql.pg.protocol.plans import PlanCache
from triplicate.sql.pg.protocol.settings import SessionSettings

UNANSWERED_CONNECTIONS = 50
"""A connection beyond twice the limit of connections plus this number is closed without an answer."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of the server."""

    connections: int = 200
    database_connections: int = 0
    """Connections to one database; 0 for no limit other than `connections`."""
    message_bytes: int = 16 * 1024 * 1024
    startup_s: float = 30.0
    """A connection is closed if its client has not sent the first packet within this time."""
    client_stall_s: float = 60.0
    """A connection is closed if its client does not read, or leaves a message incomplete, for this time without any progress."""


class _DatabasePlans(NamedTuple):
    """The plans of one database's statements, for one generation of its local copy."""

    generation: int
    cache: PlanCache


class _RunningConversation(NamedTuple):
    """A conversation, and the secret with which a cancel request may interrupt it."""

    secret: int
    conversation: Conversation


class ClientConnections:
    """All connections of clients to a node's databases, with the tasks that serve them.

    Args:
        host: the ports to the outside.
        databases: clients connect to one of them by ``dbname``.
        limits: bounds.
    """

    def __init__(self, host: Host, databases: Databases, limits: ServerLimits) -> None:
        self._host = host
        self._databases = databases
        self._limits = limits
        self._scope = TaskScope("postgres")
        self._running: dict[int, _RunningConversation] = {}
        """Maps the process id of a cancel request to the conversation."""
        self._database_connections: Counter[str] = Counter()
        self._clients = 0
        """Connections past their first packet. Other nodes keep connections without one, to probe whether this node answers."""
        self._streams: dict[int, MessageStream] = {}
        self._next_id = 1
        self._plans: WeakKeyDictionary[Database, _DatabasePlans] = WeakKeyDictionary()
        self._secrets = host.entropy.stream("postgres.secret")

    @property
    def count(self) -> int:
        return len(self._streams)

    def new_stream(self) -> MessageStream:
        """Create the stream of a new connection. It is served as soon as the connection is open."""
        return MessageStream(self._limits.message_bytes, self._limits.client_stall_s, self._host.clock, self._opened)

    async def aclose(self) -> None:
        """Send an error to every client and close the connections.

        The error is 57P01, which says that nothing was stored. Where a statement runs it is 08007: the statement may be a change that was
        sent to the log already.
        """
        for process_id, stream in list(self._streams.items()):
            running = self._running.get(process_id)
            is_busy = running is not None and running.conversation.is_busy
            stream.write(wire.error_response(_interrupted() if is_busy else _stopping(), severity="FATAL"))
            stream.close()
        await self._scope.aclose()

    def _opened(self, stream: MessageStream) -> None:
        # A client over the limit gets its error after its first packet. Until then such connections must not accumulate.
        if len(self._streams) >= 2 * self._limits.connections + UNANSWERED_CONNECTIONS:
            stream.close()
            return
        process_id = self._next_id
        self._next_id = process_id % 0x7FFFFFFF + 1
        self._streams[process_id] = stream
        self._scope.spawn(self._serve(process_id, stream), name="client")

    async def _serve(self, process_id: int, stream: MessageStream) -> None:
        try:
            startup = await self._startup(stream)
            if startup is not None:
                self._clients += 1
                try:
                    await self._converse(process_id, stream, startup)
                finally:
                    self._clients -= 1
        except SqlError as error:
            stream.write(wire.error_response(error, severity="FATAL"))
        except ProtocolError as error:
            stream.write(wire.error_response(SqlError("08P01", str(error)), severity="FATAL"))
        except Exception as error:  # noqa: BLE001  a defect met by one client must not end the others; it is logged with its trace
            _LOG.exception("serving a client failed")
            stream.write(wire.error_response(SqlError("XX000", f"internal error: {error!r}"), severity="FATAL"))
        finally:
            self._running.pop(process_id, None)
            self._streams.pop(process_id, None)
            stream.close()

    async def _startup(self, stream: MessageStream) -> wire.Startup | None:
        """Answer encryption requests and read the first packet. None if the client has disconnected or sent a cancel request."""
        timer = self._host.clock.call_at(self._host.clock.monotonic() + self._limits.startup_s, stream.close)
        try:
            while True:
                startup = stream.next_startup()
                if startup is None:
                    if stream.is_lost:
                        return None
                    await stream.wait()
                elif startup.code in (wire.SSL_REQUEST, wire.GSS_ENCRYPTION_REQUEST):
                    stream.write(b"N")
                    stream.flush_nowait()
                    await asyncio.sleep(0)  # A client may send many requests at once, and others are served meanwhile.
                elif startup.code == wire.CANCEL_REQUEST:
                    self._cancel(startup)
                    return None
                else:
                    self._negotiate(stream, startup)
                    return startup
        finally:
            timer.cancel()

    def _negotiate(self, stream: MessageStream, startup: wire.Startup) -> None:
        major, minor = startup.code >> 16, startup.code & 0xFFFF
        if major != wire.PROTOCOL_MAJOR:
            raise SqlError("0A000", f"protocol {major}.{minor} is not supported; this server supports 3.0")
        options = [name for name in startup.parameters if name.startswith("_pq_.")]
        if minor > 0 or options:
            stream.write(wire.negotiate_protocol_version(options))
        if self._clients >= self._limits.connections:
            raise SqlError("53300", f"too many clients: {self._limits.connections} connections are open", hint="use a connection pool")

    def _cancel(self, startup: wire.Startup) -> None:
        running = self._running.get(startup.process_id)
        if running is not None and running.secret == startup.secret:
            running.conversation.cancel()

    def _database(self, startup: wire.Startup) -> Database:
        name = startup.parameters.get("database") or startup.parameters.get("user") or ""
        database = self._databases.get(name)
        if database is None and self._databases.starting:
            raise SqlError("57P03", f'the node is starting and has not found database "{name}" yet', hint="Use another node, or try again.")
        if database is None:
            existing = ", ".join(self._databases.names()) or "none yet; create one with 'triplicate database create'"
            raise SqlError("3D000", f'database "{name}" does not exist', hint=f"databases here: {existing}")
        return database

    async def _converse(self, process_id: int, stream: MessageStream, startup: wire.Startup) -> None:
        user = startup.parameters.get("user")
        if not user:
            raise SqlError("28000", "no PostgreSQL user name was given in the first packet")
        settings = SessionSettings(user, startup.parameters)
        database = self._database(startup)
        with self._counted(database.name):
            await self._converse_with(process_id, stream, settings, database)

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        """Count a connection to a database while it lasts.

        Raises:
            SqlError: 53300 if the database has reached its limit.
        """
        limit = self._limits.database_connections
        if limit and self._database_connections[name] >= limit:
            raise SqlError("53300", f'too many connections for database "{name}": {limit} are open', hint="use a connection pool")
        self._database_connections[name] += 1
        try:
            yield
        finally:
            self._database_connections[name] -= 1
            if not self._database_connections[name]:
                del self._database_connections[name]

    def plans_of(self, database: Database) -> PlanCache:
        """The plans that all connections to a database share. They are discarded when its local copy is replaced."""
        plans = self._plans.get(database)
        if plans is None or plans.generation != database.generation:
            plans = self._plans[database] = _DatabasePlans(database.generation, PlanCache())
        return plans.cache

    async def _converse_with(self, process_id: int, stream: MessageStream, settings: SessionSettings, database: Database) -> None:
        session = await database.session(settings.get("application_name", is_leader=False))
        secret = self._secrets.randrange(1, 2**31)
        conversation = Conversation(ConnectionState(stream, database, session, settings, self._host.clock, self.plans_of(database)))
        self._running[process_id] = _RunningConversation(secret, conversation)
        end = partial(_end, conversation)
        session.ended.add_done_callback(end)
        stream.on_lost = conversation.cancel
        try:
            stream.write(wire.AUTHENTICATION_OK)
            conversation.greet(process_id, secret)
            stream.flush_nowait()
            await conversation.run()
        finally:
            stream.on_lost = None
            session.ended.remove_done_callback(end)
            await session.close()


def _stopping() -> SqlError:
    return SqlError("57P01", "terminating connection because the server is shutting down", hint="connect again, to any node")


def _interrupted() -> SqlError:
    return SqlError(
        "08007",
        "terminating connection because the server is shutting down; the outcome of the current statement is unknown",
        hint="Connect again, to any node, and ask pg_xact_status(id), or repeat it under the same triplicate.request_id.",
    )


def _end(conversation: Conversation, ended: asyncio.Future[SqlError]) -> None:
    """The engine has ended a session."""
    if has_result(ended):
        _LOG.info("a session was ended: %s", ended.result())
        conversation.end(ended.result())
