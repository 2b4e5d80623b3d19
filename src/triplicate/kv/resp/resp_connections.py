"""The connections of clients to the key-value stores of a node: TLS, limits, conversations."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.kv.core.store_interface import KeyValueStores
from triplicate.kv.resp.client_stream import ClientStream
from triplicate.kv.resp.command_handlers import CommandHandlers
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.replies import ErrorReply
from triplicate.kv.resp.core.resp_requests import BEFORE_LOGIN, WordLimits
from triplicate.kv.resp.core.server_info import ClientFacts
from triplicate.kv.resp.keyspace_notifications import Notifications
from triplicate.kv.resp.node_queries import NodeFacts
from triplicate.kv.resp.resp_conversation import RespConversation
from triplicate.kv.resp.resp_logins import RespLogins
from triplicate.kv.resp.resp_security import RespRefusal, RespSecurity
from triplicate.kv.resp.store_session import StoreSession
from triplicate.runtime import Host, Listener, Metrics, TaskScope, Timer, sleep, start_eagerly
from triplicate.security import HANDSHAKE_TIMEOUT_S, ClientLimits, FailedLogins, HandshakeTurns, TooManyHandshakes, UsersFile

USERS_CHECK_S = 1.0
"""Interval at which the users of open connections are checked, in seconds."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class RespLimits(ClientLimits):
    """Limits of the server."""

    arguments: int = 65_536
    """Words of one request."""
    request_bytes: int = 16 * 1024 * 1024
    """Of one request."""


@dataclass(slots=True)
class _Connection:
    """One open connection."""

    number: int
    stream: ClientStream
    session: StoreSession
    since_s: float
    notifications: Notifications | None = None
    conversation: RespConversation | None = None
    """Once it has begun."""
    is_admitted: bool = False
    timer: Timer | None = None
    """Of the limit of time for a login."""

    def facts(self, now_s: float) -> ClientFacts:
        session, notified = self.session, self.notifications
        return ClientFacts(
            self.number,
            self.stream.peer,
            session.name.decode(),
            session.user,
            session.store_name,
            self.stream.writer.version,
            "".join(chr(each) if 33 <= each < 127 else "_" for each in session.library),
            0 if notified is None else notified.count,
            round(now_s - self.since_s),
        )


