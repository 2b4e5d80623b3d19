"""One ZooKeeper session on kazoo, bridged to the event loop.

kazoo works on threads of its own: one that talks to the server, one for answers, one for events. Nothing of ours runs on them but the
few lines here that hand what they bring to the loop. Only this file and `zookeeper` import kazoo, and only when an address asks for it.
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

CONNECTED, SUSPENDED, LOST = "connected", "suspended", "lost"
_STATES = {KazooState.CONNECTED: CONNECTED, KazooState.SUSPENDED: SUSPENDED, KazooState.LOST: LOST}

RECONNECT_FIRST_S = 0.05
RECONNECT_LONGEST_S = 1.0
"""kazoo's own default waits up to an hour between attempts."""

ANSWER_SHARE = 1 / 16
"""A server has twice this part of the session timeout to answer a first new connection; twice as long the next."""

STOP_ERRORS = (exceptions.KazooException, OSError)

_LOGGER = logging.getLogger("triplicate.metadata.drivers.zookeeper_tree")
# What matters is in our traces; without a handler of its own kazoo's warnings would land on the standard error of every command.
_LOGGER.addHandler(logging.NullHandler())


class _OneSession(SequentialThreadingHandler):  # type: ignore[misc]
    """Makes no connection once the session is over, and gives up a connection that a server accepts and does not serve.

    kazoo would open another session by itself and send on it what was meant for the old one; whoever wants another session opens
    another tree.

    kazoo also waits for the answer to its first request as long as the session lasts. A server that starts accepts connections before it
    serves them, and a server that hangs accepts them for ever: the session would be over before the next attempt.

    Args:
        first_limit_s: the longest wait for a connection and for each read of its first answer. It doubles with each attempt that fails, so
            that a slow server is waited for.
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
        if not self._connected:
            self._limit_s = min(timeout, 2 * self._limit_s)
        return super().create_connection(*args, timeout=min(timeout, self._limit_s), **options)

    def select(self, *args: Any) -> Any:
        *sockets, timeout = args
        return super().select(*sockets, timeout if self._connected else min(timeout, self._limit_s))


class ZooKeeperSession:
    """A kazoo client that has one session in its life. Used by the loop; `stop` blocks and is for a worker.

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
        """The number of the last change, anywhere in the store, that the server had made when it last answered us."""
        return int(self._client.last_zxid)

    def start(self) -> None:
        """Begin to connect; `on_state` tells when that is done."""
        self._client.start_async()

    def stop(self) -> None:
        """End the session and the threads. Blocks, at worst for about twice the session timeout.

        Raises:
            one of STOP_ERRORS: the server was not told; it finds the session dead after its timeout.
        """
        self._client.stop()
        self._client.close()

    def submit(self, request: Callable[[KazooClient], Any]) -> asyncio.Future[Any]:
        """Queue a request (a call of one of kazoo's ``…_async`` methods); requests are sent in the order of these calls.

        The future raises kazoo's errors; `translated` makes them ours.
        """
        answer: asyncio.Future[Any] = self._loop.create_future()
        request(self._client).rawlink(partial(self._answered, answer))
        return answer

    # On kazoo's threads. It keeps watch functions in sets by path, and a bound method equals itself, so watching again adds nothing.

    def node_fired(self, event: WatchedEvent) -> None:
        """The watch function of requests about a node."""
        # Without a path it says that the connection took the watches with it, which the state tells as well.
        if event.path is not None:
            self._tell(self._on_event, event.path)

    def children_fired(self, event: WatchedEvent) -> None:
        """The watch function of requests about the children of a node."""
        # A deletion fires both watches of a node; once is enough.
        if event.path is not None and event.type != EventType.DELETED:
            self._tell(self._on_event, event.path)

    def _state_changed(self, state: str) -> None:
        self._handler.changed(state)
        known = self._client.client_id if state == KazooState.CONNECTED else None
        self._tell(self._on_state, _STATES[state], known[0] if known else 0)

    def _answered(self, answer: asyncio.Future[Any], result: Any) -> None:
        try:
            value = result.get_nowait()
        except (exceptions.KazooException, OSError, RuntimeError, ValueError) as error:
            self._tell(_fail, answer, error)
        else:
            self._tell(_settle, answer, value)

    def _tell(self, function: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            return  # The loop is closed: nobody waits any more.


def _settle(answer: asyncio.Future[Any], value: Any) -> None:
    if not answer.done():
        answer.set_result(value)


def _fail(answer: asyncio.Future[Any], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def translated(error: Exception, path: str) -> TriplicateError | None:
    """Our error for one of kazoo's about `path`, or None for an error that is not ZooKeeper's."""
    match error:
        case exceptions.NoNodeError():
            return NoNode(f"{path}: no such node")
        case exceptions.NodeExistsError():
            return NodeExists(f"{path}: exists already")
        case exceptions.BadVersionError():
            return BadVersion(f"{path}: not at the version that was expected")
        case exceptions.NotEmptyError():
            return NotEmpty(f"{path}: has children")
        case exceptions.NoChildrenForEphemeralsError():
            return MetadataError(f"{path}: its parent is ephemeral and can have no children")
        case exceptions.SessionExpiredError():
            # Also kazoo's ConnectionClosedError. The server, or kazoo before sending, refused: nothing was applied.
            return SessionExpired(f"{path}: the session is over")
        case exceptions.ConnectionLoss() | exceptions.OperationTimeoutError() | exceptions.SessionMovedError():
            return ConnectionLost(f"{path}: the connection to ZooKeeper broke before the answer came")
        case exceptions.BadArgumentsError():
            return ArgumentError(f"{path}: not a path that ZooKeeper takes")
        case exceptions.NoAuthError() | exceptions.AuthFailedError() | exceptions.InvalidACLError():
            return MetadataError(f"{path}: ZooKeeper refuses access ({type(error).__name__}); check the node's access list")
        case exceptions.KazooException():
            return MetadataError(f"{path}: ZooKeeper answers {type(error).__name__} {error}")
    return None


def failed_operation(results: list[Any]) -> tuple[int, Exception] | None:
    """Which operation of a transaction failed, and how; those before and after it are only reported as not done."""
    for index, result in enumerate(results):
        if isinstance(result, Exception) and not isinstance(result, exceptions.RolledBackError | exceptions.RuntimeInconsistency):
            return index, result
    return None
