"""Losses that last: machines that are gone for good with the disks of their bookies, replaced disks, and copies that rot on a disk.

A cluster survives several of them, one after another, if the lost copies are made again in between. So each waits until the workload says
that no copy of an earlier loss is missing. A loss that waits in vain does not strike.
"""

from __future__ import annotations

import asyncio
import random

from triplicate_simulator.cluster.plan import Fault, Value
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.faults.disk_faults import rot_entries, rot_stretch
from triplicate_simulator.faults.fault_kind import FaultTargets
from triplicate_simulator.faults.storage_faults import wipe

PATIENCE_S = 30.0
"""How long a loss waits until the copies of an earlier one are made again."""
LOOK_S = 0.2
STRETCHES = 3
"""Rotten stretches of entry logs of one loss."""
ENTRIES_SHARE = 0.7
"""Share of the rotten disks with damage that only digests show."""


def draw_disks_lost(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw a bookie that is gone for good."""
    if targets.losses_max < 1:
        return None
    return Fault("disks_lost", at_s, rng.choice(targets.bookies), options={"silent": rng.random() < 0.5})


async def lose_disks(context: RunContext, fault: Fault) -> None:
    """Stop a bookie, and those that the options name as `others` on its machine, for ever. Their disks are empty."""
    if not await may_strike(context):
        return
    names = [fault.target, *str(fault.options.get("others", "")).split()]
    context.record_fault("disks_lost", nodes=" ".join(names))
    for name in names:
        _lose(context, name, silent=bool(fault.options.get("silent")))
    context.note_loss()
    if fault.other:
        # Its writer dies in the same moment, so that no client replaces the bookie in the ledger being written.
        writer = context.cluster.node(fault.other)
        writer.crash(silent=bool(fault.options.get("silent")))
        await asyncio.sleep(fault.lasts_s)
        await writer.restart()


def _lose(context: RunContext, name: str, *, silent: bool) -> None:
    node = context.cluster.bookies[name]
    node.crash(silent=silent)
    context.world.disk(name).wipe()
    node.rotten = node.lost = f"its disks were lost for good at {context.time():.6f}"
    context.lost_for_good_s[name] = context.time()
    context.world.recorder.fact(name, "bookie.lost", {"reason": node.lost})


def draw_copies_rot(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw flipped bits in many entries of a bookie, while another bookie is away, so that its copies are made from the others."""
    if targets.losses_max < 1:
        return None
    target, away = rng.sample(targets.bookies, 2)
    lasts_s = rng.choice([6.0, 10.0])
    options: dict[str, Value] = {"entries": random.Random(f"rotten entries {target} {at_s!r}").random() < ENTRIES_SHARE}
    return Fault("copies_rot", at_s, target, away, lasts_s=lasts_s, options=options)


async def rot_copies(context: RunContext, fault: Fault) -> None:
    """Flip bits in entry logs, and take a bookie away that shares ledgers. When it is back, the rotten disks are taken out for good.

    With the option `stays` they are left to the scrubber of their bookie. With `entries` only entries rot: their bookie answers with them.
    """
    if not await may_strike(context):
        return
    node, disk = context.cluster.bookies[fault.target], context.world.disk(fault.target)
    away = context.cluster.bookies[context.companion_of(node.name) or fault.other]
    rng = context.world.rng("rot", fault.target, fault.at_s)
    rotten = [rot_entries(disk, rng)] if fault.options.get("entries") else [rot_stretch(disk, rng) for _ in range(STRETCHES)]
    places = [place for place in rotten if place is not None]
    if not places:
        return
    node.excuse_failures()
    node.rotten = f"bit rot at {places[0]}"
    context.record_fault("copies_rot", node=node.name, places=" ".join(f"{path}:{offset}" for path, offset in places))
    # A bookie answers from its memory while it can. A start lets it read what the disk has.
    node.crash(keep_unsynced=True)
    await node.restart()
    away.crash(keep_unsynced=True)
    await asyncio.sleep(fault.lasts_s)
    await away.restart()
    await asyncio.sleep(1.0)
    if fault.options.get("stays"):
        return
    _lose(context, node.name, silent=False)
    context.note_loss()


def draw_disks_replaced(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw a bookie whose disks are replaced, and which is filled again by auto-recovery."""
    if targets.losses_max < 1:
        return None
    options: dict[str, Value] = {"silent": rng.random() < 0.5, "unformatted": rng.random() < 0.3}
    return Fault("disks_replaced", at_s, rng.choice(targets.bookies), lasts_s=rng.choice([0.1, 1.0, 8.0]), options=options)


async def replace_disks(context: RunContext, fault: Fault) -> None:
    """Replace the disks of a bookie, as `wipe` does, once no copy of an earlier loss is missing."""
    if await may_strike(context) and context.may_replace(fault.target):
        before = context.struck.get("wipe", 0)
        await wipe(context, fault)
        if context.struck.get("wipe", 0) > before:
            context.count_fault("disks_replaced")


def draw_machines_away(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a moment without most machines: new segments of logs get fewer copies."""
    return Fault("machines_away", at_s, lasts_s=rng.choice([3.0, 6.0]), options={"left": 2, "silent": rng.random() < 0.3})


async def take_machines_away(context: RunContext, fault: Fault) -> None:
    """Kill the bookies of all machines but a few, and start them again after a while. Nothing is lost."""
    bookies, machines = context.cluster.bookies, context.cluster.options.machines
    rng = context.world.rng("machines away", fault.at_s)
    running = list(dict.fromkeys(machines.get(name, name) for name, node in bookies.items() if node.serves))
    left = rng.sample(running, min(len(running), int(fault.options.get("left", 2))))
    struck = [node for name, node in bookies.items() if node.serves and not node.under_repair and machines.get(name, name) not in left]
    if not struck:
        return
    context.record_fault("machines_away", nodes=" ".join(node.name for node in struck))
    for node in struck:
        node.crash(silent=bool(fault.options.get("silent")), keep_unsynced=True)
    await asyncio.sleep(fault.lasts_s)
    for node in struck:
        await node.restart()


async def may_strike(context: RunContext) -> bool:
    """Wait until one more loss is bearable; False if it is not in time."""
    until_s = context.time() + PATIENCE_S
    while not context.bears_loss():
        if context.time() > until_s or context.faults_over.is_set():
            return False
        await asyncio.sleep(LOOK_S)
    return True
