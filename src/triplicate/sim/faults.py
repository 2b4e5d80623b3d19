"""The faults: how each kind is drawn and how it strikes.

Each seed turns a random subset of the kinds on, so that runs differ in kind and not only in detail (swarm testing: Groce et al.,
"Swarm Testing", 2012).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from triplicate.sim.cluster import LEDGER_DIRECTORY, BookieNode
from triplicate.sim.host import NodeDied
from triplicate.sim.loop import HostCrashed, context_of
from triplicate.sim.plan import Strike
from triplicate.sim.stage import Stage

SLOW_FACTOR = 10.0
DOWN_S = (0.05, 0.5, 2.0, 6.0)
"""How long a struck node stays down."""


@dataclass(frozen=True)
class FaultKind:
    """One kind: `draw` makes a strike at a time, or None where there is nothing to strike; `strike` does it and undoes it."""

    draw: Callable[[random.Random, Sequence[str], Sequence[str], float], Strike | None]
    strike: Callable[[Stage, Strike], Awaitable[None]]


def draw_faults(chance: random.Random, bookies: Sequence[str], clients: Sequence[str], duration_s: float) -> tuple[Strike, ...]:
    """Draw a run's faults: at least three, of a random subset of the kinds.

    Args:
        bookies, clients: the nodes that may be struck.
        duration_s: when faults stop.
    """
    kinds = [name for name in KINDS if chance.random() < 0.4] or [chance.choice(list(KINDS))]
    strikes: list[Strike] = []
    for _ in range(chance.randrange(3, 7)):
        at_s = duration_s * chance.uniform(0.02, 0.85)
        strike = KINDS[chance.choice(kinds)].draw(chance, bookies, clients, at_s)
        if strike is not None:
            strikes.append(strike)
    return tuple(sorted(strikes, key=lambda strike: strike.at_s))


async def play_fault(stage: Stage, strike: Strike, began_s: float) -> None:
    """Wait for its time, strike, and undo it when its time is over."""
    await asyncio.sleep(max(0.0, began_s + strike.at_s - stage.time()))
    await KINDS[strike.kind].strike(stage, strike)


# Processes.


def _draw_down(kind: str) -> Callable[[random.Random, Sequence[str], Sequence[str], float], Strike | None]:
    def draw(chance: random.Random, bookies: Sequence[str], clients: Sequence[str], at_s: float) -> Strike:
        nodes = bookies if kind == "stop" or not clients or chance.random() < 0.6 else clients
        return Strike(kind, at_s, chance.choice(nodes), lasts_s=chance.choice(DOWN_S), options={"silent": chance.random() < 0.5})

    return draw


async def _crash(stage: Stage, strike: Strike) -> None:
    node = stage.cluster.node(strike.target)
    if not node.alive:
        return
    stage.strike(strike.kind, node=strike.target)
    if strike.kind == "stop" and isinstance(node, BookieNode):
        with suppress(NodeDied):
            await node.stop()
    node.crash(silent=bool(strike.options.get("silent")), keep_unsynced=strike.kind != "crash")
    await asyncio.sleep(strike.lasts_s)
    await node.restart()


def _draw_crash_at(chance: random.Random, bookies: Sequence[str], clients: Sequence[str], at_s: float) -> Strike:
    operation = chance.choice(["any", "sync", "flush"])
    # A flush is about a dozen operations.
    after = chance.randrange(12 if operation == "flush" else 30)
    return Strike(
        "crash_at",
        at_s,
        chance.choice(bookies),
        lasts_s=chance.choice(DOWN_S),
        options={"operation": operation, "after": after, "silent": True},
    )


async def _crash_at(stage: Stage, strike: Strike) -> None:
    """Strike right before a disk operation of a bookie, which may be in the midst of a flush; wait for it a second at most."""
    node, disk = stage.cluster.node(strike.target), stage.world.disk(strike.target)
    if not node.alive or disk.before_operation is not None:
        return
    struck = asyncio.Event()
    kind, left = strike.options["operation"], int(strike.options["after"])

    def before_operation(operation: str, path: str) -> None:
        nonlocal left
        if kind in ("any", operation) or (kind == "flush" and is_of_flush(path)):
            left -= 1
        if left < 0:
            stage.world.loop.call_soon(struck.set, context=context_of(None))
            stage.strike(f"crash_at_{kind}", node=node.name)
            node.crash(silent=bool(strike.options.get("silent")))
            raise HostCrashed(node.name)

    disk.before_operation = before_operation
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            await struck.wait()
    if disk.before_operation is before_operation:
        disk.before_operation = None
    await asyncio.sleep(strike.lasts_s)
    await node.restart()


def is_of_flush(path: str) -> bool:
    """Whether only flushes touch this file, once the bookie runs: logs, index, and the mark of the journal."""
    return path.startswith(LEDGER_DIRECTORY) or path.rpartition("/")[2].startswith("mark")


# Links.


def _draw_link(kind: str) -> Callable[[random.Random, Sequence[str], Sequence[str], float], Strike | None]:
    def draw(chance: random.Random, bookies: Sequence[str], clients: Sequence[str], at_s: float) -> Strike | None:
        if not clients:
            return None
        source, other = chance.choice(bookies), chance.choice(clients)
        if chance.random() < 0.5:
            source, other = other, source
        return Strike(kind, at_s, source, other, lasts_s=chance.choice([0.05, 0.5, 2.0, 8.0]))

    return draw


async def _link(stage: Stage, strike: Strike) -> None:
    network, source, other = stage.world.network, strike.target, strike.other
    stage.strike(strike.kind, source=source, target=other)
    match strike.kind:
        case "link_block":
            network.block(source, other)
            await asyncio.sleep(strike.lasts_s)
            network.unblock(source, other)
        case "link_slow":
            network.slow(source, other, SLOW_FACTOR)
            await asyncio.sleep(strike.lasts_s)
            network.slow(source, other, 1.0)
        case "reset":
            network.reset(source, other)


# Metadata.


def _draw_expiry(chance: random.Random, bookies: Sequence[str], clients: Sequence[str], at_s: float) -> Strike:
    return Strike("session_expired", at_s, chance.choice(bookies))


async def _expire(stage: Stage, strike: Strike) -> None:
    node = stage.cluster.node(strike.target)
    # A bookie that is still starting would, rightly, give up; whoever supervises processes would start it again.
    if isinstance(node, BookieNode) and node.bookie is None:
        return
    if node.expire_session():
        stage.strike("session_expired", node=strike.target)


def _draw_metadata_lost(chance: random.Random, bookies: Sequence[str], clients: Sequence[str], at_s: float) -> Strike:
    return Strike("metadata_lost", at_s, lasts_s=chance.choice([2.0, 8.0, 20.0]), options={"rate": chance.choice([0.02, 0.1])})


async def _lose_metadata(stage: Stage, strike: Strike) -> None:
    options = stage.cluster.options
    before = stage.cluster.connections_lost
    options.metadata_loss_rate = float(strike.options["rate"])
    await asyncio.sleep(strike.lasts_s)
    options.metadata_loss_rate = 0.0
    if stage.cluster.connections_lost > before:
        stage.strike("metadata_lost", lost=stage.cluster.connections_lost - before)


KINDS: dict[str, FaultKind] = {
    "crash": FaultKind(_draw_down("crash"), _crash),
    "kill": FaultKind(_draw_down("kill"), _crash),
    "stop": FaultKind(_draw_down("stop"), _crash),
    "crash_at": FaultKind(_draw_crash_at, _crash_at),
    "link_block": FaultKind(_draw_link("link_block"), _link),
    "link_slow": FaultKind(_draw_link("link_slow"), _link),
    "reset": FaultKind(_draw_link("reset"), _link),
    "session_expired": FaultKind(_draw_expiry, _expire),
    "metadata_lost": FaultKind(_draw_metadata_lost, _lose_metadata),
}
"""All kinds, by the name in a `Strike`."""
