"""One ZooKeeper session on kazoo, connected to the event loop.

kazoo has three threads: for the connection, for answers, and for events. Only the few lines here run on them; they pass answers and events
to the loop. Only this module and `zookeeper_tree` import kazoo, and only if a URI needs it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import EventType, KazooState, WatchedEvent
from kazoo.retry import KazooRetry

from triplicate.errors import (
    ArgumentError,
    BadVersion,
    ConnectionLost,
    MetadataError,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    TriplicateError,
)
from triplicate.runtime import fail, resolve

CONNECTED, SUSPENDED, LOST = "connected", "suspended", "lost"
_STATES = {KazooState.CONNECTED: CONNECTED, KazooState.SUSPENDED: SUSPENDED, KazooState.LOST: LOST}

RECONNECT_FIRST_S = 0.05
RECONNECT_LONGEST_S = 1.0
"""kazoo's default is up to an hour between attempts."""

ANSWER_SHARE = 1 / 8
"""A server has this part of the session timeout to answer a first new connection; after a wait in vain twice as long for the next."""

STOP_ERRORS = (exceptions.KazooException, OSError)

_LOGGER = logging.getLogger("triplicate.metadata.zookeeper")
# Traces report connection changes. Without a handler, kazoo's warnings would appear on the standard error of every command.
_LOGGER.addHandler(logging.NullHandler())


class _OneSession(SequentialThreadingHandler):  # type: ignore[misc]
    """Makes no connection after the session ended, and abandons a connection that a server accepts but does not serve.

    kazoo would open another session by itself and send the old session's requests on it. A caller that needs another session opens another
    tree.

    kazoo also waits for the answer to its first request for the whole session timeout. A starting server accepts connections before it
    serves them, and a hanging server accepts them for ever. The session would expire before the next attempt.

    Args:
        first_limit_s: maximum wait in seconds for a connection and for each read of its first answer. It doubles with each attempt that
            waits in vain, so that a slow server gets enough time. An attempt that a server refuses at once leaves it as it is: after
            the few seconds of a server's restart, one wait would otherwise last as long as the session.
    """

    over = False

    def __init__(self, first_limit_s: float) -> None:
        super().__init__()
        self._first_limit_s = first_limit_s
        self._limit_s = first_limit_s
        self._connected = False

    def changed(self, state: str) -> None:
        """Called on the thread that connects, before it does anything else."""
        self._connected = state == KazooState.CONNECTED
        if self._connected:
            self._limit_s = self._first_limit_s
        elif state == KazooState.LOST:
            self.over = True

    def create_connection(self, *args: Any, timeout: float, **options: Any) -> Any:
        if self.over:
            raise ConnectionAbortedError("the session is over")
        try:
            return super().create_connection(*args, timeout=min(timeout, self._limit_s), **options)
        except (TimeoutError, self.timeout_exception):
            self._limit_s *= 2
            raise

    def select(self, *args: Any) -> Any:
        *sockets, timeout = args
        if self._connected:
            return super().select(*sockets, timeout)
        ready = super().select(*sockets, min(timeout, self._limit_s))
        if not any(ready):
            self._limit_s *= 2
        return ready


class ZooKeeperSession:
    """A kazoo client with exactly one session. Used on the loop, except for `stop`, which blocks and is for a worker.

    Args:
        servers: ``host:port,host:port``.
        on_state: called on the loop with CONNECTED, SUSPENDED or LOST, and the session's id (0 unless connected).
        on_event: called on the loop with the path of a watch that fired.
    """

    def __init__(self, servers: str, timeout_s: float, on_state: Callable[[str, int], None], on_event: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_state = on_state
        self._on_event = on_event
        self._handler = _OneSession(timeout_s * ANSWER_SHARE)
        retry = KazooRetry(max_tries=-1, delay=RECONNECT_FIRST_S, max_delay=RECONNECT_LONGEST_S)
        self._client = KazooClient(hosts=servers, timeout=timeout_s, handler=self._handler, connection_retry=retry, logger=_LOGGER)
        self._client.add_listener(self._state_changed)

    @property
    def last_zxid(self) -> int:
        """The zxid of the last change that the server had applied at its last answer."""
        return int(self._client.last_zxid)

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

    # On kazoo's threads. kazoo keeps watch functions in sets by path, and bound methods compare equal, so repeated watches add nothing.

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


def translated(error: Exception, path: str) -> TriplicateError | None:
    """Triplicate's error for a kazoo error about `path`, or None for an error that is not ZooKeeper's."""
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
        case exceptions.NoAuthError() | exceptions.AuthFailedError() | exceptions.InvalidACLError():
            return MetadataError(f"{path}: ZooKeeper refuses access ({type(error).__name__}); check the node's access list")
        case exceptions.KazooException():
            return MetadataError(f"{path}: ZooKeeper answers {type(error).__name__} {error}")
    return None


def failed_operation(results: list[Any]) -> tuple[int, Exception] | None:
    """The index and the error of the operation of a transaction that failed. The others are only reported as not done."""
    for index, result in enumerate(results):
        if isinstance(result, Exception) and not isinstance(result, exceptions.RolledBackError | exceptions.RuntimeInconsistency):
            return index, result
    return None
