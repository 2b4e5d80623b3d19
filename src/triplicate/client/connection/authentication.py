"""Authentication of the client to a bookie, before the first request of a new connection.

Source: BookKeeper `AuthHandler.ClientSideHandler`, `ClientAuthProvider`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from triplicate.client.connection.exchange import Exchange
from triplicate.errors import ProtocolError, Unauthorized
from triplicate.runtime import fail, resolve
from triplicate.wire import AuthRequest, AuthResponse, FrameBuffer, Status, v3

Token = TypeVar("Token", bytes, bytes | None)


class Authenticator(Protocol):
    """A plugin of the user. One object serves all connections, which may authenticate at the same time."""

    plugin: str
    """The plugin's name; the bookie's plugin must have the same."""

    def first_token(self) -> bytes:
        """The first token to send; may be empty."""

    def answer(self, token: bytes) -> bytes | None:
        """The token to send in reply to one from the bookie; None when the authentication is complete."""


class Handshake:
    """The exchange of tokens on one connection. The caller limits its duration."""

    def __init__(self, authenticator: Authenticator, exchange: Exchange, transport: asyncio.Transport, limit_bytes: int) -> None:
        self._authenticator = authenticator
        self._exchange = exchange
        self._transport = transport
        self._frames = FrameBuffer(limit_bytes)
        self._answer: asyncio.Future[AuthResponse] | None = None

    async def run(self) -> None:
        """Return when the bookie accepts, or requires no authentication.

        Raises:
            Unauthorized: it refused, or the plugin raised. ConnectionError: it closed the connection.
            ProtocolError: it sent something else.
        """
        authenticator = self._authenticator
        token: bytes | None = self._call_plugin(authenticator.first_token)
        while token is not None:
            self._answer = asyncio.get_running_loop().create_future()
            self._transport.write(self._exchange.encode_token(AuthRequest(authenticator.plugin, token)))
            answer = await self._answer
            if answer.status is not Status.OK:
                raise Unauthorized(f"it refused the authentication by the plugin {authenticator.plugin!r} ({answer.status.name})")
            if answer.plugin == v3.AUTH_DISABLED:
                return
            if answer.plugin != authenticator.plugin:
                raise Unauthorized(f"it authenticates by the plugin {answer.plugin!r}, this client by {authenticator.plugin!r}")
            token = self._call_plugin(partial(authenticator.answer, answer.payload))

    def _call_plugin(self, say: Callable[[], Token]) -> Token:
        try:
            return say()
        except Exception as error:
            # A token that the plugin does not understand fails this connection, not the whole client.
            raise Unauthorized(f"the plugin {self._authenticator.plugin!r} failed: {error!r}") from error

    def data_received(self, data: bytes) -> None:
        """Process bytes from the bookie. Any frame but a token is ignored, as BookKeeper's client does."""
        try:
            for body in self._frames.bodies(data):
                _, response = self._exchange.decode(body)
                if isinstance(response, AuthResponse) and self._answer is not None:
                    resolve(self._answer, response)
        except ProtocolError as error:
            self._fail(error)

    def connection_lost(self) -> None:
        """The bookie, or the network, ended the connection."""
        plugin = self._authenticator.plugin
        self._fail(ConnectionResetError(f"it closed the connection while the plugin {plugin!r} authenticated; was the token refused?"))

    def _fail(self, error: Exception) -> None:
        if self._answer is not None:
            fail(self._answer, error)
