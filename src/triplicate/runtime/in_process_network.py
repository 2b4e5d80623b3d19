"""The network port of a cluster that is in one process: connections are pairs of sockets, and no address of the machine is used.

Nobody outside of the process can connect, so servers in it need no protection.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable

from triplicate.runtime.ports import Listener

FIRST_PORT = 1
LAST_PORT = 65_535


class InProcessNetwork:
    """Implements `Network` for the hosts of one event loop that share it."""

    def __init__(self) -> None:
        self._listening: dict[tuple[str, int], Callable[[], asyncio.Protocol]] = {}

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> tuple[asyncio.Transport, asyncio.Protocol]:
        accepts = self._listening.get((host, port))
        if accepts is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nothing in this process listens on {host} port {port}")
        loop = asyncio.get_running_loop()
        near, far = socket.socketpair()
        accepted: asyncio.Transport | None = None
        try:
            near.setblocking(False)
            far.setblocking(False)
            accepted, _ = await loop.create_unix_connection(accepts, sock=far)
            return await loop.create_unix_connection(factory, sock=near)
        except BaseException:
            near.close()
            if accepted is not None:
                accepted.abort()
            else:
                far.close()
            raise

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        address = (host, port or self._free_port(host))
        if address in self._listening:
            raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: {host} port {port}")
        self._listening[address] = factory
        return InProcessListener(self._listening, address)

    async def start_tls(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        *,
        limit_s: float,
        server_name: str | None,
        received: bytes = b"",
    ) -> asyncio.Transport:
        raise OSError(errno.EOPNOTSUPP, "connections inside of one process need no TLS")

    def _free_port(self, host: str) -> int:
        for port in range(FIRST_PORT, LAST_PORT + 1):
            if (host, port) not in self._listening:
                return port
        raise OSError(errno.EADDRINUSE, f"all ports of {host} are in use in this process")


class InProcessListener:
    """A place where a server of this process accepts connections."""

    def __init__(self, listening: dict[tuple[str, int], Callable[[], asyncio.Protocol]], address: tuple[str, int]) -> None:
        self._listening = listening
        self._address = address

    @property
    def address(self) -> tuple[str, int]:
        return self._address

    async def close(self) -> None:
        self._listening.pop(self._address, None)
