"""The connections of PostgreSQL clients to a database node: start-up, conversations, limits."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self
from weakref import WeakKeyDictionary

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import ProtocolError, SqlError
from triplicate.runtime import Host, Metrics, TaskScope, has_result
from triplicate.security import ClientLimits, FailedLogins
from triplicate.sql.core.audit import ConnectedClient
from triplicate.sql.core.interface import Database, Databases
from triplicate.sql.core.role_login import NO_LIMIT
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.client_startup import ClientStartup
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.conversation import Conversation
from triplicate.sql.pg.protocol.logins import Attempt, Login, Logins, too_many_clients, too_many_of_database, too_many_of_role
from triplicate.sql.pg.protocol.message_stream import MessageStream
from triplicate.sql.pg.protocol.plans import PlanCache
from triplicate.sql.pg.protocol.role_proof import SecretNumbers
from triplicate.sql.pg.protocol.server_security import RefusalReason, ServerSecurity

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerLimits(ClientLimits):
    """Limits of the server."""

    database_connections: int = 0
    """Connections to one database; 0 for no limit other than `connections`."""
    message_bytes: int = 16 * 1024 * 1024

    @classmethod
    def of_settings(cls, settings: NodeSettings, **more: int) -> Self:
        return super().of_settings(settings, database_connections=settings.database_connections, **more)


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
        security: what is demanded of clients.
    """

    def __init__(
        self, host: Host, databases: Databases, limits: ServerLimits, security: ServerSecurity, metrics: Metrics | None = None
    ) -> None:
        self._host = host
        self._limits = limits
        self._scope = TaskScope("postgres")
        self._running: dict[int, _RunningConversation] = {}
        """Maps the process id of a cancel request to the conversation."""
        self._connections: Counter[str | tuple[str, str]] = Counter()
        """Accepted connections by database, and by database and role."""
        self._clients = 0
        """Accepted connections."""
        self._half_open = limits.half_open_connections()
        failures = FailedLogins(limits.failed_login_s, limits.failed_logins)
        startup = ClientStartup(host, security, self._cancel, limits.handshakes_per_s)
        self._logins = Logins(host, databases, security, startup, failures, metrics)
        self._streams: dict[int, MessageStream] = {}
        self._next_id = 1
        self._plans: WeakKeyDictionary[Database, _DatabasePlans] = WeakKeyDictionary()
        self._secrets = SecretNumbers(host, "postgres.secret")

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
        process_id = self._next_id
        self._next_id = process_id % 0x7FFFFFFF + 1
        self._streams[process_id] = stream
        crowded_out = self._half_open.add(process_id, stream.address)
        if crowded_out is not None:
            self._logins.count(RefusalReason.HALF_OPEN)
            self._streams[crowded_out].abort()
        self._scope.spawn(self._serve(process_id, stream), name="client")

    async def _serve(self, process_id: int, stream: MessageStream) -> None:
        try:
            with ExitStack() as held:
                login = await self._log_in(process_id, stream, held)
                if login is not None:
                    await self._converse(process_id, stream, login)
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
            self._half_open.remove(process_id)
            stream.close()

    async def _log_in(self, process_id: int, stream: MessageStream, held: ExitStack) -> Login | None:
        """Let the client log in, and give it a place among the accepted ones, which `held` gives back.

        Raises:
            SqlError, ProtocolError: it is refused.
        """
        clock = self._host.clock
        deadline_s = clock.monotonic() + self._limits.login_s
        timer = clock.call_at(deadline_s, self._end_late, stream)
        attempt = Attempt(ConnectedClient(address=stream.address))
        try:
            login = await self._logins.log_in(stream, attempt, deadline_s)
            if login is None:
                return None
            held.enter_context(self._place(login))
        except OSError as error:
            self._logins.refuse(attempt, error)  # The TLS handshake failed, and no client is left to answer.
            return None
        except (SqlError, ProtocolError) as error:
            self._logins.refuse(attempt, error)
            raise
        finally:
            timer.cancel()
        self._half_open.remove(process_id)
        self._logins.accept(login)
        return login

    def _end_late(self, stream: MessageStream) -> None:
        self._logins.count(RefusalReason.TIME)
        stream.abort()

    def _cancel(self, startup: wire.Startup) -> None:
        running = self._running.get(startup.process_id)
        if running is not None and running.secret == startup.secret:
            running.conversation.cancel()

    @contextmanager
    def _place(self, login: Login) -> Iterator[None]:
        """Count the connection of a client while it lasts.

        Raises:
            ClientRefused: 53300 if the node, the database or the role has reached its limit.
        """
        name, role = login.database.name, (login.database.name, login.client.role)
        limits, counts = self._limits, self._connections
        if self._clients >= limits.connections:
            raise too_many_clients(limits.connections)
        if limits.database_connections and counts[name] >= limits.database_connections:
            raise too_many_of_database(name, limits.database_connections)
        if login.role_limit != NO_LIMIT and counts[role] >= login.role_limit:
            raise too_many_of_role(login.client.role)
        self._clients += 1
        counts.update((name, role))
        try:
            yield
        finally:
            self._clients -= 1
            for counted in (name, role):
                counts[counted] -= 1
                if not counts[counted]:
                    del counts[counted]

    def plans_of(self, database: Database) -> PlanCache:
        """The plans that all connections to a database share. They are discarded when its local copy is replaced."""
        plans = self._plans.get(database)
        if plans is None or plans.generation != database.generation:
            plans = self._plans[database] = _DatabasePlans(database.generation, PlanCache())
        return plans.cache

    async def _converse(self, process_id: int, stream: MessageStream, login: Login) -> None:
        database, settings = login.database, login.settings
        session = await database.session(settings.get("application_name", is_leader=False), login.client)
        secret = int.from_bytes(self._secrets.draw(4), "big") >> 1 or 1
        plans = self.plans_of(database)
        state = ConnectionState(stream, database, session, settings, self._host.clock, plans, client=login.client)
        conversation = Conversation(state)
        state.record.process_id = process_id
        database.activity.clients[process_id] = state.record
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
            database.activity.forget_client(state.record)
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
