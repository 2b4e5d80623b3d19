"""Faults of the network: blocked and slow links, partitions, broken connections."""

from __future__ import annotations

import asyncio
import random

from triplicate_simulator.cluster.plan import Fault
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.faults.fault_kind import Draw, FaultTargets, undo_at_end

BLOCKED_S = (0.05, 0.5, 2.0, 8.0)
SLOW_FACTORS = (5.0, 30.0, 200.0)
SESSION_S = 4.0
"""A node that is cut off from the metadata store for longer has lost its session."""
RESETS = 12
"""Connections that one fault breaks at most, one after another."""


def draw_link(kind: str) -> Draw:
    """Return a draw of faults of the link between a bookie and a client, in one direction."""

    def draw(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
        if not targets.clients:
            return None
        source, other = rng.choice(targets.bookies), rng.choice(targets.clients)
        if rng.random() < 0.5:
            source, other = other, source
        options = {"factor": rng.choice(SLOW_FACTORS)} if kind == "link_slow" else {}
        return Fault(kind, at_s, source, other, lasts_s=rng.choice(BLOCKED_S), options=options)

    return draw


async def block(context: RunContext, fault: Fault) -> None:
    """Block traffic from one node to the other; the way back is open."""
    network, source, other = context.world.network, fault.target, fault.other
    context.record_fault("link_block", source=source, target=other)
    network.block(source, other)
    with undo_at_end(lambda: network.unblock(source, other)):
        await asyncio.sleep(fault.lasts_s)


async def slow(context: RunContext, fault: Fault) -> None:
    """Multiply the delay from one node to the other."""
    network, source, other = context.world.network, fault.target, fault.other
    context.record_fault("link_slow", source=source, target=other)
    network.slow(source, other, float(fault.options.get("factor", SLOW_FACTORS[0])))
    with undo_at_end(lambda: network.slow(source, other, 1.0)):
        await asyncio.sleep(fault.lasts_s)


def draw_reset(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw broken connections of a node, inside a frame where there is one."""
    node = targets.any_node(rng, bookie_rate=0.5)
    others = targets.clients if node in targets.bookies else targets.bookies
    other = rng.choice(others) if others and rng.random() < 0.5 else ""
    options = {"count": rng.choice([1, 1, 3, RESETS]), "inside": rng.random() < 0.7}
    return Fault("reset", at_s, node, other, lasts_s=1.0, options=options)


async def reset(context: RunContext, fault: Fault) -> None:
    """Break the connections that are open now, or the next few that carry a write, inside that write."""
    network, node, other = context.world.network, fault.target, fault.other or None
    if not fault.options.get("inside"):
        broken = network.reset(node, other)
        if broken:
            context.record_fault("reset", node=node, other=fault.other, connections=broken)
        return
    before = network.fault_counts.get("reset_at_write", 0)
    context.announce_fault("reset", node=node, other=fault.other, at="its next writes")
    count = min(RESETS, int(fault.options.get("count", 1)))
    for _ in range(count):
        network.reset_at_next_write(node, other)
    with undo_at_end(lambda: network.tears.pop((node, other), None)):
        await asyncio.sleep(fault.lasts_s)
    if network.fault_counts.get("reset_at_write", 0) > before:
        context.count_fault("reset")


def draw_partition(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw one node, or a group, against all others; in some cases cut off from the metadata store too."""
    nodes = list(dict.fromkeys([*targets.bookies, *targets.clients]))
    size = 1 if rng.random() < 0.5 else rng.randrange(2, max(3, len(nodes) // 2 + 1))
    group = sorted(rng.sample(nodes, min(size, len(nodes) - 1)))
    lasts_s = rng.choice([0.5, 2.0, 6.0, 12.0])
    return Fault("partition", at_s, lasts_s=lasts_s, options={"group": " ".join(group), "metadata": rng.random() < 0.5})


async def partition(context: RunContext, fault: Fault) -> None:
    """Block traffic both ways between the group and all other nodes."""
    network, cluster = context.world.network, context.cluster
    group = str(fault.options["group"]).split()
    others = [name for name in cluster.node_names() if name not in group]
    context.record_fault("partition", group=" ".join(group), metadata=bool(fault.options.get("metadata")))
    network.partition(group, others)
    with undo_at_end(lambda: network.heal(group, others)):
        if fault.options.get("metadata"):
            await _cut_off(context, group, fault.lasts_s)
        else:
            await asyncio.sleep(fault.lasts_s)


async def _cut_off(context: RunContext, group: list[str], lasts_s: float) -> None:
    """Cut nodes off from the metadata store too. Their sessions end if that takes long."""
    cluster = context.cluster
    with cluster.without_metadata(group):
        await asyncio.sleep(min(lasts_s, SESSION_S))
        if lasts_s > SESSION_S:
            for name in group:
                cluster.node(name).expire_session()
            await asyncio.sleep(lasts_s - SESSION_S)
