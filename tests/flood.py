"""An attacker who opens connections without an end, says one thing on each, and never logs in."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import ssl
import struct
import sys
from collections import deque
from collections.abc import Sequence

from tests.waiting import eventually

RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: a close resets the connection, so that its port is free at once. A million of them would use up the ports otherwise."""
OWN_DESCRIPTORS = 20
"""A server opens files of its own meanwhile."""
AT_ONCE = 50
"""Connections that are begun together."""


class Flood:
    """Opens connections. The latest ones stay open; the oldest of them is reset for the next.

    Attributes:
        opened: connections that came about. refused: those that did not, or that the server ended before the first bytes were sent.

    Args:
        address: host and port of the door.
        first: the bytes that each connection sends.
        open_at_once: the number of connections that stay open on this side, whether the server has closed them or not.
        sources: addresses of this machine from which it comes, in turn.
    """

    def __init__(self, address: tuple[str, int], first: bytes, open_at_once: int, sources: Sequence[str] = ("127.0.0.1",)) -> None:
        self.opened = self.refused = 0
        self._address = address
        self._first = first
        self._open_at_once = open_at_once
        self._sources = sources
        self._open: deque[socket.socket] = deque()

    async def attempt(self, number: int) -> None:
        """Open this number of connections, some at a time."""
        for begun in range(0, number, AT_ONCE):
            await asyncio.gather(*(self._connect() for _ in range(min(AT_ONCE, number - begun))))

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.bind((self._sources[(self.opened + self.refused) % len(self._sources)], 0))
        try:
            await loop.sock_connect(connection, self._address)
            if self._first:
                await loop.sock_sendall(connection, self._first)
        except ConnectionError:
            self.refused += 1
            connection.close()
            return
        self.opened += 1
        self._open.append(connection)
        if len(self._open) > self._open_at_once:
            self._open.popleft().close()

    def still_open(self) -> int:
        """Connections that the server has not ended, as far as this side knows."""
        return sum(_is_open(connection) for connection in self._open)

    def close(self) -> None:
        while self._open:
            self._open.pop().close()


def _is_open(connection: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        try:
            while connection.recv(4096):
                continue
        except ConnectionError:
            pass  # A reset ends the connection as well as its regular end does.
        return False
    return True


def client_hello() -> bytes:
    """The first bytes of a client with TLS. They cost the server far more than the client."""
    outgoing, context = ssl.MemoryBIO(), ssl.create_default_context()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def open_descriptors(pid: int | None = None) -> int:
    """The number of open descriptors of a process, by default of this one."""
    return len(os.listdir(f"/proc/{pid or 'self'}/fd"))


class AtRest:
    """Memory and descriptors of this process between the rounds of a flood. The needs of an open connection do not count."""

    def __init__(self) -> None:
        gc.collect()
        self._blocks, self._descriptors = sys.getallocatedblocks(), open_descriptors()

    async def check(self, attempts: int) -> None:
        """Fail if anything stays of each attempt: a descriptor, or one block of memory. The last connections may still be ending."""
        await eventually(lambda: open_descriptors() <= self._descriptors + OWN_DESCRIPTORS)
        await eventually(lambda: self._new_blocks() < attempts)

    def _new_blocks(self) -> int:
        gc.collect()
        return sys.getallocatedblocks() - self._blocks
