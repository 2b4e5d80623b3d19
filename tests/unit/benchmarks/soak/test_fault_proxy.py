"""The proxy before a bookie: forwards, delays, holds back, cuts, and refuses. The echoing server stands for the bookie."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from benchmarks.ledger.processes import free_port
from benchmarks.soak.fault_proxy import FaultProxy, ProxyThread

HOST = "127.0.0.1"
DELAY_S = 0.05


@dataclass
class Rig:
    proxy: FaultProxy
    port: int

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(HOST, self.port)


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1024):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, HOST, 0)
    port = free_port()
    proxy = FaultProxy((HOST, port), (HOST, server.sockets[0].getsockname()[1]))
    await proxy.open()
    try:
        yield Rig(proxy, port)
    finally:
        await proxy.close()
        server.close()


def test_bytes_pass_in_both_directions_and_the_end_is_passed_on() -> None:
    async def body() -> None:
        async with rig() as made:
            reader, writer = await made.connect()
            writer.write(b"question")
            assert await reader.readexactly(8) == b"question"
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()

    asyncio.run(body())


def test_a_delay_counts_in_each_direction() -> None:
    async def body() -> None:
        async with rig() as made:
            reader, writer = await made.connect()
            await made.proxy.set_delay(DELAY_S)
            began = time.monotonic()
            writer.write(b"question")
            await reader.readexactly(8)
            assert time.monotonic() - began >= 2 * DELAY_S
            writer.close()

    asyncio.run(body())


def test_held_bytes_arrive_after_the_release() -> None:
    async def body() -> None:
        async with rig() as made:
            reader, writer = await made.connect()
            await made.proxy.hold()
            writer.write(b"question")
            answer = asyncio.create_task(reader.readexactly(8))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(answer), DELAY_S)
            await made.proxy.release()
            assert await answer == b"question"
            writer.close()

    asyncio.run(body())


def test_a_cut_ends_the_connections_and_admits_new_ones() -> None:
    async def body() -> None:
        async with rig() as made:
            reader, writer = await made.connect()
            writer.write(b"question")
            await reader.readexactly(8)
            await made.proxy.cut()
            assert await reader.read() == b""
            assert made.proxy.connections_cut == 1
            writer.close()
            reader, writer = await made.connect()
            writer.write(b"again")
            assert await reader.readexactly(5) == b"again"
            writer.close()

    asyncio.run(body())


def test_a_refusing_proxy_admits_nobody_until_it_is_opened() -> None:
    async def body() -> None:
        async with rig() as made:
            await made.proxy.refuse()
            with pytest.raises(OSError, match="Connect call failed"):
                await made.connect()
            await made.proxy.open()
            _, writer = await made.connect()
            writer.close()

    asyncio.run(body())


def test_a_bookie_that_is_away_ends_the_connection() -> None:
    async def body() -> None:
        port = free_port()
        proxy = FaultProxy((HOST, port), (HOST, free_port()))
        await proxy.open()
        reader, writer = await asyncio.open_connection(HOST, port)
        assert await reader.read() == b""
        writer.close()
        await proxy.close()

    asyncio.run(body())


def test_the_thread_of_the_proxies_opens_and_closes_them() -> None:
    async def body() -> None:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            writer.close()

        server = await asyncio.start_server(greet, HOST, 0)
        target = (HOST, server.sockets[0].getsockname()[1])
        port = free_port()
        with ProxyThread() as proxies:
            proxy = await asyncio.to_thread(proxies.add, (HOST, port), target)
            reader, writer = await asyncio.open_connection(HOST, port)
            assert await reader.read() == b"hello"
            writer.close()
            await asyncio.to_thread(proxies.remove, proxy)
            with pytest.raises(OSError, match="Connect call failed"):
                await asyncio.open_connection(HOST, port)
        server.close()

    asyncio.run(body())
