"""One ZooKeeper session on kazoo, connected to the event loop.

kazoo has three threads: for the connection, for answers, and for events. Only the few lines here run on them; they pass answers and events
to the loop. Only this module and `zookeeper_tree` import kazoo, and only if a URI needs it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL, Auth
from kazoo.protocol.states import EventType, KazooState, KeeperState, WatchedEvent
from kazoo.retry import KazooRetry
from kazoo.security import ACL

from triplicate.errors import (
    AccessRefused,
    ArgumentError,
    BadVersion,
    ConfigError,
    ConnectionLost,
    MetadataError,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    TriplicateError,
)
from triplicate.metadata.core.server_patience import ServerPatience
from triplicate.metadata.drivers.metadata_access import MetadataAccess
from triplicate.metadata.drivers.zookeeper_acl import acl_of, digest_credentials, sasl_options
from triplicate.runtime import fail, resolve

CONNECTED, SUSPENDED, LOST = "connected", "suspended", "lost"
_STATES = {KazooState.CONNECTED: CONNECTED, KazooState.SUSPENDED: SUSPENDED, KazooState.LOST: LOST}

RECONNECT_FIRST_S = 0.05
RECONNECT_LONGEST_S = 1.0
"""kazoo's default is up to an hour between attempts."""
RECONNECT_GROWTH, RECONNECT_JITTER = 1.1, 0.2
"""Pauses grow by a tenth, so that a pause is about a tenth of the time for which no server has served. ZooKeeper elects a leader in half a
second or in two, and a doubled pause may be as long as that.
"""

FIRST_WAIT_SHARE = 1 / 32
"""A server has this part of the session timeout to answer a first new connection; see `ServerPatience` for the next."""

SILENCE_SHARE = 1 / 8
"""A connected server may leave requests without any answer for this part of the session timeout; for twice as long the next time."""

CALM_ANSWERS = 100
"""After this number of answers a server counts as quick again: the first limit of its silences holds."""

STOP_ERRORS = (exceptions.KazooException, OSError)

_LOGGER = logging.getLogger("triplicate.metadata.zookeeper")
# Traces report connection changes. Without a handler, kazoo's warnings would appear on the standard error of every command.
_LOGGER.addHandler(logging.NullHandler())


def _without_secrets(record: logging.LogRecord) -> bool:
    """Whether a record may be logged. kazoo logs each request, and below DEBUG the password of the session."""
    arguments = record.args if isinstance(record.args, tuple) else ()
    return record.levelno >= logging.DEBUG and not any(isinstance(each, Auth | SASL) for each in arguments)


_LOGGER.addFilter(_without_secrets)

SASL_DROPS_MAX = 3
"""Old servers end the connection of a wrong password instead of answering. This number in a row counts as a refusal."""

ServerAddress = tuple[str, str, int]
"""Name, IP address and port of a server."""

Connect = Callable[[tuple[str, int], str, float], "_ServerSocket"]
"""Makes a connection to an address of a host within a limit in seconds."""


