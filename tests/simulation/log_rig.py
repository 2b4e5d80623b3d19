"""A simulated cluster with one log, and scenarios that run in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from triplicate.client import Client
from triplicate.errors import TriplicateError
from triplicate.log import LogClientSettings, Logs, LogSettings, LogWriter
from triplicate.sim import World
from triplicate_simulator import SimulatedCluster
from triplicate_simulator.cluster.simulated_cluster import ClusterOptions

Result = TypeVar("Result")

LOG = "l"


class LogRig:
    """A cluster with one log, and processes that use it."""

    def __init__(self, world: World, cluster: SimulatedCluster) -> None:
        self.world = world
        self.cluster = cluster
        self.settings = LogClientSettings(entry_target_bytes=1024, owner_grace_s=1.0, orphan_grace_s=0.0, staging_grace_s=0.0)

    def at(self, name: str, program: Callable[[Logs], Awaitable[Result]]) -> asyncio.Task[Result]:
        """Run a program on a new node; NodeDied ends it if the node dies."""

        async def with_logs(client: Client) -> Result:
            return await program(Logs(client, self.settings))

        return self.world.loop.start_task(self.cluster.client(name).run(with_logs), name=name)

    async def read_all(self) -> list[bytes]:
        """Every record of the log, read by a new reader."""
        found: list[bytes] = []

        async def program(logs: Logs) -> None:
            head, end = await logs.head(LOG), await logs.end_offset(LOG)
            async with await logs.reader(LOG, head.first_offset) as reader:
                while reader.position < end:
                    entry = await reader.next_entry(20.0)
                    assert entry is not None, f"nothing comes behind offset {reader.position}, but the log ends at {end}"
                    found.extend(bytes(value) for value in entry.values if value is not None)

        await self.at("auditor", program)
        return found


def run_scenario(scenario: Callable[[LogRig], Awaitable[None]], seed: int, settings: LogSettings | None = None) -> None:
    """Run a scenario in a new world; no task may be left over, and no callback may have failed."""
    world = World(seed, time_max_s=500.0)
    cluster = SimulatedCluster(world, ClusterOptions())
    rig = LogRig(world, cluster)

    async def main() -> None:
        await cluster.start()
        await rig.at("administrator", lambda logs: logs.create(LOG, settings or LogSettings(compression="none")))
        await scenario(rig)
        await cluster.revive()
        await cluster.stop()
        await asyncio.sleep(2.0)
        assert cluster.find_leaks() == []

    try:
        world.run(main())
        assert world.loop.failures == []
    finally:
        world.close()


async def append_until_failure(writer: LogWriter, name: str, acknowledged: list[bytes], error: list[TriplicateError]) -> None:
    """Append one record after another until an append fails."""
    number = 0
    while True:
        value = f"{name} {number}".encode()
        try:
            assert await writer.append(value) == writer.start_offset + number
        except TriplicateError as failure:
            error.append(failure)
            return
        acknowledged.append(value)
        number += 1
