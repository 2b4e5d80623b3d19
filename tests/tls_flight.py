"""One side of TLS by hand over a raw socket, which sends its first bytes in one write with its last message of the handshake.

In TLS 1.3 the client sends last. In TLS 1.2 the server does, or the client if it takes up an earlier session.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress

READ_BYTES = 1 << 16


async def raw_socket(host: str, port: int) -> socket.socket:
    """A connected socket, which the caller closes."""
    connection = socket.socket()
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (host, port))
    except BaseException:
        connection.close()
        raise
    return connection


class TlsFlight:
    """The connection is open, and both sides are about to shake hands.

    Args:
        server_name: the host that the certificate must name; None on the side of the server.
        session: an earlier one of the client.
    """

    def __init__(
        self, connection: socket.socket, context: ssl.SSLContext, server_name: str | None, session: ssl.SSLSession | None = None
    ) -> None:
        self._socket = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        is_server = server_name is None
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server, server_hostname=server_name, session=session)

    async def shake_hands(self, behind: bytes = b"", *, says_goodbye: bool = False) -> None:
        """Shake hands, and send `behind`, and perhaps the end of TLS, in one write with the last message of this side."""
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
        while behind:
            behind = behind[self.tls.write(behind) :]
        if says_goodbye:
            with suppress(ssl.SSLWantReadError):  # The peer has not said it too yet.
                self.tls.unwrap()
        await self._flush()

    async def receive(self, size_bytes: int) -> bytes:
        """The next bytes; fewer at the end of the connection.

        Raises:
            ssl.SSLError: bytes came in clear.
        """
        received = b""
        while len(received) < size_bytes:
            try:
                chunk = self.tls.read(size_bytes - len(received))
            except ssl.SSLWantReadError:
                if not await self._fill():
                    break
                continue
            if not chunk:
                break
            received += chunk
        return received

    async def send(self, data: bytes) -> None:
        self.tls.write(data)
        await self._flush()

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await asyncio.get_running_loop().sock_sendall(self._socket, self._outgoing.read())

    async def _fill(self) -> bool:
        data = await asyncio.get_running_loop().sock_recv(self._socket, READ_BYTES)
        self._incoming.write(data)
        return bool(data)