class _OneSession(SequentialThreadingHandler):  # type: ignore[misc]
    """Makes no connection after the session ended, and abandons a connection that a server accepts but does not serve.

    kazoo would open another session by itself and send the old session's requests on it. A caller that needs another session opens another
    tree.

    kazoo also waits for the answer to its first request for the whole session timeout. A starting server accepts connections before it
    serves them, and a hanging server accepts them for ever. The session would expire before the next attempt. And kazoo notices after two
    thirds of a session that a server has begun to hang, while all requests wait: a connection with requests is therefore abandoned as well.

    Args:
        session_s: the session timeout in seconds. `FIRST_WAIT_SHARE` is the first wait for a connection and for each read of its first
            answer. Only waits in vain lengthen it: after the few seconds in which a server that starts refuses connections, one wait
            would otherwise last as long as the session. `SILENCE_SHARE` is the first limit of a silence while requests wait, which
            doubles with each connection that is abandoned for it.
        connect: makes a connection. On the thread that connects.
        now: seconds of a monotonic clock.
        has_requests: whether requests wait for answers.
    """

    over = False

    def __init__(
        self, session_s: float, connect: Connect, now: Callable[[], float], has_requests: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__()
        self._now = now
        self.has_requests = has_requests
        self._heard_at = now()
        """When the server has last sent anything, or no request waited."""
        self._silence_s = self._first_silence_s = session_s * SILENCE_SHARE
        """The limit of a silence while requests wait."""
        self._answers = 0
        """Answers since the limit was lengthened."""
        self._connect = connect
        self._patience = ServerPatience[tuple[str, int]](session_s * FIRST_WAIT_SHARE, session_s)
        self._server = "", 0
        """The address of the last connection."""
        self._connected = False

    def changed(self, state: str) -> None:
        """Called on the thread that connects, before it does anything else."""
        self._connected = state == KazooState.CONNECTED
        self._heard_at = self._now()
        if self._connected:
            self._patience.answered(self._server)
        elif state == KazooState.LOST:
            self.over = True

    def create_connection(self, address: tuple[str, int], *, timeout: float, hostname: str = "", **_: Any) -> Any:
        if self.over:
            raise ConnectionAbortedError("the session is over")
        self._server = address
        try:
            return self._connect(address, hostname or address[0], min(timeout, self._wait_s()))
        except (TimeoutError, self.timeout_exception):
            self._patience.waited_in_vain(address, self._now())
            raise

    def to_try(self, servers: Sequence[ServerAddress]) -> list[ServerAddress]:
        """The servers to try in this turn."""
        tried = set(self._patience.to_try([server[1:] for server in servers], self._now()))
        return [server for server in servers if server[1:] in tried]

    def _wait_s(self) -> float:
        return self._patience.limit_s(self._server, self._now())

    def select(self, *args: Any) -> Any:
        *sockets, timeout = args
        pending = [each for each in sockets[0] if isinstance(each, _ServerSocket) and each.pending()]
        if pending:
            # The rest of a TLS record, of which the kernel knows nothing.
            self._heard_at = self._now()
            read, written, others = super().select(*sockets, 0)
            return [*pending, *(each for each in read if each not in pending)], written, others
        if self._connected:
            return self._select_connected(sockets, timeout)
        ready = super().select(*sockets, min(timeout, self._wait_s()))
        if not any(ready):
            self._patience.waited_in_vain(self._server, self._now())
        return ready

    def _select_connected(self, sockets: list[Any], timeout: float) -> Any:
        """Raises ConnectionDropped: requests wait, and the server has been silent for the limit."""
        is_waiting = self.has_requests()
        ready = super().select(*sockets, min(timeout, self._silence_s) if is_waiting else timeout)
        now, is_heard = self._now(), any(isinstance(each, _ServerSocket) for each in ready[0])
        if is_heard or not is_waiting:
            self._heard_at = now
            self._answers += is_heard
            if self._answers >= CALM_ANSWERS:
                self._silence_s = self._first_silence_s
        elif now - self._heard_at >= self._silence_s:
            silent_s, self._heard_at, self._silence_s, self._answers = now - self._heard_at, now, 2 * self._silence_s, 0
            self._patience.waited_in_vain(self._server, now)
            raise exceptions.ConnectionDropped(f"the server answers nothing for {silent_s:.1f} s")
        return ready


class _ServerSocket:
    """A connected socket that reports why a server ended the connection. kazoo would only say that it is broken."""

    def __init__(self, connected: socket.socket | ssl.SSLSocket, on_end: Callable[[OSError | None], None]) -> None:
        self._socket = connected
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def pending(self) -> int:
        """Bytes that are decrypted and not yet read."""
        return self._socket.pending() if isinstance(self._socket, ssl.SSLSocket) else 0

    def recv(self, size: int) -> bytes:
        try:
            data = self._socket.recv(size)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except OSError as error:
            self._on_end(error)
            raise
        if not data:
            self._on_end(None)
        return data


def own_server(servers: Sequence[ServerAddress], is_own: Callable[[str], bool]) -> ServerAddress | None:
    """The one server on this machine. None where several are, or none.

    Args:
        is_own: whether an IP address is one of this machine's.
    """
    own = [server for server in servers if is_own(server[1])]
    return own[0] if len(own) == 1 else None


def near_first(servers: Sequence[ServerAddress], own: ServerAddress | None) -> list[ServerAddress]:
    """The servers with the one on this machine first."""
    return list(servers) if own is None else [own, *(server for server in servers if server != own)]


def is_own_address(address: str) -> bool:
    """Whether an IP address is one of this machine's."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((address, 0))
        except OSError:
            return False
    return True


class _NearFirst(ConnectionHandler):  # type: ignore[misc]
    """Connects to the server on its own machine, if there is one, and to the others in a random order. Servers that were silent are passed
    over for a while.

    A machine that hangs or is cut off then takes only the connections of its own processes with it. Those of other machines would be
    noticed after two thirds of a session, and nobody there could replace a leader meanwhile.
    """

    own: ServerAddress | None = None
    """The server on this machine; known since the first attempt to connect."""

    def _expand_client_hosts(self) -> list[ServerAddress]:
        servers = super()._expand_client_hosts()
        self.own = own_server(servers, is_own_address) if len(servers) > 1 else None
        return self._session.to_try(near_first(servers, self.own))

    @property
    def _session(self) -> _OneSession:
        assert isinstance(self.handler, _OneSession), "each client has its own"
        return self.handler


class _Authenticating(_NearFirst):
    """Every end of an authentication is a refusal, which ends the session, or a broken connection, after which kazoo connects again.

    kazoo takes a broken connection for a refusal, and lets its thread die of an answer that it does not know.
    """

    drops = 0

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        try:
            super()._authenticate_with_sasl(host, timeout)
        except exceptions.AuthFailedError as error:
            if not isinstance(error.__cause__, exceptions.ConnectionDropped):
                raise
            self.drops += 1
            if self.drops >= SASL_DROPS_MAX:
                raise
            raise exceptions.ConnectionDropped("the connection broke during SASL") from error
        except (exceptions.SessionClosedRequireSaslError, exceptions.SASLException, RuntimeError) as error:
            raise exceptions.AuthFailedError(type(error).__name__) from error
        self.drops = 0


def reconnect_pauses() -> KazooRetry:
    """The pauses between two turns through the servers, without an end."""
    return KazooRetry(-1, RECONNECT_FIRST_S, RECONNECT_GROWTH, RECONNECT_JITTER, RECONNECT_LONGEST_S)


class ZooKeeperSession:
    """A kazoo client with exactly one session. Used on the loop, except for `stop`, which blocks and is for a worker.

    Each connection authenticates before its first request, with the password that the file holds then, and with the TLS identity of then.
    A refusal ends the session: the state is LOST, and `refusal` says why.

    Args:
        servers: ``host:port,host:port``.
        access: see `MetadataAccess`.
        password_number: which of its passwords SASL uses, from 0.
        on_state: called on the loop with CONNECTED, SUSPENDED or LOST, and the session's id (0 unless connected).
        on_event: called on the loop with the path of a watch that fired.
    """

    def __init__(
        self,
        servers: str,
        timeout_s: float,
        on_state: Callable[[str, int], None],
        on_event: Callable[[str], None],
        access: MetadataAccess,
        password_number: int = 0,
    ) -> None:
        self.refusal = ""
        """Why the session ended; empty if it ended otherwise. Set before the state is reported."""
        self.refused_password = False
        self.problem = ""
        """The end of the last connection that did not come about, for errors."""
        self._loop = asyncio.get_running_loop()
        self._on_state = on_state
        self._on_event = on_event
        self._access = access
        self._password_number = password_number
        self._timeout_s = timeout_s
        self._untrusted: set[tuple[str, int]] = set()
        """Servers with which TLS did not come about because of a certificate, before the first connection."""
        self._was_connected = False
        self._handler = _OneSession(timeout_s, self._connect, self._loop.time)
        retry = reconnect_pauses()
        self._client = KazooClient(
            hosts=servers,
            timeout=timeout_s,
            handler=self._handler,
            connection_retry=retry,
            logger=_LOGGER,
            # Only logged: the connections are made here.
            use_ssl=access.tls is not None,
        )
        by_sasl = bool(access.settings.user) and access.settings.mechanism == "sasl"
        connection = _Authenticating if by_sasl else _NearFirst
        self._client._connection = connection(self._client, retry.copy(), logger=_LOGGER, sasl_options={} if by_sasl else None)
        self._handler.has_requests = lambda: bool(self._client._pending)
        self._client.add_listener(self._state_changed)

    @property
    def last_zxid(self) -> int:
        """The zxid of the last change that the server had applied at its last answer."""
        return int(self._client.last_zxid)

    @property
    def own_server(self) -> ServerAddress | None:
        """The one of several servers that runs on this machine."""
        own: ServerAddress | None = self._client._connection.own
        return own

    def start(self) -> None:
        """Begin to connect. `on_state` is called after the connection is made."""
        self._client.start_async()

    def stop(self) -> None:
        """End the session and the threads. Blocks for at most about twice the session timeout.

        Raises:
            One of STOP_ERRORS: the server was not reached; it expires the session after its timeout.
        """
        self._client.stop()
        self._client.close()

    def submit(self, request: Callable[[KazooClient], Any]) -> asyncio.Future[Any]:
        """Queue a request (a call of one of kazoo's ``…_async`` methods). Requests are sent in the order of the calls.

        The future raises kazoo's errors; `translated` converts them.
        """
        answer: asyncio.Future[Any] = self._loop.create_future()
        request(self._client).rawlink(partial(self._answered, answer))
        return answer

    @property
    def acl(self) -> list[ACL] | None:
        """The ACL of every node that this session creates; None for open nodes. Known since the first connection."""
        acl: list[ACL] | None = self._client.default_acl
        return acl

    # On kazoo's threads: connections.

    def _connect(self, address: tuple[str, int], host: str, limit_s: float) -> _ServerSocket:
        if not self._was_connected and self._untrusted.issuperset(self._client.hosts):
            raise self._refused(self.problem)
        try:
            self._renew_credentials()
        except ConfigError as error:
            raise self._refused(str(error)) from error
        where = (host, address[1])
        plain = socket.create_connection(address, limit_s)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected = plain if self._access.tls is None else self._context(limit_s).wrap_socket(plain, server_hostname=host)
        except OSError as error:
            plain.close()
            self._connection_ended(where, error)
            raise
        return _ServerSocket(connected, partial(self._connection_ended, where))

    def _context(self, limit_s: float) -> ssl.SSLContext:
        """The present context for TLS, from the loop, where the identity reads renewed files."""
        identity = self._access.tls
        assert identity is not None

        async def present() -> ssl.SSLContext:
            return identity.client_context()

        asking = present()
        try:
            answer = asyncio.run_coroutine_threadsafe(asking, self._loop)
        except RuntimeError:
            asking.close()
            raise ConnectionAbortedError("the event loop of this session is closed") from None
        try:
            return answer.result(limit_s)
        finally:
            answer.cancel()

    def _renew_credentials(self) -> None:
        """Before each connection: kazoo sends these before any other request.

        Raises:
            ConfigError: the password cannot be read.
        """
        passwords, settings = self._access.passwords(), self._access.settings
        if not passwords:
            return
        chosen = passwords[min(self._password_number, len(passwords) - 1)]
        if settings.mechanism == "sasl":
            self._client._connection.sasl_options = sasl_options(settings.user, chosen)
        else:
            self._client.auth_data = digest_credentials(settings.user, passwords)
        # kazoo uses it for every node of every request that names none.
        self._client.default_acl = acl_of(self._access, passwords[0])

    def _connection_ended(self, where: tuple[str, int], error: OSError | None) -> None:
        server = f"{where[0]}:{where[1]}"
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            self.problem = _tls_problem(server, error)
            self._untrusted.add(where)
        elif not self._was_connected and not isinstance(error, ConnectionRefusedError | TimeoutError):
            cure = "does it serve TLS only (metadata.tls)?" if self._access.tls is None else "is this its secureClientPort?"
            self.problem = f"{server} ends new connections without an answer; {cure}"

    def _refused(self, text: str) -> exceptions.AuthFailedError:
        """Note why the session ends; returns the error that ends it in kazoo."""
        self.refusal = text
        self._call_on_loop(self._on_state, LOST, 0)
        return exceptions.AuthFailedError()

    # On kazoo's threads: answers and events. kazoo keeps watch functions in sets by path, and bound methods compare equal, so repeated
    # watches add nothing.

    def node_fired(self, event: WatchedEvent) -> None:
        """The watch function of requests about a node."""
        # An event without a path reports that the connection and its watches are lost; the state reports that, too.
        if event.path is not None:
            self._call_on_loop(self._on_event, event.path)

    def children_fired(self, event: WatchedEvent) -> None:
        """The watch function of requests about the children of a node."""
        # A deletion fires both watches of a node; one is enough.
        if event.path is not None and event.type != EventType.DELETED:
            self._call_on_loop(self._on_event, event.path)

    def _state_changed(self, state: str) -> None:
        self._handler.changed(state)
        if state == KazooState.CONNECTED:
            self._was_connected = True
            self.problem = ""
        elif self._client.client_state == KeeperState.AUTH_FAILED and not self.refusal:
            self.refused_password = True
            self.refusal = f"ZooKeeper refuses {self._access.user_text}"
        known = self._client.client_id if state == KazooState.CONNECTED else None
        self._call_on_loop(self._on_state, _STATES[state], known[0] if known else 0)

    def _answered(self, answer: asyncio.Future[Any], result: Any) -> None:
        try:
            value = result.get_nowait()
        except (exceptions.KazooException, OSError, RuntimeError, ValueError) as error:
            self._call_on_loop(fail, answer, error)
        else:
            self._call_on_loop(resolve, answer, value)

    def _call_on_loop(self, function: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            return  # The loop is closed: there are no waiters.


def _tls_problem(server: str, error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of {server} is not accepted: {error.verify_message} (security.ca_file, security.verify_host)"
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if "alert" in reason:
        return f"{server} does not accept the certificate of this process: {reason} (security.certificate_file)"
    return f"{server} does not speak TLS: {reason}; name its secureClientPort, or turn metadata.tls off"


def translated(error: Exception, path: str, user: str) -> TriplicateError | None:
    """Triplicate's error for a kazoo error about `path`, or None for an error that is not ZooKeeper's.

    Args:
        user: of the session, for errors.
    """
    match error:
        case exceptions.NoNodeError():
            return NoNode(f"{path}: no such node")
        case exceptions.NodeExistsError():
            return NodeExists(f"{path}: exists already")
        case exceptions.BadVersionError():
            return BadVersion(f"{path}: its version is not the expected one")
        case exceptions.NotEmptyError():
            return NotEmpty(f"{path}: has children")
        case exceptions.NoChildrenForEphemeralsError():
            return MetadataError(f"{path}: its parent is ephemeral and can have no children")
        case exceptions.SessionExpiredError():
            # Also kazoo's ConnectionClosedError. The server refused the request, or kazoo did not send it: nothing was applied.
            return SessionExpired(f"{path}: the session is over")
        case exceptions.ConnectionLoss() | exceptions.OperationTimeoutError() | exceptions.SessionMovedError():
            return ConnectionLost(f"{path}: the connection to ZooKeeper broke before the answer came")
        case exceptions.BadArgumentsError():
            return ArgumentError(f"{path}: not a path that ZooKeeper accepts")
        case exceptions.NoAuthError():
            return AccessRefused(f"{path}: its ACL in ZooKeeper does not allow this to {user}")
        case exceptions.InvalidACLError():
            return AccessRefused(f"{path}: ZooKeeper does not take the ACL of {user}; are its authentication providers configured?")
        case exceptions.AuthFailedError():
            # The connection was refused before this request was sent.
            return SessionExpired(f"{path}: the session is over: ZooKeeper refuses {user}")
        case exceptions.SessionClosedRequireSaslError():
            return AccessRefused(f"ZooKeeper serves authenticated sessions only, and refuses {user}")
        case exceptions.KazooException():
            return MetadataError(f"{path}: ZooKeeper answers {type(error).__name__} {error}")
    return None


def failed_operation(results: list[Any]) -> tuple[int, Exception] | None:
    """The index and the error of the operation of a transaction that failed. The others are only reported as not done."""
    for index, result in enumerate(results):
        if isinstance(result, Exception) and not isinstance(result, exceptions.RolledBackError | exceptions.RuntimeInconsistency):
            return index, result
    return None
