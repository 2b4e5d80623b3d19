from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.waiting import eventually
from triplicate.embedded.usable_copy import wait_until_usable
from triplicate.errors import ArgumentError, EnvironmentFault
from triplicate.testing import MemoryCluster

LEADER = SimpleNamespace(node_id="another")


class Machine:
    """A copy that follows."""

    is_leader = False

    def __init__(self) -> None:
        self.unusable: str | None = None
        self.reached = 0
        self.looks = 0

    @property
    def position(self) -> int:
        self.looks += 1
        return self.reached


def hosted(machine: Machine) -> Any:
    return SimpleNamespace(hosted={"main": SimpleNamespace(machine=machine, leader=LEADER, info=SimpleNamespace(log="events"))})


def test_a_copy_that_follows_is_used_once_it_has_what_the_log_had() -> None:
    async def body() -> None:
        async with asyncio.timeout(60), MemoryCluster() as cluster:
            await cluster.logs.create("events", cluster.log_settings)
            async with await cluster.logs.writer("events", owner="test") as writer:
                await writer.append(b"x")
            machine = Machine()
            waits = asyncio.ensure_future(wait_until_usable(cluster.node, hosted(machine), "main", "store main", 30))
            await eventually(lambda: machine.looks > 2 or waits.done())
            assert not waits.done()
            machine.reached = 1
            await eventually(waits.done)
            await waits

    asyncio.run(body())


def test_a_copy_that_is_not_served_is_waited_for_with_a_limit() -> None:
    async def body() -> None:
        async with asyncio.timeout(60), MemoryCluster() as cluster:
            machine = Machine()
            machine.unusable = "this copy is damaged"
            with pytest.raises(EnvironmentFault, match=r"store main cannot be used after 0\.01 s: this copy is damaged"):
                await wait_until_usable(cluster.node, hosted(machine), "main", "store main", 0.01)
            with pytest.raises(ArgumentError, match="not nan"):
                await wait_until_usable(cluster.node, hosted(machine), "main", "store main", float("nan"))

    asyncio.run(body())
