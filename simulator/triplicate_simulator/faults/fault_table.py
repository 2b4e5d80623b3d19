"""The faults: how each kind is drawn and how it is carried out.

Each seed enables a random subset of the kinds, so that runs differ in kind and not only in detail (swarm testing: Groce et al., "Swarm
Testing", 2012).
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

from triplicate_simulator.cluster.plan import Fault
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.faults import (
    disk_faults,
    lasting_losses,
    metadata_faults,
    network_faults,
    process_faults,
    storage_faults,
    triggered_faults,
)
from triplicate_simulator.faults.fault_kind import FaultKind, FaultTargets

ON_RATE = 0.3
"""Probability that a kind is enabled in a seed."""
STRIKES_MIN, STRIKES_MAX = 3, 8
STORAGE_RATE = 0.3
"""Probability that a seed has one more fault of a bookie's storage as a whole."""
DRAWS_MAX = 200

FAULT_KINDS: dict[str, FaultKind] = {
    "crash": FaultKind(
        "a machine loses its power: what was not synced is lost or torn", process_faults.draw_down("crash"), process_faults.take_down
    ),
    "kill": FaultKind("a process is killed; its kernel keeps what was written", process_faults.draw_down("kill"), process_faults.take_down),
    "stop": FaultKind("a bookie ends in order and starts again", process_faults.draw_down("stop"), process_faults.take_down),
    "pause": FaultKind("a process stands still for a while, also at a fault point", process_faults.draw_pause, process_faults.pause),
    "clock": FaultKind("a wall clock jumps forward or back, and returns", process_faults.draw_clock, process_faults.clock),
    "clock_rate": FaultKind("monotonic clocks run fast or slow by up to 1 %", process_faults.draw_clock_rate, process_faults.clock_rate),
    "crash_at": FaultKind(
        "a crash right before a disk operation, or at a fault point", process_faults.draw_crash_at, process_faults.crash_at
    ),
    "power_loss": FaultKind(
        "all bookies lose their power right before a sync of one", process_faults.draw_power_loss, process_faults.power_loss
    ),
    "link_block": FaultKind(
        "nothing goes from one node to another; the way back is open", network_faults.draw_link("link_block"), network_faults.block
    ),
    "partition": FaultKind(
        "a node or a group is cut off both ways, also from the metadata", network_faults.draw_partition, network_faults.partition
    ),
    "link_slow": FaultKind("a link takes many times as long", network_faults.draw_link("link_slow"), network_faults.slow),
    "reset": FaultKind("connections break, most of them inside a frame", network_faults.draw_reset, network_faults.reset),
    "disk_slow": FaultKind("a disk's writes and syncs take many times as long", disk_faults.draw_slow, disk_faults.slow),
    "disk_full": FaultKind("a disk has no space left for a while", disk_faults.draw_full, disk_faults.full),
    "sync_failed": FaultKind("a sync fails, and what it was to save is gone", disk_faults.draw_sync_failed, disk_faults.sync_failed),
    "directory_full": FaultKind("one of several ledger directories has no space left", disk_faults.draw_directory_full, disk_faults.full),
    "bit_rot": FaultKind("bits of what one bookie had synced change", disk_faults.draw_rot, disk_faults.rot),
    "directory_rot": FaultKind("entry logs in one of several directories rot", disk_faults.draw_directory_rot, disk_faults.rot),
    "wipe": FaultKind(
        "a bookie loses its disks, and is given empty ones: another incarnation", storage_faults.draw_wipe, storage_faults.wipe
    ),
    "index_lost": FaultKind(
        "a stopped bookie's index is lost or damaged, and rebuilt", storage_faults.draw_index_lost, storage_faults.lose_index
    ),
    "metadata_slow": FaultKind("metadata operations take many times as long", metadata_faults.draw_slow, metadata_faults.slow),
    "metadata_lost": FaultKind(
        "metadata connections are lost, before or after the change", metadata_faults.draw_lost, metadata_faults.lose
    ),
    "metadata_conflict": FaultKind(
        "a rival changes a node between read and change", metadata_faults.draw_conflict, metadata_faults.conflict
    ),
    "ambush": FaultKind(
        "much goes wrong at once where a client comes to a decisive moment", triggered_faults.draw, triggered_faults.run_triggered_fault
    ),
    "session_expired": FaultKind("a living node's metadata session ends", metadata_faults.draw_expired, metadata_faults.expire),
    "stale_metadata": FaultKind(
        "servers of the metadata lag, and reads are of the past", metadata_faults.draw_stale, metadata_faults.stale
    ),
    "metadata_unreachable": FaultKind(
        "requests of nodes to the metadata fail for longer than they are repeated, and their sessions live",
        metadata_faults.draw_unreachable,
        metadata_faults.refuse,
    ),
    "metadata_silent": FaultKind("metadata servers answer nothing, for minutes", metadata_faults.draw_silent, metadata_faults.silent),
    "disks_lost": FaultKind(
        "a bookie, or a whole machine, is gone for good with its disks", lasting_losses.draw_disks_lost, lasting_losses.lose_disks
    ),
    "copies_rot": FaultKind(
        "bits of many entries flip while another bookie is away; then the disks are taken out, or scrubbed",
        lasting_losses.draw_copies_rot,
        lasting_losses.rot_copies,
    ),
    "disks_replaced": FaultKind(
        "a bookie's disks are replaced, and auto-recovery fills it again",
        lasting_losses.draw_disks_replaced,
        lasting_losses.replace_disks,
    ),
    "machines_away": FaultKind(
        "the bookies of all machines but two are away for a moment", lasting_losses.draw_machines_away, lasting_losses.take_machines_away
    ),
}
"""All kinds, by the name in a `Fault`."""

