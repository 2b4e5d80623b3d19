"""Moments at which a node stands still, and waits with a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from triplicate.sim.host import SimulatedHost
from triplicate_simulator.cluster.run_context import RunContext

Cancel = Callable[[], object]


class HoldMoment(Protocol):
    """A moment in the work of a node."""

    def watch(self, context: RunContext, node: str, on_reached: Callable[[str], None]) -> Cancel:
        """Call the function once, with the name of the node, when the node comes to the moment. The returned function ends this."""


@dataclass(frozen=True, slots=True)
class AtPoint:
    """Right before a fault point."""

    point: str

    def watch(self, context: RunContext, node: str, on_reached: Callable[[str], None]) -> Cancel:
        return context.world.points.trap(self.point, on_reached, node=node).cancel


@dataclass(frozen=True, slots=True)
class AtMetadata:
    """While an operation is on its way to the metadata.

    Args:
        skip: this many such operations are let through before.
        operation: its name; empty for any. part: a part of its path.
    """

    skip: int
    operation: str = ""
    part: str = ""

    def watch(self, context: RunContext, node: str, on_reached: Callable[[str], None]) -> Cancel:
        left = self.skip
        looks = context.cluster.metadata_looks

        def look(owner: str, operation: str, path: str) -> None:
            nonlocal left
            if owner != node or self.operation not in ("", operation) or self.part not in path:
                return
            left -= 1
            if left < 0:
                cancel()
                on_reached(node)

        def cancel() -> None:
            if look in looks:
                looks.remove(look)

        looks.append(look)
        return cancel


@dataclass(frozen=True, slots=True)
class AfterTime:
    """This many seconds from now."""

    seconds: float

    def watch(self, context: RunContext, node: str, on_reached: Callable[[str], None]) -> Cancel:
        return context.world.loop.call_later(self.seconds, on_reached, node).cancel


def pausing(context: RunContext, held: list[SimulatedHost], reached: asyncio.Event) -> Callable[[str], None]:
    """The function for a moment: the host of the node that comes to it is paused, and is added to `held`."""

    def on_reached(node: str) -> None:
        host = context.cluster.node(node).host
        if host is not None and host.alive and not host.paused:
            host.pause()
            held.append(host)
        reached.set()

    return on_reached


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event for a limited time. True if it was set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
