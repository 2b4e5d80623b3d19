"""Faults of a bookie's storage as a whole: lost and replaced disks, a lost and rebuilt index."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from triplicate.bookie import Replacement, rebuild_index
from triplicate.errors import CorruptionError, FormatError, TriplicateError, WrongCluster
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host
from triplicate.sim.disk_image import Inode
from triplicate.sim.host import NodeDied
from triplicate_simulator.cluster.bookie_setup import LEDGER_DIRECTORY
from triplicate_simulator.cluster.plan import Fault, Value
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.cluster.simulated_cluster import BookieNode
from triplicate_simulator.faults.fault_kind import FaultTargets

INDEX_PREFIX = LEDGER_DIRECTORY + "/current/index.db"
TRIES = 120
AGAIN_S = 0.5
"""Delay between attempts: a dead bookie's registration ends with its session, and disks fail."""
STOP_PATIENCE_S = 20.0
GARBLED_STEP_BYTES = 512


def draw_wipe(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw the loss of a bookie's disks. `draw_faults` chooses the bookie: at most ack quorum - 1 of a seed lose data."""
    if targets.losses_max < 1:
        return None
    options: dict[str, Value] = {"silent": rng.random() < 0.5, "unformatted": rng.random() < 0.5}
    return Fault("wipe", at_s, targets.bookies[0], lasts_s=rng.choice([0.1, 1.0, 4.0]), options=options)


async def wipe(context: RunContext, fault: Fault) -> None:
    """Remove a bookie's disks, mount empty ones, and replace the bookie. It must not start on empty disks before they are formatted."""
    node = context.cluster.bookies[fault.target]
    if node.under_repair:
        return
    node.under_repair = True
    node.crash(silent=bool(fault.options.get("silent")))
    context.world.disk(node.name).wipe()
    node.make_directories()
    node.intact_from_s = float("inf")
    node.wiped = f"its disks were lost at {context.time():.6f}"
    context.note_wiped(node.name)
    context.record_fault("wipe", node=node.name)
    try:
        await asyncio.sleep(fault.lasts_s)
        if fault.options.get("unformatted"):
            await _check_start_is_refused(context, node)
        if await _replace(context, node):
            node.intact_from_s, node.rotten, node.lost = context.time(), "", ""
    finally:
        node.under_repair = False
    await node.restart()


async def _check_start_is_refused(context: RunContext, node: BookieNode) -> None:
    """Start it on the empty disks: its cookie is missing, and it must refuse."""
    for _ in range(TRIES):
        try:
            await node.start()
        except WrongCluster as error:
            context.world.recorder.fact(node.name, "bookie.start_refused", {"error": str(error)})
            context.refused_starts += 1
            node.crash(keep_unsynced=True)
            return
        except NodeDied:
            continue
        except (TriplicateError, OSError):
            node.crash(keep_unsynced=True)
            await asyncio.sleep(AGAIN_S)
        else:
            context.cluster.failures.append(f"{node.name} starts on empty disks, as if it had never held anything")
            node.crash(keep_unsynced=True)
            return


async def _replace(context: RunContext, node: BookieNode) -> bool:
    """Format the empty disks for a new incarnation, with as many attempts as needed."""

    async def format_disks(host: Host, metadata: ClusterMetadata) -> None:
        incarnation = await Replacement(host, node.settings, metadata).carry_out()
        node.id_bound = incarnation.ledger_id_bound
        host.trace("bookie.replaced", incarnation=incarnation.number)

    error = await _retry(node, format_disks, "format")
    if error is not None:
        context.cluster.failures.append(f"{node.name} cannot be replaced: {error}")
    return error is None


def draw_index_lost(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw the loss of a bookie's index while it is stopped, in order or not."""
    how = rng.choice(["gone", "gone", "garbled"])
    by_tool = how == "garbled" or rng.random() < 0.6
    # All lost data is elsewhere on the same disks, so it may happen to all bookies at once.
    options: dict[str, Value] = {"how": how, "tool": by_tool, "crashes": rng.random() < 0.6, "all": rng.random() < 0.4}
    return Fault("index_lost", at_s, rng.choice(targets.bookies), lasts_s=rng.choice([0.1, 2.0]), options=options)


async def lose_index(context: RunContext, fault: Fault) -> None:
    """Stop a bookie, or all, destroy its index, and rebuild it from entry logs and journals, by the tool or by the start."""
    names = list(context.cluster.bookies) if fault.options.get("all") else [fault.target]
    losses = [context.world.loop.start_task(_lose_index(context, replace(fault, target=name)), name=f"{fault} {name}") for name in names]
    for loss in losses:
        await loss


async def _lose_index(context: RunContext, fault: Fault) -> None:
    node, disk = context.cluster.bookies[fault.target], context.world.disk(fault.target)
    if node.under_repair or node.lost or not node.alive:
        return
    node.under_repair = True
    try:
        if not fault.options.get("crashes"):
            with suppress(NodeDied, TimeoutError):
                async with asyncio.timeout(STOP_PATIENCE_S):
                    await node.stop()
        node.crash(keep_unsynced=not fault.options.get("crashes"))
        files = [path for path in sorted(disk.names.live) if path.startswith(INDEX_PREFIX)]
        context.record_fault("index_lost", node=node.name, how=str(fault.options["how"]))
        for path in files:
            if fault.options["how"] == "gone":
                disk.delete_durably(path)
            else:
                _garble(context, node.name, path)
        await asyncio.sleep(fault.lasts_s)
        if fault.options.get("tool") and not await _rebuild(context, node):
            # The next start must find no index.
            for path in files:
                disk.delete_durably(path)
    finally:
        node.under_repair = False
    await node.restart()


def _garble(context: RunContext, name: str, path: str) -> None:
    disk, rng = context.world.disk(name), context.world.rng("garbled", name, path)
    inode = disk.names.live.get(path)
    if isinstance(inode, Inode):
        inode.sync()
        for offset in range(0, len(inode.durable.data), GARBLED_STEP_BYTES):
            disk.flip_bit(path, offset + rng.randrange(min(GARBLED_STEP_BYTES, len(inode.durable.data) - offset)), rng.randrange(8))


async def _rebuild(context: RunContext, node: BookieNode) -> bool:
    """Run `triplicate bookie rebuild-index`. False where a fault of the disk prevents it."""

    async def rebuild(host: Host, metadata: ClusterMetadata) -> None:
        report = await rebuild_index(host, node.settings, metadata)
        host.trace("bookie.index_made", logs=report.logs, ledgers=report.ledgers, runs=report.runs)

    error = await _retry(node, rebuild, "rebuild index")
    if error is not None and not node.rotten and not node.may_fail and not node.lost:
        context.cluster.failures.append(f"the index of {node.name} cannot be rebuilt: {error}")
    return error is None


async def _retry(node: BookieNode, program: Callable[[Host, ClusterMetadata], Awaitable[None]], name: str) -> Exception | None:
    """Run an operator's program until it succeeds. Returns the last error if it never does."""
    last: Exception | None = None
    for _ in range(TRIES):
        try:
            await node.run_tool(program, name)
        except NodeDied:
            continue
        except (CorruptionError, FormatError) as error:
            return error
        except (TriplicateError, OSError) as error:
            last = error
            await asyncio.sleep(AGAIN_S)
        else:
            return None
    return last