DESTROYING_KINDS = ("bit_rot", "directory_rot", "wipe")
"""Kinds that destroy synced data. Together they strike at most ack quorum - 1 bookies of a seed."""
STORAGE_KINDS = ("wipe", "index_lost", "directory_full", "directory_rot")
LONG_KINDS = {"stale_metadata": 0.25, "metadata_silent": 0.05, "clock_rate": 0.25}
"""Kinds that last long and affect all nodes, with the probability of each in a seed. They are added to the others, from a random stream of
their own."""
UNREACHABLE_RATE = 0.2
"""Probability of `metadata_unreachable` in a seed. It is drawn from a random stream of its own too."""
LASTING_KINDS = ("disks_lost", "copies_rot", "disks_replaced", "machines_away")
"""Losses that only a workload survives which makes lost copies again. It draws them itself."""
DRAWN_KINDS = tuple(name for name in FAULT_KINDS if name not in ("ambush", "metadata_unreachable", *LONG_KINDS, *LASTING_KINDS))
"""The kinds that `draw_faults` draws. Triggered faults are added where a workload wants them, and so are the long and the lasting ones."""


def draw_faults(rng: random.Random, targets: FaultTargets, duration_s: float) -> tuple[Fault, ...]:
    """Draw a run's faults: at least three, of a random subset of the kinds.

    Args:
        targets: the nodes that may be struck.
        duration_s: when faults stop.
    """
    kinds = [name for name in DRAWN_KINDS if rng.random() < ON_RATE] or [rng.choice(DRAWN_KINDS)]
    victims = rng.sample(targets.bookies, min(targets.losses_max, len(targets.bookies)))
    strikes: list[Fault] = []
    wanted = rng.randrange(STRIKES_MIN, STRIKES_MAX)
    for number in range(DRAWS_MAX):
        if len(strikes) >= wanted:
            break
        # If none of the enabled kinds finds a target, all kinds are enabled.
        kind = rng.choice(kinds if number < DRAWS_MAX // 2 else DRAWN_KINDS)
        if number == 0 and rng.random() < STORAGE_RATE:
            kind = rng.choice(STORAGE_KINDS)
        fault = FAULT_KINDS[kind].draw(rng, targets, duration_s * rng.uniform(0.02, 0.85))
        if fault is not None and fault.kind in DESTROYING_KINDS:
            fault = replace(fault, target=rng.choice(victims))
        if fault is not None:
            strikes.append(fault)
    return tuple(sorted(strikes, key=lambda fault: fault.at_s))


def draw_long_faults(rng: random.Random, targets: FaultTargets, duration_s: float) -> tuple[Fault, ...]:
    """Draw the faults that last long and affect all nodes. Most seeds have none."""
    kinds = [kind for kind, rate in LONG_KINDS.items() if rng.random() < rate]
    strikes = [FAULT_KINDS[kind].draw(rng, targets, duration_s * rng.uniform(0.02, 0.6)) for kind in kinds]
    return tuple(fault for fault in strikes if fault is not None)


def draw_unreachable_metadata(rng: random.Random, targets: FaultTargets, duration_s: float) -> tuple[Fault, ...]:
    """Draw one outage of the metadata in which sessions live, in few seeds."""
    if rng.random() >= UNREACHABLE_RATE:
        return ()
    return (metadata_faults.draw_unreachable(rng, targets, duration_s * rng.uniform(0.02, 0.6)),)


async def run_fault(context: RunContext, fault: Fault, began_s: float) -> None:
    """Wait for the fault's time, carry it out, and undo it when its time is over."""
    await asyncio.sleep(max(0.0, began_s + fault.at_s - context.time()))
    before = context.struck.get(fault.kind, 0)
    await FAULT_KINDS[fault.kind].run(context, fault)
    if fault.lasts_s and context.struck.get(fault.kind, 0) > before:
        facts = {"node": fault.target, "other": fault.other} if fault.target else {}
        context.world.recorder.fact("world", f"fault_over.{fault.kind}", facts)
