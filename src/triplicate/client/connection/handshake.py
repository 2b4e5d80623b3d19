"""The beginning of a connection, before it carries requests: START_TLS, the TLS handshake, the exchange of tokens.

START_TLS is a request of version 3 in clear, also on a connection that speaks version 2 from then on. A client that requires TLS ends a
connection on which it does not come about: nothing else was sent on it.

Source: BookKeeper `PerChannelBookieClient.initiateTLS`, `AuthHandler.ClientSideHandler`.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from triplicate.client.connection.authentication import TokenExchange
from triplicate.client.connection.bookie_access import BookieAccess
from triplicate.client.connection.exchange import Exchange
from triplicate.errors import ProtocolError, Unauthorized
from triplicate.runtime import Host, fail, resolve
from triplicate.security import HANDSHAKE_TIMEOUT_S, LoginConnection, TlsIdentity, reason_of_tls_failure
from triplicate.wire import AuthRequest, AuthResponse, FrameBuffer, Response, StartTlsResponse, Status, is_v3, v3

Answer = TypeVar("Answer", AuthResponse, StartTlsResponse)

LEAST_S = 0.001
"""Limit of a TLS handshake that begins at the end of the time for a connection, in seconds."""


class Handshake:
    """The handshake of one connection. The caller limits its duration, and passes on what the connection receives.

    Attributes:
        stage: what is awaited, as the subject of a message.

    Args:
        protocol: of the connection.
        limit_bytes: the largest frame that is accepted.
    """

    def __init__(self, host: Host, access: BookieAccess, exchange: Exchange, protocol: asyncio.Protocol, limit_bytes: int) -> None:
        self.stage = ""
        self._host = host
        self._access = access
        self._exchange = exchange
        self._protocol = protocol
        self._frames = FrameBuffer(limit_bytes)
        self._answer: asyncio.Future[Response] | None = None
        self._kind: type[Response] = AuthResponse
        """The kind of the awaited answer."""
        self._others = 0
        """Frames since the last request that did not answer it."""
        self._loss: ConnectionError | None = None
        """Why the connection is gone."""

    async def run(self, transport: asyncio.Transport, bookie_id: str, address: str, deadline: float) -> asyncio.Transport:
        """Return the transport that may carry requests.

        Args:
            transport: the new connection. On an error the caller aborts it.
            address: the host to which it was made, and which the bookie's certificate must name.
            deadline: seconds of the monotonic clock.

        Raises:
            Unauthorized: the bookie refused, the plugin raised, or the bookie could not be proven. ConnectionError: it closed the
            connection. ProtocolError: it sent something else.
        """
        access = self._access
        certificate: bytes | None = None
        if access.tls is not None:
            transport = await self._start_tls(access.tls, transport, address, deadline)
            protection = transport.get_extra_info("ssl_object")
            certificate = protection.getpeercert(True) if protection is not None else None  # The simulator's TLS has none.
        if access.begin is not None:
            connection = LoginConnection(bookie_id, access.tls is not None, certificate)
            tokens = TokenExchange(access.begin, connection, is_required=access.requires_login)
            self.stage = f"the authentication by the plugin {tokens.plugin!r}"
            token: bytes | None = tokens.first_token()
            while token is not None:
                frame = self._exchange.encode_token(AuthRequest(tokens.plugin, token))
                token = tokens.next_token(await self._ask(transport, frame, AuthResponse))
        self._check_connected()
        return transport

    async def _start_tls(self, tls: TlsIdentity, transport: asyncio.Transport, address: str, deadline: float) -> asyncio.Transport:
        self.stage = "its answer to START_TLS"
        context = tls.client_context()
        answer = await self._ask(transport, self._exchange.encode_start_tls(), StartTlsResponse)
        if answer.status is not Status.OK:
            raise Unauthorized(f"it has no TLS (its answer to START_TLS is {answer.status.name}), and client.bookie_tls requires it")
        if self._others or self._frames.held_bytes:
            raise ProtocolError("it sent more in clear than its answer to START_TLS")
        self.stage = "the TLS handshake"
        limit_s = min(HANDSHAKE_TIMEOUT_S, max(deadline - self._host.clock.monotonic(), LEAST_S))
        start = self._host.network.start_tls
        try:
            return await start(transport, self._protocol, context, limit_s=limit_s, server_name=address)
        except OSError as error:
            raise Unauthorized(f"the TLS handshake failed: {reason_of_tls_failure(error)}") from error

    async def _ask(self, transport: asyncio.Transport, frame: bytes, kind: type[Answer]) -> Answer:
        self._check_connected()
        self._answer = asyncio.get_running_loop().create_future()
        self._kind = kind
        self._others = 0
        transport.write(frame)
        answer = await self._answer
        assert isinstance(answer, kind)
        return answer

    def _check_connected(self) -> None:
        # A loss at a moment when nothing was awaited.
        if self._loss is not None:
            raise self._loss

    def data_received(self, data: bytes) -> None:
        """Process bytes from the bookie. Any frame but the awaited answer is ignored, as BookKeeper's client does.

        An Apache bookie that has both TLS and SASL sends a needless refusal of START_TLS, of version 3, between the two.
        """
        try:
            for body in self._frames.bodies(data):
                _, response = v3.decode_response(body) if is_v3(body) else self._exchange.decode(body)
                if self._answer is not None and not self._answer.done() and isinstance(response, self._kind):
                    resolve(self._answer, response)
                else:
                    self._others += 1
        except ProtocolError as error:
            self._fail(error)

    def connection_lost(self, error: Exception | None) -> None:
        """The bookie, or the network, ended the connection."""
        why = f" ({reason_of_tls_failure(error)})" if isinstance(error, OSError) else ""
        hint = "; was the token refused?" if self._kind is AuthResponse and self._answer is not None else ""
        self._loss = ConnectionResetError(f"it closed the connection{why} during {self.stage}{hint}")
        self._fail(self._loss)

    def _fail(self, error: Exception) -> None:
        if self._answer is not None:
            fail(self._answer, error)