class RespConnections:
    """All connections of clients to a node's stores, with the tasks that serve them.

    Args:
        stores: clients choose one of them by AUTH or HELLO.
        default_store: of clients that choose none; empty for the only one.
    """

    def __init__(
        self,
        host: Host,
        stores: KeyValueStores,
        default_store: str,
        limits: RespLimits,
        security: RespSecurity,
        metrics: Metrics | None,
    ) -> None:
        self._host = host
        self._limits = limits
        self._security = security
        self._scope = TaskScope("kv")
        self._connections: dict[int, _Connection] = {}
        self._admitted = 0
        self._half_open = limits.half_open_connections()
        self._handshakes = HandshakeTurns(host.clock, limits.handshakes_per_s)
        self._logins = RespLogins(host, stores, default_store, security, FailedLogins(limits.failed_login_s, limits.failed_logins), metrics)
        self._node = NodeFacts(host, self._client_facts)
        self._next_number = 1
        self._listener: Listener | None = None
        if security.users is not None:
            self._scope.spawn(self._end_removed(security.users), name="users")

    async def listen(self, address: tuple[str, int]) -> None:
        """Serve clients on a host and port until `aclose`; port 0 selects a free one. Raises OSError: it is in use, or is invalid."""
        try:
            self._listener = await self._host.network.listen(self.new_stream, *address)
        except BaseException:
            await self.aclose()
            raise

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, once it listens."""
        assert self._listener is not None, "it listens"
        return self._listener.address

    @property
    def count(self) -> int:
        return len(self._connections)

    def new_stream(self) -> ClientStream:
        """Create the stream of a new connection. It is served as soon as the connection is open."""
        return ClientStream(BEFORE_LOGIN, self._limits.client_stall_s, self._host.clock, self._opened)

    async def aclose(self) -> None:
        """Stop listening, and close every connection. A change that runs may have happened or not. Idempotent."""
        if self._listener is not None:
            await self._listener.close()
        await self._scope.aclose()
        await self._logins.close()

    async def _end_removed(self, users: UsersFile) -> None:
        """End the connections whose users were removed or have other passwords, also of clients that send nothing."""
        seen = users.generation
        while True:
            await sleep(self._host.clock, USERS_CHECK_S)
            users.refresh()
            if users.generation == seen:
                continue
            seen = users.generation
            for connection in list(self._connections.values()):
                if connection.conversation is not None and not self._logins.is_still_user(connection.session):
                    connection.conversation.end_of_user()

    def _client_facts(self) -> Sequence[ClientFacts]:
        now_s = self._host.clock.monotonic()
        return [each.facts(now_s) for each in self._connections.values() if each.is_admitted]

    def _opened(self, stream: ClientStream) -> None:
        number = self._next_number
        self._next_number += 1
        connection = self._connections[number] = _Connection(number, stream, StoreSession(), self._host.clock.monotonic())
        self._begin_login(connection, connection.since_s)
        # At once and not in a task of its own: bytes of a TLS handshake that arrive before would be lost.
        start_eagerly(self._serve(connection), lambda work: self._scope.spawn(work, name="client"))

    async def _serve(self, connection: _Connection) -> None:
        stream, number = connection.stream, connection.number
        try:
            if not await self._protect(connection):
                return
            limits = WordLimits(self._limits.arguments, self._limits.request_bytes)
            await RespConversation(
                stream,
                connection.session,
                limits,
                lambda conversation, scope: self._handlers(connection, conversation, scope),
                lambda: self._admit(connection),
                lambda: self._dismiss(connection),
            ).run()
        except OSError as error:
            if isinstance(error, ssl.SSLError) or not isinstance(error, ConnectionError):
                self._logins.refuse(RespRefusal.TLS, stream, str(error))
        except Exception as error:  # noqa: BLE001  a defect met by one client must not end the others; it is logged with its trace
            _LOG.exception("serving a client of a key-value store failed")
            stream.writer.write(ErrorReply(f"ERR internal error: {type(error).__name__}; the last change may have happened or not"))
        finally:
            if connection.timer is not None:
                connection.timer.cancel()
            self._connections.pop(number, None)
            self._half_open.remove(number)
            if connection.is_admitted:
                self._admitted -= 1
            stream.close()

    async def _protect(self, connection: _Connection) -> bool:
        """Begin with the TLS handshake, if clients need one. False if the connection has ended. Raises OSError: the handshake failed."""
        identity, stream, clock = self._security.identity, connection.stream, self._host.clock
        if identity is None:
            return True
        stream.hold()
        deadline_s = connection.since_s + self._limits.login_s
        try:
            if not await self._handshakes.wait(stream, deadline_s):
                return False
        except TooManyHandshakes:
            self._logins.refuse(RespRefusal.HANDSHAKES, stream, "too many TLS handshakes wait at this node")
            stream.abort()
            return False
        limit_s = min(HANDSHAKE_TIMEOUT_S, max(deadline_s - clock.monotonic(), 0.001))
        await stream.protect(self._host.network, identity.server_context(self._security.certificates), limit_s)
        return True

    def _handlers(self, connection: _Connection, conversation: RespConversation, scope: TaskScope) -> CommandHandlers:
        session = connection.session

        def may_read() -> bool:
            return self._logins.is_still_user(session) and session.rights.may_read

        notifications = Notifications(connection.stream, scope, may_read, conversation.end)
        connection.notifications, connection.conversation = notifications, conversation
        return CommandHandlers(
            self._node,
            connection.number,
            connection.stream,
            session,
            self._logins,
            notifications,
            conversation.runner,
            lambda: connection.facts(self._host.clock.monotonic()),
        )

    def _admit(self, connection: _Connection) -> None:
        """Give a connection a place among the admitted ones, which it keeps until its end. Raises CommandError: there is none."""
        if connection.is_admitted:
            return
        if self._admitted >= self._limits.connections:
            self._logins.refuse(RespRefusal.CONNECTIONS, connection.stream, "too many connections")
            raise CommandError(f"ERR max number of clients reached: {self._limits.connections} connections are open")
        connection.is_admitted = True
        self._admitted += 1
        self._half_open.remove(connection.number)

    def _dismiss(self, connection: _Connection) -> None:
        """A RESET has ended the login: the connection gives up its place, and has the time of a new one to log in again."""
        if connection.is_admitted:
            connection.is_admitted = False
            self._admitted -= 1
            self._begin_login(connection, self._host.clock.monotonic())

    def _begin_login(self, connection: _Connection, now_s: float) -> None:
        """The connection is half open from now on."""
        if connection.timer is not None:
            connection.timer.cancel()
        connection.timer = self._host.clock.call_at(now_s + self._limits.login_s, self._end_late, connection)
        crowded_out = self._half_open.add(connection.number, connection.stream.address)
        if crowded_out is not None:
            self._logins.count(RespRefusal.HALF_OPEN)
            self._connections[crowded_out].stream.abort()

    def _end_late(self, connection: _Connection) -> None:
        if not connection.is_admitted:
            self._logins.count(RespRefusal.TIME)
            connection.stream.abort()
