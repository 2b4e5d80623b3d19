"""A small client by RESP 3, for commands: one request at a time, to one node."""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from triplicate.errors import ConnectionLost, ProtocolError
from triplicate.kv.resp.core.replies import Push, Reply
from triplicate.kv.resp.core.reply_decoder import ReplyDecoder
from triplicate.runtime import Host, deadline_after, fail, resolve, timeout_at

CONNECT_LIMIT_S = 5.0
HANDSHAKE_LIMIT_S = 10.0
PUSHES_MAX = 10_000
"""Messages that wait to be taken; with more of them the connection ends."""


class RespClient(asyncio.Protocol):
    """One connection. `connect` makes one."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._decoder = ReplyDecoder()
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[Reply] | None = None
        self._pushes: list[Push] = []
        self._arrived: asyncio.Future[None] | None = None
        self._failure: Exception | None = None

    @classmethod
    async def connect(cls, host: Host, address: tuple[str, int], tls: ssl.SSLContext | None = None) -> RespClient:
        """Connect to a node.

        Args:
            tls: with it the connection begins with a handshake.

        Raises:
            ConnectionLost: the node does not answer, or the handshake failed.
        """
        name = f"{address[0]}:{address[1]}"
        client = cls(name)
        try:
            async with timeout_at(deadline_after(host.clock, CONNECT_LIMIT_S + HANDSHAKE_LIMIT_S)):
                transport, _ = await host.network.connect(lambda: client, *address)
                client._transport = transport
                if tls is not None:
                    client._transport = await host.network.start_tls(
                        transport, client, tls, limit_s=HANDSHAKE_LIMIT_S, server_name=address[0]
                    )
        except (OSError, TimeoutError) as error:
            client.close()
            raise ConnectionLost(f"{name} cannot be reached: {error}") from None
        return client

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._decoder.feed(data)
        try:
            while (found := self._decoder.next_reply()) is not None:
                self._take(found[0])
        except ProtocolError as error:
            self._end(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(ConnectionLost(f"the connection to {self._address} ended; a change that was not answered may have happened or not"))

    def _take(self, reply: Reply) -> None:
        if isinstance(reply, Push):
            self._pushes.append(reply)
            if len(self._pushes) > PUSHES_MAX:
                raise ProtocolError(f"{self._address} sends notifications faster than they are taken")
            if self._arrived is not None:
                resolve(self._arrived, None)
        elif self._reply is not None:
            resolve(self._reply, reply)
        else:
            raise ProtocolError(f"{self._address} sent a reply that no request asked for: {reply!r:.200}")

    def _end(self, error: Exception) -> None:
        self._failure = self._failure or error
        if self._transport is not None:
            self._transport.abort()
        for waiting in (self._reply, self._arrived):
            if waiting is not None:
                fail(waiting, self._failure)

    # Requests.

    async def ask(self, *words: bytes) -> Reply:
        """Send a request, and return its reply; an `ErrorReply` is returned as well.

        Raises:
            ConnectionLost: the connection ended before the reply. ProtocolError: the server broke the protocol.
        """
        self._check()
        self._reply = asyncio.get_running_loop().create_future()
        self.send(*words)
        try:
            return await self._reply
        finally:
            self._reply = None

    def send(self, *words: bytes) -> None:
        """Send a request whose replies are pushes, such as SUBSCRIBE. Raises as `ask`."""
        self._check()
        assert self._transport is not None, "the connection was opened"
        self._transport.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))

    async def pushes(self) -> list[Push]:
        """Wait for messages, and take all that have arrived. Raises as `ask`."""
        while not self._pushes:
            self._check()
            self._arrived = asyncio.get_running_loop().create_future()
            try:
                await self._arrived
            finally:
                self._arrived = None
        found, self._pushes = self._pushes, []
        return found

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Close the connection. Idempotent."""
        if self._transport is not None:
            self._transport.close()
