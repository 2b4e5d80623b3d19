"""Clients of Redis over a cluster: they find the leader, lose no answered change, and read at followers what their level allows."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

from tests.unit.kv.store_cluster import StoreCluster, play
from tests.waiting import LOOP_POLL_S, PLAY_LIMIT_S
from triplicate.kv.resp.resp_connections import RespConnections, RespLimits
from triplicate.kv.resp.resp_security import RespSecurity
from triplicate.runtime import real_host


class Served:
    """A server on each node of a cluster."""

    def __init__(self, cluster: StoreCluster) -> None:
        self.cluster = cluster
        self.servers: dict[str, RespConnections] = {}

    async def __aenter__(self) -> Served:
        for name in self.cluster.nodes:
            server = RespConnections(real_host(name), self.cluster.stores[name], "", RespLimits(), RespSecurity(), None)
            self.servers[name] = server
            await server.listen(("127.0.0.1", 0))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self.servers.values():
            await server.aclose()

    def client(self, name: str) -> Any:
        return redis.asyncio.Redis(port=self.servers[name].address[1], protocol=3)

    async def at_leader(self, *words: str) -> Any:
        """Send a command to one node after another until one serves it."""
        while True:
            for name in list(self.cluster.nodes):
                async with self.client(name) as client:
                    try:
                        return await client.execute_command(*words)
                    except (redis.exceptions.ReadOnlyError, redis.exceptions.ConnectionError):
                        pass  # This node follows or is down; the next one is asked.
            await asyncio.sleep(LOOP_POLL_S)


def test_clients_go_on_with_another_leader_and_followers_serve_weaker_levels(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        await cluster.leader()
        first = cluster.leader_name()
        async with AsyncExitStack() as opened:
            served = await opened.enter_async_context(Served(cluster))
            leading = await opened.enter_async_context(served.client(first))
            for number in range(20):
                assert await leading.incr("n") == number + 1
            position = await leading.execute_command("TRIPLICATE.POSITION")
            for name in cluster.nodes:
                if name != first:
                    following = await opened.enter_async_context(served.client(name))
                    with pytest.raises(redis.exceptions.ReadOnlyError, match=f"node {first} at {first}:6379"):
                        await following.set("n", "0")
                    with pytest.raises(redis.exceptions.ReadOnlyError, match=f"at {first}:6379"):
                        await following.get("n")
                    await following.execute_command("TRIPLICATE.LEVEL", "session")
                    await following.execute_command("TRIPLICATE.POSITION", position)
                    assert await following.get("n") == b"20"
                    assert (await following.role())[:3] == [b"slave", first.encode(), 6379]
                    assert (await following.info("replication"))["master_port"] == 6379
            await cluster.kill(first)
            assert await served.at_leader("INCR", "n") == 21
            assert await served.at_leader("TRIPLICATE.CAS", "n", "20", "0") == 0
            assert await served.at_leader("TRIPLICATE.CAS", "n", "21", "0") == 1
            assert await served.at_leader("GET", "n") == b"0"

    play(tmp_path, scene, nodes=3)


def test_clients_learn_where_their_last_answer_was_read_and_how_old_it_was(tmp_path: Path) -> None:
    def at_any_level(connection: Any) -> None:
        connection.on_connect()
        connection.send_command("TRIPLICATE.LEVEL", "any")
        assert connection.read_response() == b"OK"

    def client(port: int, protocol: int, **more: Any) -> Any:
        return redis.Redis(port=port, protocol=protocol, single_connection_client=True, **more)

    def place(reply: Any) -> tuple[str, int, float | None]:
        """Version 2 of the protocol has no maps, and texts for numbers with a point."""
        facts = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
        age = facts[b"age"]
        return facts[b"node"].decode(), facts[b"position"], None if age is None else float(age)

    def use(ports: dict[str, int], leader: str, protocol: int) -> None:
        ((follower, port),) = ((name, port) for name, port in ports.items() if name != leader)
        with client(ports[leader], protocol) as leading:
            assert leading.execute_command("TRIPLICATE.LASTREAD") is None
            leading.set("a", "1")
            position = leading.execute_command("TRIPLICATE.POSITION")
            assert place(leading.execute_command("TRIPLICATE.LASTREAD")) == (leader, position, 0.0)
        with client(port, protocol, redis_connect_func=at_any_level) as following:
            assert following.execute_command("TRIPLICATE.LASTREAD") is None
            following.execute_command("TRIPLICATE.LEVEL", "session")
            assert following.execute_command("TRIPLICATE.POSITION", position) == position
            assert following.execute_command("TRIPLICATE.LASTREAD") is None
            assert following.get("a") == b"1"
            places = [place(following.execute_command("TRIPLICATE.LASTREAD"))]
            assert following.keys("*") == [b"a"]
            places.append(place(following.execute_command("TRIPLICATE.LASTREAD")))
            for is_transaction in (True, False):
                found, reply = following.pipeline(is_transaction).get("a").execute_command("TRIPLICATE.LASTREAD").execute()
                assert found == b"1"
                places.append(place(reply))
            for node, read_position, age_s in places:
                assert (node, read_position >= position) == (follower, True)
                assert age_s is not None
                assert 0.0 < age_s < PLAY_LIMIT_S
            following.execute_command("RESET")
            assert following.execute_command("TRIPLICATE.LASTREAD") is None

    async def scene(cluster: StoreCluster) -> None:
        await cluster.leader()
        leader = cluster.leader_name()
        async with Served(cluster) as served:
            ports = {name: server.address[1] for name, server in served.servers.items()}
            for protocol in (2, 3):
                await asyncio.to_thread(use, ports, leader, protocol)

    play(tmp_path, scene, nodes=2)


def test_the_blocking_client_of_redis_is_served(tmp_path: Path) -> None:
    def use(port: int) -> object:
        with redis.Redis(port=port, decode_responses=True) as client:
            client.set("a", "1")
            with client.pipeline() as pipe:
                pipe.incr("a")
                pipe.get("a")
                found = pipe.execute()
            return client.transaction(lambda pipe: pipe.multi() or pipe.append("a", "!"), "a"), found, client.get("a")

    async def scene(cluster: StoreCluster) -> None:
        await cluster.leader()
        async with Served(cluster) as served:
            assert await asyncio.to_thread(use, served.servers["n1"].address[1]) == ([2], [2, "2"], "2!")

    play(tmp_path, scene)


def test_many_clients_count_without_a_loss(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        await cluster.leader()
        async with Served(cluster) as served, served.client("n1") as client:

            async def count() -> None:
                for _ in range(10):
                    await client.incr("n")
                    await client.incrbyfloat("x", 0.5)

            await asyncio.gather(*(count() for _ in range(8)))
            assert await client.mget("n", "x") == [b"80", b"40"]

    play(tmp_path, scene)
