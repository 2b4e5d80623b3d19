"""Connections of the histories to a store by Redis' protocol, on redis-py, which neither repeats a request nor connects again by itself."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from benchmarks.histories.cluster import Address

LOOK_LIMIT_S = 0.5
"""A node that does not answer with its role within this time is skipped."""
UNKNOWN = "UNKNOWN"
"""Code of the error of a change that may have happened."""
NOT_DONE = ("READONLY", "LOADING", "TRYAGAIN", "STALE")
"""Codes of errors after which nothing was changed."""
_CONNECTION: Any = redis.Connection  # Its methods have no types.
_CODES = ((redis.ReadOnlyError, "READONLY"), (redis.BusyLoadingError, "LOADING"), (redis.exceptions.TryAgainError, "TRYAGAIN"))
Word = str | int | bytes
Command = tuple[Word, ...]


class ConnectionEnded(Exception):
    """There is no answer, and will be none."""


class RespConnection:
    """A connection to one node.

    Args:
        store: chosen by the user name.
        limit_s: longest wait for the bytes of an answer.

    Raises:
        ConnectionEnded: the node does not answer.
    """

    def __init__(self, address: Address, store: str, limit_s: float) -> None:
        host, port = address
        self.address = address
        self._connection = _CONNECTION(
            host=host,
            port=port,
            username=store,
            password="any",
            protocol=3,
            socket_timeout=limit_s,
            socket_connect_timeout=limit_s,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            self._connection.connect()
        except (redis.RedisError, OSError) as error:
            self.close()
            raise ConnectionEnded(f"{host}:{port}: {error}") from error

    def ask(self, *commands: Command) -> list[Any]:
        """Send commands at once, and return their answers; a refusal is returned as a `redis.RedisError`.

        Raises:
            ConnectionEnded: an answer is missing; the connection is closed.
        """
        if not self._connection.is_connected:
            raise ConnectionEnded("the connection was closed")  # redis-py would connect again.
        try:
            self._connection.send_packed_command(self._connection.pack_commands(commands))
            return [self._answer() for _ in commands]
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            self.close()
            raise ConnectionEnded(str(error)) from error

    def _answer(self) -> Any:
        try:
            return self._connection.read_response()
        except (redis.ResponseError, redis.BusyLoadingError) as refusal:
            return refusal

    def close(self) -> None:
        self._connection.disconnect()


def code_of(refusal: Exception) -> str:
    """The code of an error of the server. redis-py leaves the code of the errors away that it has a class for."""
    for kind, code in _CODES:
        if isinstance(refusal, kind):
            return code
    return str(refusal).partition(" ")[0]


def is_refusal(answer: object) -> bool:
    """Whether an answer is an error of the server."""
    return isinstance(answer, redis.RedisError)


def leader_of(addresses: Sequence[Address], store: str) -> Address | None:
    """The address of the node that reports itself as leader of a store, if any."""
    for address in addresses:
        with contextlib.suppress(ConnectionEnded):
            connection = RespConnection(address, store, LOOK_LIMIT_S)
            try:
                (role,) = connection.ask(("ROLE",))
            finally:
                connection.close()
            if not is_refusal(role) and role[0] in (b"master", "master"):
                return address
    return None
