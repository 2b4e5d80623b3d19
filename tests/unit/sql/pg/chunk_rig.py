"""A connection without a socket: bytes go in as chunks of any size, and the bytes of the answers are collected."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from tests.unit.sql.pg.local_engine import LocalDatabase, LocalDatabases
from triplicate.runtime import real_host
from triplicate.sql.pg import ServerLimits, ServerSecurity
from triplicate.sql.pg.protocol.client_connections import ClientConnections

Result = TypeVar("Result")

QUIET_TURNS = 60
"""More turns of the loop than the statements between two answers wait."""
STARTUP = b"user\0me\0database\0shop\0\0"


class ChunkTransport(asyncio.Transport):
    """Collects what is written, each `write` separately."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.unsent = 0
        """Bytes that the client has not read, as a test sets them."""
        self.is_closed = False
        self.is_aborted = False
        self.reads = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closed, "nothing is written after the end"
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        assert self.reads
        self.reads = False

    def resume_reading(self) -> None:
        assert not self.reads
        self.reads = True

    def is_reading(self) -> bool:
        return self.reads

    def get_write_buffer_size(self) -> int:
        return self.unsent


class ChunkClient:
    """One connection, past its start-up."""

    def __init__(self, connections: ClientConnections, database: LocalDatabase) -> None:
        self.database = database
        self.transport = ChunkTransport()
        self.stream = connections.new_stream()

    @classmethod
    async def connect(cls, connections: ClientConnections, database: LocalDatabase) -> ChunkClient:
        client = cls(connections, database)
        client.stream.connection_made(client.transport)
        packet = struct.pack(">i", 196608) + STARTUP
        client.stream.data_received(struct.pack(">i", len(packet) + 4) + packet)
        await settle()
        assert client.transport.writes[-1].endswith(b"Z\0\0\0\5I")
        client.transport.writes.clear()
        return client

    async def send_chunks(self, chunks: Iterable[bytes]) -> bytes:
        """Send chunks, with no turn of the loop between them. Returns the answers."""
        for chunk in chunks:
            if chunk and not self.transport.is_closed:
                self.stream.data_received(chunk)
        await self.settle()
        return self.answers()

    async def send_slowly(self, chunks: Iterable[bytes]) -> bytes:
        """Send chunks, each after the answer to the one before. Returns the answers."""
        for chunk in chunks:
            if chunk and not self.transport.is_closed:
                self.stream.data_received(chunk)
                await self.settle()
        return self.answers()

    async def settle(self) -> None:
        """Wait until nothing has been written for some turns of the loop."""
        quiet, seen = 0, (-1, False)
        while quiet < QUIET_TURNS:
            await asyncio.sleep(0)
            now = len(self.transport.writes), self.transport.is_closed
            quiet, seen = quiet + 1 if now == seen else 0, now

    def answers(self) -> bytes:
        answers = b"".join(self.transport.writes)
        self.transport.writes.clear()
        return answers


async def settle() -> None:
    """Let all tasks run that need not wait for anything outside."""
    for _ in range(30):
        await asyncio.sleep(0)


def letters(answers: bytes) -> str:
    """The letters of complete answers."""
    at, found = 0, ""
    while at < len(answers):
        found += chr(answers[at])
        at += 1 + struct.unpack_from(">i", answers, at + 1)[0]
    assert at == len(answers), "an answer was cut"
    return found


def with_connections(body: Callable[[ClientConnections, LocalDatabase], Coroutine[Any, Any, Result]], **limits: Any) -> Result:
    """Run a scene with the connections of one node."""

    async def main() -> Result:
        databases = LocalDatabases()
        connections = ClientConnections(real_host("chunks", seed=1), databases, ServerLimits(**limits), ServerSecurity())
        try:
            return await body(connections, databases.shop)
        finally:
            await connections.aclose()

    return asyncio.run(asyncio.wait_for(main(), 30))
