"""The simulated cluster: sessions that outlive their owners, and what is called a leak."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from triplicate.errors import BadVersion, ConnectionLost
from triplicate.runtime import Host
from triplicate.sim import NodeDied, World
from triplicate_simulator import ClusterOptions, SimulatedCluster, SimulatedNode


def in_cluster(body: Callable[[SimulatedCluster], Awaitable[None]], **options: float) -> SimulatedCluster:
    world = World(1)
    cluster = SimulatedCluster(world, ClusterOptions(bookies=0, session_low_s=1.0, session_high_s=5.0))
    cluster.options.metadata_loss_rate = options.get("loss", 0.0)

    async def main() -> None:
        await cluster.start()
        await body(cluster)

    world.run(main())
    assert world.loop.failures == []
    world.close()
    return cluster


def test_a_session_outlives_its_crashed_owner_for_a_while_and_then_its_nodes_vanish() -> None:
    async def body(cluster: SimulatedCluster) -> None:
        node = SimulatedNode(cluster, "a")
        host = node.power_on()

        async def register(host: Host) -> None:
            metadata = await node.open_metadata(host)
            await metadata.tree.create("/mine", ephemeral=True)

        await host.call(register(host.port))
        node.crash()
        assert cluster.store.exists("/mine") is not None
        await asyncio.sleep(0.9)
        assert cluster.store.exists("/mine") is not None
        await asyncio.sleep(5.0)
        assert cluster.store.exists("/mine") is None

    in_cluster(body)


def test_a_program_that_is_killed_midway_is_reported_as_dead() -> None:
    async def body(cluster: SimulatedCluster) -> None:
        node = cluster.client("a")
        cluster.world.loop.call_later(1.0, node.crash)
        with pytest.raises(NodeDied):
            await node.run(lambda client: asyncio.sleep(10.0))
        assert not node.alive
        assert node.crashes == 1
        assert await node.run(lambda client: asyncio.sleep(0.1, "second life")) == "second life"

    in_cluster(body)


def test_metadata_connections_are_lost_at_the_rate_asked_for() -> None:
    async def body(cluster: SimulatedCluster) -> None:
        node = SimulatedNode(cluster, "a")
        host = node.power_on()
        lost = 0

        async def ask(host: Host) -> None:
            nonlocal lost
            metadata = await node.open_metadata(host)
            for number in range(200):
                try:
                    await metadata.tree.create(f"/node-{number}")
                except ConnectionLost:
                    lost += 1
            cluster.options.metadata_loss_rate = 0.0
            names, _ = await metadata.tree.children("/")
            made = sum(name.startswith("node-") for name in names)
            assert 200 - lost < made < 200, "of the lost ones some were applied and some were not"
            await metadata.aclose()

        await host.call(ask(host.port))
        assert 0 < lost <= cluster.connections_lost < 60

    in_cluster(body, loss=0.1)


def test_what_a_living_node_leaves_behind_is_a_leak() -> None:
    async def body(cluster: SimulatedCluster) -> None:
        host = cluster.client("a").power_on()
        server = cluster.client("b").power_on()

        async def litter(host: Host) -> None:
            asyncio.get_running_loop().call_later(1000.0, print)
            await host.network.connect(asyncio.Protocol, "b", 7)

        await server.call(server.port.network.listen(asyncio.Protocol, "", 7))
        await host.call(litter(host.port))
        host.start(asyncio.Event().wait(), name="forgotten")
        await asyncio.sleep(1.0)
        leaks = "\n".join(cluster.find_leaks())
        for expected in ("task a: forgotten", "timer <print", "connection of a to b", "connection of b to a", "listener b:7"):
            assert expected in leaks, leaks
        cluster.client("a").crash()
        cluster.client("b").crash()
        await asyncio.sleep(1.0)
        assert cluster.find_leaks() == [], "the dead own nothing"

    in_cluster(body)


def test_a_node_that_lost_its_session_opens_another_and_goes_on() -> None:
    async def body(cluster: SimulatedCluster) -> None:
        node = SimulatedNode(cluster, "a")
        host = node.power_on()

        async def ask(host: Host) -> None:
            metadata = await node.open_metadata(host)
            await metadata.tree.create("/before", ephemeral=True)
            assert node.expire_session()
            await metadata.tree.create("/after")
            assert await metadata.tree.exists("/before") is None
            await metadata.aclose()

        await host.call(ask(host.port))
        assert not node.expire_session(), "it was closed"

    in_cluster(body)


def test_a_node_that_is_cut_off_reaches_the_metadata_again_later() -> None:
    async def body(cluster: SimulatedCluster) -> None:
        cluster.cut_off["a"] = 1
        cluster.world.loop.call_later(2.0, cluster.cut_off.pop, "a")
        began = cluster.world.loop.time()
        # A client's program waits for its metadata; another node is not concerned.
        assert await cluster.client("b").run(lambda client: asyncio.sleep(0, "there")) == "there"
        assert cluster.world.loop.time() - began < 1.0
        assert await cluster.client("a").run(lambda client: asyncio.sleep(0, "there")) == "there"
        assert cluster.world.loop.time() - began >= 2.0

    in_cluster(body)


def test_a_rival_changes_a_ledgers_node_before_its_owner_does_and_leaves_others_alone() -> None:
    async def body(cluster: SimulatedCluster) -> None:
        node = SimulatedNode(cluster, "a")
        host = node.power_on()

        async def change(host: Host) -> None:
            metadata = await node.open_metadata(host)
            tree = metadata.tree
            await tree.create("/ledgers/00/0000/L0007", b"as it is", parents=True)
            await tree.create("/else", b"")
            cluster.options.metadata_conflict_rate = 1.0
            with pytest.raises(BadVersion):
                await tree.set("/ledgers/00/0000/L0007", b"changed", 0)
            data, stat = await tree.get("/ledgers/00/0000/L0007")
            assert (data, stat.version) == (b"as it is", 1)
            await tree.set("/else", b"changed", 0)
            await metadata.aclose()

        await host.call(change(host.port))
        await cluster.stop()
        assert cluster.conflicts == 1

    in_cluster(body)


def test_a_call_on_a_node_that_dies_raises_its_death_and_no_later_error() -> None:
    """A bookie whose machine died within its own start-up was taken for one that raises, and the scenario ended."""

    async def body(cluster: SimulatedCluster) -> None:
        node = cluster.client("a")
        host = node.power_on()

        async def die(host: Host) -> None:
            try:
                node.crash()
                host.disk.mkdir("/data")
            finally:
                raise OSError("what unwinding met")

        with pytest.raises(NodeDied):
            await host.call(die(host.port))

    in_cluster(body)
