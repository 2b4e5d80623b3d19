"""Whether this process shares its machine with ZooKeeper's leader."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.metadata.stores import run
from tests.zookeeper.server import shared_server
from triplicate.metadata import MemoryStore, MemoryTree, is_beside_leading_server
from triplicate.metadata.drivers import zookeeper_role, zookeeper_tree
from triplicate.metadata.drivers.renewing_tree import RenewingTree
from triplicate.metadata.drivers.zookeeper_role import ANSWER_BYTES_MAX, leads
from triplicate.metadata.drivers.zookeeper_session import ServerAddress, ZooKeeperSession
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
from triplicate.runtime import Host, real_host


@pytest.mark.parametrize(
    ("answer", "is_leader"),
    [
        (b"Zookeeper version: 3.9.3\nLatency min/avg/max: 0/0.0/0\nMode: leader\nNode count: 5\n", True),
        (b"Zookeeper version: 3.9.3\nMode: follower\nNode count: 5\n", False),
        (b"Mode: standalone\n", False),
        (b"srvr is not executed because it is not in the whitelist.\n", False),
        (b"This ZooKeeper instance is not currently serving requests\n", False),
        (b"", False),
        (b"x" * (ANSWER_BYTES_MAX + 1) + b"\nMode: leader\n", False),
        (None, False),
    ],
)
def test_a_server_leads_if_it_says_so(answer: bytes | None, is_leader: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_role, "ANSWER_LIMIT_S", 10.0 if answer is not None else 0.1)
    asked: list[bytes] = []
    served: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(writer)
        asked.append(await reader.readexactly(4))
        if answer is not None:
            writer.write(answer)
            writer.close()

    async def body() -> None:
        host = real_host("test")
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        assert await leads(host, "127.0.0.1", port) == is_leader
        for writer in served:
            writer.transport.abort()
        listening.close()
        await listening.wait_closed()
        await asyncio.sleep(0)
        assert not await leads(host, "127.0.0.1", port), "it is away"
        assert asked == [b"srvr"]

    run(body())


def test_the_server_of_this_machine_is_asked_once_on_each_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ServerAddress] = []

    async def answer(host: Host, address: str, port: int) -> bool:
        asked.append(("own", address, port))
        return len(asked) == 1

    own = ("own", "10.0.0.1", 2181)
    monkeypatch.setattr(zookeeper_tree, "leads", answer)
    monkeypatch.setattr(ZooKeeperSession, "own_server", property(lambda session: own))

    async def body() -> None:
        tree = await ZooKeeperTree.open(shared_server().address, real_host("test"))
        assert await tree.is_beside_leader()
        assert await tree.is_beside_leader()
        assert asked == [own]
        tree._state_changed("suspended", 0)
        tree._state_changed("connected", tree.session_id)
        assert not await tree.is_beside_leader(), "another server was elected meanwhile"
        assert asked == [own, own]
        await tree.close()

    run(body())


def test_a_store_without_servers_has_no_leader() -> None:
    async def body() -> None:
        host = real_host("test")
        store = MemoryStore(host.clock)

        async def open_session() -> MemoryTree:
            return MemoryTree(store)

        assert not await is_beside_leading_server(MemoryTree(store))
        assert not await is_beside_leading_server(RenewingTree(MemoryTree(store), open_session, host))
        # The only server of an ensemble of one is no reason to lead elsewhere.
        zookeeper = await ZooKeeperTree.open(shared_server().address, host)
        assert not await is_beside_leading_server(RenewingTree(zookeeper, open_session, host))
        await zookeeper.close()

    run(body())
