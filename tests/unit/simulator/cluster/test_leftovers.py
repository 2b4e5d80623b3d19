"""Nodes left over in the metadata at the end of a run are found, and those that may stay are not reported."""

from __future__ import annotations

import asyncio

from triplicate.client import Client
from triplicate.log import LogClientSettings, Logs, StagingOrigin
from triplicate.metadata import ReplicatedMemoryStore, ReplicatedMemoryTree
from triplicate.sim import World
from triplicate.sim.host import SimulatedClock
from triplicate_simulator import SimulatedCluster
from triplicate_simulator.cluster.leftovers import find_unexpected_nodes, find_unreferenced


def test_ephemeral_nodes_and_nodes_of_unknown_purpose_are_strange() -> None:
    world = World(1)

    async def body() -> None:
        store = ReplicatedMemoryStore(SimulatedClock(world.loop, 0.0), world.loop.call_later, world.rng("metadata"))
        tree = ReplicatedMemoryTree(store)
        await tree.create("/triplicate/id/logs/orders", parents=True)
        assert find_unexpected_nodes(store) == []
        await tree.create("/triplicate/id/forgotten-by-somebody")
        await tree.create("/ledgers/available/bookie-1", ephemeral=True, parents=True)
        unexpected = "nodes of unknown purpose: /ledgers/available/bookie-1, /triplicate/id/forgotten-by-somebody"
        assert find_unexpected_nodes(store) == [unexpected, "ephemeral nodes without a process: /ledgers/available/bookie-1"]

    world.run(body())
    world.close()


def test_a_ledger_without_a_log_and_a_publisher_that_never_was_are_found() -> None:
    world = World(1)
    cluster = SimulatedCluster(world)

    async def use(client: Client) -> None:
        logs = Logs(client, LogClientSettings())
        await logs.create("orders")
        async with await logs.staging(StagingOrigin("orders", "app")) as staging:
            await staging.append_many([b"x"])
        staged = await staging.seal()
        await logs.publish("orders", [staged], application="app", batch=0)
        assert await find_unreferenced(client, LogClientSettings(), ["app"]) == []
        stray = await client.create()
        await stray.close()
        assert await find_unreferenced(client, LogClientSettings(), []) == [
            "publishers of orders that never were: app",
            f"ledgers that no log lists: {stray.ledger_id}",
        ]

    async def body() -> None:
        await cluster.start()
        async with asyncio.timeout(60.0):
            await cluster.client("user").run(use)
        await cluster.stop()

    world.run(body())
    world.close()
