from __future__ import annotations

import asyncio
import socket

import pytest

from tests.waiting import eventually
from triplicate.runtime import InProcessNetwork


class Receiver(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = b""
        self.transport: asyncio.Transport | None = None
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True


def test_both_ends_of_a_connection_receive_what_the_other_writes() -> None:
    async def body() -> None:
        network, servers = InProcessNetwork(), list[Receiver]()

        def accept() -> Receiver:
            servers.append(Receiver())
            return servers[-1]

        listener = await network.listen(accept, "in-process", 0)
        client = Receiver()
        transport, _ = await network.connect(lambda: client, *listener.address)
        big = bytes(1_000_000)
        transport.write(big)
        await eventually(lambda: servers[0].received == big)
        assert servers[0].transport is not None
        servers[0].transport.write(b"answer")
        await eventually(lambda: client.received == b"answer")
        await listener.close()
        transport.close()
        await eventually(lambda: servers[0].is_lost and client.is_lost)

    asyncio.run(body())


def test_a_place_is_one_servers_until_it_is_closed() -> None:
    async def body() -> None:
        network = InProcessNetwork()
        first = await network.listen(Receiver, "in-process", 7)
        with pytest.raises(OSError, match="in use"):
            await network.listen(Receiver, "in-process", 7)
        other = await network.listen(Receiver, "in-process", 0)
        assert other.address != first.address
        await first.close()
        with pytest.raises(ConnectionRefusedError):
            await network.connect(Receiver, "in-process", 7)
        await network.listen(Receiver, "in-process", 7)

    asyncio.run(body())


def test_no_port_of_the_machine_is_opened() -> None:
    async def body() -> None:
        listener = await InProcessNetwork().listen(Receiver, "127.0.0.1", 23_917)
        with socket.socket() as probe:
            probe.bind(listener.address)

    asyncio.run(body())
