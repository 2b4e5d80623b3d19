"""Clients that stall: they do not read, or leave a message incomplete."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path

import pytest

from tests.unit.sql.pg.chunk_rig import ChunkTransport
from tests.unit.sql.pg.login_rig import Door, run_door, startup
from tests.unit.sql.pg.raw_client import RawClient, query
from tests.unit.sql.pg.server_rig import Served, run
from tests.waiting import eventually
from triplicate.runtime import real_host
from triplicate.sql.pg import ServerLimits
from triplicate.sql.pg.protocol.message_stream import IN_BUFFER_BYTES, MessageStream

LIMITS = ServerLimits(client_stall_s=0.3)
SERIES = "with recursive s(v) as (select 1 union all select v + 1 from s where v < 5000) select v, printf('%200s', 'x') from s"


def test_a_client_that_sends_without_reading_is_disconnected(caplog: pytest.LogCaptureFixture) -> None:
    async def body(s: Served) -> None:
        other = await RawClient.connect(*s.server.address)
        reader, writer = await asyncio.open_connection(*s.server.address, limit=1024)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client = RawClient(reader, writer)
        writer.write(b"\0\0\0\x1f\0\3\0\0user\0me\0database\0shop\0\0")
        for _ in range(100):
            client.send_nowait(query(SERIES))
        await eventually(lambda: s.server.connections.count == 1)
        assert "has read nothing for 0.3 s" in caplog.text
        assert await other.send(query("select 1")) == ["T ?column?:20", "D 1", "C SELECT 1", "Z I"]
        other.close()
        client.close()

    with caplog.at_level(logging.WARNING):
        run(body, LIMITS)


def test_half_a_message_ends_the_connection_and_an_idle_one_stays(caplog: pytest.LogCaptureFixture) -> None:
    async def body(s: Served) -> None:
        idle, half, slow = [await RawClient.connect(*s.server.address) for _ in range(3)]
        message = query("select 1")
        half.send_nowait(query("select 2") + message[:-3])
        for byte in message:
            slow.send_nowait(bytes([byte]))
            await asyncio.sleep(0.06)
        assert await half.until_closed() == ["T ?column?:20", "D 2", "C SELECT 1", "Z I", "E FATAL 08P01"]
        assert await slow.send(message) == ["T ?column?:20", "D 1", "C SELECT 1", "Z I"]
        assert await idle.send(message) == ["T ?column?:20", "D 1", "C SELECT 1", "Z I"]
        assert caplog.text.count("has left a message incomplete for 1.5 s") == 1
        for client in (idle, half, slow):
            client.close()

    with caplog.at_level(logging.WARNING):
        run(body, ServerLimits(client_stall_s=1.5))


def test_a_client_with_tls_that_does_not_read_is_disconnected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body(door: Door) -> None:
        client = await door.raw()
        client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.writer.write(startup())
        for _ in range(100):
            client.writer.write(query(SERIES))
        await eventually(lambda: door.server.connections.count == 0)
        assert "has read nothing for 0.3 s" in caplog.text
        client.close()

    with caplog.at_level(logging.WARNING):
        run_door(tmp_path, body, LIMITS, authentication="trust")


def test_half_a_message_within_tls_ends_the_connection(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        client = await door.raw()
        await client.log_in()
        while (await client.answer())[0] != "Z":
            continue
        await client.send(query("select 1")[:-3])
        assert (await client.error())[0] == "08P01"
        client.close()

    run_door(tmp_path, body, LIMITS)


def test_statements_of_a_client_with_tls_that_sends_faster_than_it_is_served_are_not_read_at_once(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        client = await door.raw()
        await client.log_in()
        while (await client.answer())[0] != "Z":
            continue
        text = query(f"select '{100_000 * 'x'}'")
        for _ in range(50):
            client.writer.write(text)
        for _ in range(50):
            rows = []
            while (answer := await client.answer())[0] != "Z":
                rows.append(answer)
            assert [letter for letter, _ in rows] == ["T", "D", "C"]
            assert len(rows[1][1]) == 100_006
        client.close()

    run_door(tmp_path, body)


def test_a_paused_connection_is_read_again_before_it_is_closed() -> None:
    """asyncio ignores the close of a paused connection whose client has ended TLS."""

    async def body() -> None:
        stream = MessageStream(1 << 24, 10.0, real_host("test").clock, lambda stream: None)
        transport = ChunkTransport()
        stream.connection_made(transport)
        stream.data_received(query("select 1") * (IN_BUFFER_BYTES // 10))
        assert not transport.reads
        stream.close()
        assert (transport.reads, transport.is_closed) == (True, True)
        stream.data_received(b"what waited meanwhile" * IN_BUFFER_BYTES)
        assert transport.reads, "it is ignored, and does not pause the connection again"

    asyncio.run(body())
