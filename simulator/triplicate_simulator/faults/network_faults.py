"""Faults of the network: blocked and slow links, partitions, broken connections."""

from __future__ import annotations

import asyncio
import random

from triplicate_simulator.cluster.plan import Fault
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.faults.fault_kind import Draw, FaultTargets, undone

BLOCKED_S = (0.05, 0.5, 2.0, 8.0)
SLOW_FACTORS = (5.0, 30.0, 200.0)
SESSION_S = 4.0
"""A node that is cut off from the metadata store for longer has lost its session."""
RESETS = 12
"""Connections that one fault breaks at most, one after another."""


def draw_link(kind: str) -> Draw:
    """Return a draw of faults of the link between a bookie and a client, in one direction."""

    def draw(chance: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
        if not targets.clients:
            return None
        source, other = chance.choice(targets.bookies), chance.choice(targets.clients)
        if chance.random() < 0.5:
            source, other = other, source
        options = {"factor": chance.choice(SLOW_FACTORS)} if kind == "link_slow" else {}
        return Fault(kind, at_s, source, other, lasts_s=chance.choice(BLOCKED_S), options=options)

    return draw


async def block(stage: RunContext, strike: Fault) -> None:
    """Block traffic from one node to the other; the way back is open."""
    network, source, other = stage.world.network, strike.target, strike.other
    stage.strike("link_block", source=source, target=other)
    network.block(source, other)
    with undone(lambda: network.unblock(source, other)):
        await asyncio.sleep(strike.lasts_s)


async def slow(stage: RunContext, strike: Fault) -> None:
    """Multiply the delay from one node to the other."""
    network, source, other = stage.world.network, strike.target, strike.other
    stage.strike("link_slow", source=source, target=other)
    network.slow(source, other, float(strike.options.get("factor", SLOW_FACTORS[0])))
    with undone(lambda: network.slow(source, other, 1.0)):
        await asyncio.sleep(strike.lasts_s)


def draw_reset(chance: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw broken connections of a node, inside a frame where there is one."""
    node = targets.any_node(chance, bookie_rate=0.5)
    others = targets.clients if node in targets.bookies else targets.bookies
    other = chance.choice(others) if others and chance.random() < 0.5 else ""
    options = {"count": chance.choice([1, 1, 3, RESETS]), "inside": chance.random() < 0.7}
    return Fault("reset", at_s, node, other, lasts_s=1.0, options=options)


async def reset(stage: RunContext, strike: Fault) -> None:
    """Break the connections that are open now, or the next few that carry a write, inside that write."""
    network, node, other = stage.world.network, strike.target, strike.other or None
    if not strike.options.get("inside"):
        broken = network.reset(node, other)
        if broken:
            stage.strike("reset", node=node, other=strike.other, connections=broken)
        return
    before = network.strikes.get("reset_at_write", 0)
    stage.announce("reset", node=node, other=strike.other, at="its next writes")
    count = min(RESETS, int(strike.options.get("count", 1)))
    for _ in range(count):
        network.reset_at_next_write(node, other)
    with undone(lambda: network.tears.pop((node, other), None)):
        await asyncio.sleep(strike.lasts_s)
    if network.strikes.get("reset_at_write", 0) > before:
        stage.count_strike("reset")


def draw_partition(chance: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw one node, or a group, against all others; in some cases cut off from the metadata store too."""
    everybody = list(dict.fromkeys([*targets.bookies, *targets.clients]))
    size = 1 if chance.random() < 0.5 else chance.randrange(2, max(3, len(everybody) // 2 + 1))
    group = sorted(chance.sample(everybody, min(size, len(everybody) - 1)))
    lasts_s = chance.choice([0.5, 2.0, 6.0, 12.0])
    return Fault("partition", at_s, lasts_s=lasts_s, options={"group": " ".join(group), "metadata": chance.random() < 0.5})


async def partition(stage: RunContext, strike: Fault) -> None:
    """Block traffic both ways between the group and all other nodes."""
    network, cluster = stage.world.network, stage.cluster
    group = str(strike.options["group"]).split()
    others = [name for name in cluster.node_names() if name not in group]
    stage.strike("partition", group=" ".join(group), metadata=bool(strike.options.get("metadata")))
    network.partition(group, others)
    with undone(lambda: network.heal(group, others)):
        if strike.options.get("metadata"):
            await _cut_off(stage, group, strike.lasts_s)
        else:
            await asyncio.sleep(strike.lasts_s)


async def _cut_off(stage: RunContext, group: list[str], lasts_s: float) -> None:
    """Cut nodes off from the metadata store too. Their sessions end if that takes long."""
    cluster = stage.cluster
    for name in group:
        cluster.cut_off[name] = cluster.cut_off.get(name, 0) + 1

    def rejoin() -> None:
        for name in group:
            cluster.cut_off[name] -= 1
            if not cluster.cut_off[name]:
                del cluster.cut_off[name]

    with undone(rejoin):
        await asyncio.sleep(min(lasts_s, SESSION_S))
        if lasts_s > SESSION_S:
            for name in group:
                cluster.node(name).expire_session()
            await asyncio.sleep(lasts_s - SESSION_S)
