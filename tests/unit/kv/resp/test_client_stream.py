"""The stream of a Redis client's connection."""

from __future__ import annotations

import asyncio

from tests.unit.sql.pg.chunk_rig import ChunkTransport
from triplicate.kv.resp.client_stream import IN_BUFFER_BYTES, ClientStream
from triplicate.kv.resp.core.resp_requests import BEFORE_LOGIN
from triplicate.runtime import real_host


def test_a_paused_connection_is_read_again_before_it_is_closed() -> None:
    """asyncio ignores the close of a paused connection whose client has ended TLS."""

    async def body() -> None:
        stream = ClientStream(BEFORE_LOGIN, 10.0, real_host("test").clock, lambda stream: None)
        transport = ChunkTransport()
        stream.connection_made(transport)
        stream.data_received(b"*1\r\n$4\r\nPING\r\n" * (IN_BUFFER_BYTES // 10))
        stream.limit_input()
        assert not transport.reads
        stream.close()
        assert (transport.reads, transport.is_closed) == (True, True)

    asyncio.run(body())
