"""The beginning of a connection, up to the first packet: requests for encryption and cancel requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.runtime import Host
from triplicate.security import HANDSHAKE_TIMEOUT_S, HandshakeTurns, TooManyHandshakes
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.login_messages import ENCRYPTION_REFUSED
from triplicate.sql.pg.protocol.message_stream import MessageStream
from triplicate.sql.pg.protocol.server_security import ClientRefused, RefusalReason, ServerSecurity, TlsMode


class ClientStartup:
    """Begins connections.

    Args:
        cancel: called with a cancel request.
        handshakes_per_s: maximum rate of TLS handshakes.
    """

    def __init__(self, host: Host, security: ServerSecurity, cancel: Callable[[wire.Startup], None], handshakes_per_s: int) -> None:
        self._host = host
        self._security = security
        self._handshakes = HandshakeTurns(host.clock, handshakes_per_s)
        self._cancel = cancel

    async def run(self, stream: MessageStream, deadline_s: float) -> wire.Startup | None:
        """Protect the connection if the client asks for it, and read the first packet.

        Args:
            deadline_s: monotonic time at which the caller aborts the connection.

        Returns:
            None if the client has disconnected or sent a cancel request.

        Raises:
            ClientRefused: the client may not go on. ProtocolError: it broke the protocol. OSError: the TLS handshake failed.
        """
        while True:
            startup = stream.next_startup()
            if startup is None:
                if stream.is_lost:
                    return None
                await stream.wait()
            elif startup.code == wire.SSL_REQUEST and self._security.tls is not TlsMode.OFF and stream.tls is None:
                await self._protect(stream, deadline_s)
            elif startup.code in (wire.SSL_REQUEST, wire.GSS_ENCRYPTION_REQUEST) and stream.tls is None:
                stream.write(ENCRYPTION_REFUSED)
                stream.flush_nowait()
                await asyncio.sleep(0)  # A client may send many requests at once, and others are served meanwhile.
            elif startup.code == wire.CANCEL_REQUEST:
                # Also in the clear where TLS is required: the programs with libpq before version 17 cannot send it in another way.
                self._cancel(startup)
                return None
            else:
                self._check(stream, startup)
                return startup

    async def _protect(self, stream: MessageStream, deadline_s: float) -> None:
        identity = self._security.identity
        assert identity is not None, "a server with TLS has an identity"
        try:
            if not await self._handshakes.wait(stream, deadline_s):
                return
        except TooManyHandshakes:
            message = "too many TLS handshakes wait at this node"
            raise ClientRefused(RefusalReason.HANDSHAKES, "53300", message, hint="Try again later.") from None
        context = identity.server_context(self._security.certificates)
        # `SSLObject.context` is this context until the connection ends, also after the certificate was renewed.
        limit_s = min(HANDSHAKE_TIMEOUT_S, max(deadline_s - self._host.clock.monotonic(), 0.001))
        await stream.start_tls(self._host.network, context, limit_s)

    def _check(self, stream: MessageStream, startup: wire.Startup) -> None:
        major, minor = startup.code >> 16, startup.code & 0xFFFF
        if major != wire.PROTOCOL_MAJOR:
            raise ClientRefused(RefusalReason.PROTOCOL, "0A000", f"protocol {major}.{minor} is not supported; this server supports 3.0")
        if self._security.tls is TlsMode.REQUIRED and stream.tls is None:
            raise ClientRefused(
                RefusalReason.PLAIN_TEXT,
                "28000",
                "this server accepts connections with TLS only, and this one is not encrypted",
                hint="Connect with sslmode=verify-full and sslrootcert=FILE, the certificate of the cluster's authority.",
            )
        options = [name for name in startup.parameters if name.startswith("_pq_.")]
        if minor > 0 or options:
            stream.write(wire.negotiate_protocol_version(options))
