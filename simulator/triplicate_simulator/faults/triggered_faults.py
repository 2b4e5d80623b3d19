"""Triggered faults: several faults at once, at the moment when a client reaches a decisive point of the protocol.

Faults at drawn times rarely meet a recovery that copies entries, or a change of ensemble that is being written; and few losses need one
fault only. A triggered fault therefore waits at a fault point of clients, then strikes bookies, the node that arrived, and the metadata
together.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from triplicate.sim.barriers import Trap
from triplicate_simulator.cluster.plan import Fault, Value
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.faults import disk_faults, metadata_faults, process_faults
from triplicate_simulator.faults.fault_kind import FaultTargets, undo_at_end

POINTS = (
    "client.recovery.marked",
    "client.recovery.fenced",
    "client.recovery.read_on",
    "client.recovery.copying",
    "client.recovery.copying",
    "client.recovery.copied",
    "client.recovery.closing",
    "client.ensemble_change.chosen",
    "client.ensemble_change.chosen",
    "client.ensemble_change.written",
    "client.ensemble_change.written",
    "client.close.writing",
)
TRIGGERED_MAX = 4
OUTAGES_MAX = 9
LONE_HOLDERS_MAX = 3
LONE_POINT = "bookie.journal.synced"
LONE_S = 2.0
LONE_SETTLES_S = 0.1
"""Within this time the other bookies have finished the syncs that they began at their old pace."""
UNSYNCED_MAX = 4
UNSYNCED_POINTS = ("play.accepted", "play.forced")
"""Points of a writer with deferred sync. After `DEFERRING_POINT` it sends the entries that it is about to force."""
DEFERRING_POINT = "play.deferring"
UNSYNCED_S = 0.4
"""Slow-sync duration: longer than a reply, shorter than the force timeout."""
UNSYNCED_WAIT_S = 3.0
WAIT_S = 8.0
"""Without a visit of the point within this time the fault has no effect."""
LATER_S = (0.0, 0.0005, 0.003, 0.02)
DOWN_S = (0.05, 0.05, 0.5, 2.0)
STALL_FACTOR = 100.0


def draw_triggered_faults(rng: random.Random, targets: FaultTargets, duration_s: float) -> tuple[Fault, ...]:
    """Draw the triggered faults of one run, where its nodes reach such points, and faults of bookies that lead writers to them."""
    count, lures = rng.randrange(TRIGGERED_MAX + 1), rng.randrange(OUTAGES_MAX + 1)
    drawn = [draw(rng, targets, duration_s * rng.uniform(0.05, 0.75)) for _ in range(count)]
    drawn += [_draw_lone_holder(rng, targets, duration_s * rng.uniform(0.05, 0.75)) for _ in range(rng.randrange(LONE_HOLDERS_MAX + 1))]
    if targets.clients:
        drawn += [_draw_bookie_outage(rng, targets, duration_s * rng.uniform(0.05, 0.75)) for _ in range(lures)]
    # Without a writer that defers, no node arrives.
    drawn += [_draw_unsynced(rng, targets, duration_s * rng.uniform(0.02, 0.75)) for _ in range(rng.randrange(1, UNSYNCED_MAX + 1))]
    return tuple(fault for fault in drawn if fault is not None)


def _draw_bookie_outage(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a bookie that is down, or silent, for a moment."""
    bookie = rng.choice(targets.bookies)
    match rng.choice(["kill", "crash", "crash_at", "pause", "link_block"]):
        case "kill":
            return Fault("kill", at_s, bookie, lasts_s=0.5, options={"silent": False})
        case "crash":
            return Fault("crash", at_s, bookie, lasts_s=2.0, options={"silent": True})
        case "crash_at":
            in_a_flush: dict[str, Value] = {"operation": "flush", "after": rng.randrange(14), "silent": True}
            return Fault("crash_at", at_s, bookie, lasts_s=0.5, options=in_a_flush)
        case "pause":
            return Fault("pause", at_s, bookie, lasts_s=1.5)
        case _:
            return Fault("link_block", at_s, bookie, rng.choice(targets.clients), lasts_s=2.0)


def draw(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault | None:
    """Draw one fault at a point of a recovery or a change of ensemble."""
    moments = [name for name in POINTS if name in targets.points]
    if not moments:
        return None
    point = rng.choice(moments)
    is_change = point.startswith("client.ensemble_change")
    options: dict[str, Value] = {
        "point": point,
        "skip": rng.choice([0, 0, 1, 3]),
        "later_s": rng.choice(LATER_S),
        # All of them, if there are fewer.
        "bookies": rng.choice([0, 1, 1, 2, 2, 99]),
        "of_bookies": rng.choice(["kill", "crash"]),
        "node": rng.choice(["", "kill", "kill", "pause"] if is_change else ["", "", "kill", "pause"]),
        "stall": rng.random() < 0.3,
        "silent": rng.random() < 0.3,
        # The effects are found by a recovery, which has its own fault.
        "then": rng.choice([0, 1, 2] if is_change else [0, 0, 0, 1]),
    }
    return Fault("ambush", at_s, lasts_s=rng.choice(DOWN_S), options=options)


def _draw_lone_holder(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw the kill of a bookie that alone has synced the newest entries."""
    options: dict[str, Value] = {"factor": rng.choice([30.0, 100.0])}
    if rng.random() < 0.4:
        # Or no bookie has synced them, and the power goes for all.
        options["power_after_s"] = rng.choice([0.004, 0.02, 0.2])
        options["point"] = rng.choice(["bookie.force", "bookie.force", "bookie.fence"])
    else:
        options |= {"point": LONE_POINT, "later_s": rng.choice([0.001, 0.004])}
    return Fault("ambush", at_s, rng.choice(targets.bookies), lasts_s=rng.choice([0.5, 2.0]), options=options)


def _draw_unsynced(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a power loss of all bookies after entries were accepted and before their sync, or right after a force."""
    ahead = rng.choice(targets.bookies) if rng.random() < 0.6 else ""
    options: dict[str, Value] = {
        "point": rng.choice(UNSYNCED_POINTS),
        "later_s": rng.choice([0.0, 0.0, 0.001, 0.01]),
        "silent": rng.random() < 0.5,
        # The bookie whose disk stays fast. It may be the only one that has synced, and it may come back late.
        "ahead": ahead,
        "late_s": rng.choice([0.0, 4.0]) if ahead else 0.0,
    }
    return Fault("ambush", at_s, lasts_s=rng.choice([0.05, 0.05, 0.3]), options=options)


async def run_triggered_fault(context: RunContext, fault: Fault) -> None:
    """Wait until a node reaches the point, then strike, and undo everything."""
    if fault.options.get("point") in UNSYNCED_POINTS:
        await _unsynced(context, fault)
        return
    if fault.target:
        await _kill_lone_holder(context, fault)
        return
    reached = asyncio.Event()
    visitors: list[str] = []

    options = fault.options

    def on_reached(node: str) -> None:
        visitors.append(node)
        reached.set()
        if options.get("stall"):
            # Immediately: the node's next write must be slow already.
            context.cluster.options.metadata_slowness = STALL_FACTOR

    trap = context.world.points.trap(str(options["point"]), on_reached, skip=int(options.get("skip", 0)))
    with undo_at_end(trap.cancel):
        try:
            async with asyncio.timeout(WAIT_S):
                await reached.wait()
        except TimeoutError:
            return
    await asyncio.sleep(float(options.get("later_s", 0.0)))
    context.record_fault("ambush", node=visitors[0], point=str(options["point"]))
    struck = [context.world.loop.start_task(part, name=str(fault)) for part in _parts(context, fault, visitors[0])]
    if options.get("then"):
        following: dict[str, Value] = {"point": "client.recovery.copying", "bookies": options["then"], "silent": options["silent"]}
        await run_triggered_fault(context, replace(fault, options=following))
    for part in struck:
        await part


async def _kill_lone_holder(context: RunContext, fault: Fault) -> None:
    """Slow all disks but one. The bookie with the fast disk acknowledges an entry alone, and is killed before the others have synced it.

    Or slow all disks, so that much is written and not synced, and cut the power of all bookies.
    """
    reached, options = asyncio.Event(), fault.options
    all_bookies = "power_after_s" in options
    others = [name for name in context.cluster.bookies if all_bookies or name != fault.target]
    slowness = {"factor": float(options["factor"])}
    slow: list[asyncio.Task[None]] = []
    for name in others:
        one = Fault("disk_slow", fault.at_s, name, lasts_s=LONE_S, options=slowness)
        slow.append(context.world.loop.start_task(disk_faults.slow(context, one), name=str(one)))
    await asyncio.sleep(LONE_SETTLES_S)
    if all_bookies:
        trap = context.world.points.trap(str(options["point"]), lambda _: reached.set())
        with undo_at_end(trap.cancel), suppress(TimeoutError):
            async with asyncio.timeout(LONE_S - LONE_SETTLES_S):
                await reached.wait()
        await asyncio.sleep(float(options["power_after_s"]))
        context.record_fault("ambush", node=fault.target)
        # During a sync, not right before one as other power losses: clients have had answers for written data.
        off = [Fault("crash", fault.at_s, name, lasts_s=min(fault.lasts_s, 0.5), options={"silent": True}) for name in others]
        slow += [context.world.loop.start_task(process_faults.take_down(context, one), name=str(one)) for one in off]
        for part in slow:
            await part
        return
    trap = context.world.points.trap(str(options["point"]), lambda _: reached.set(), node=fault.target)
    with undo_at_end(trap.cancel), suppress(TimeoutError):
        async with asyncio.timeout(LONE_S - LONE_SETTLES_S):
            await reached.wait()
    if reached.is_set():
        await asyncio.sleep(float(options["later_s"]))
        context.record_fault("ambush", node=fault.target, point=str(options["point"]))
        await process_faults.take_down(context, Fault("kill", fault.at_s, fault.target, lasts_s=fault.lasts_s, options={"silent": False}))
    for disk in slow:
        await disk


async def _unsynced(context: RunContext, fault: Fault) -> None:
    """Slow the disks when a writer begins to send entries that it will force. Cut the power of all bookies when these were accepted, or
    forced: unsynced entries are lost, on all of them or on all but one."""
    options, bookies, point = fault.options, list(context.cluster.bookies.values()), str(fault.options["point"])
    reached, cut = asyncio.Event(), asyncio.Event()
    visitors: list[str] = []
    points = context.world.points

    def slow_down(node: str) -> None:
        visitors.append(node)
        reached.set()
        for bookie in bookies:
            if bookie.name != options.get("ahead"):
                context.world.disk(bookie.name).slow(UNSYNCED_S / context.plan.sync_high_s)

    def speed_up() -> None:
        for bookie in bookies:
            context.world.disk(bookie.name).slow(1.0)

    def cut_power(_: str = "") -> None:
        context.record_fault("ambush", node=visitors[0], point=point)
        for bookie in bookies:
            bookie.crash(silent=bool(options.get("silent")))
        cut.set()

    later_s = float(options.get("later_s", 0.0))
    if not await _wait_for_trap(points.trap(DEFERRING_POINT, slow_down), reached, WAIT_S):
        return
    with undo_at_end(speed_up):
        point_reached = asyncio.Event()
        act = cut_power if not later_s else lambda _: point_reached.set()
        if not await _wait_for_trap(points.trap(point, act, node=visitors[0]), point_reached if later_s else cut, UNSYNCED_WAIT_S):
            return
        if later_s:
            await asyncio.sleep(later_s)
            cut_power()
    late_s = float(options.get("late_s", 0.0))
    late = [bookie for bookie in bookies if late_s and bookie.name == options.get("ahead")]
    await asyncio.sleep(fault.lasts_s)
    await process_faults.restart_all(context, [bookie for bookie in bookies if bookie not in late])
    await asyncio.sleep(late_s)
    await process_faults.restart_all(context, late)


async def _wait_for_trap(trap: Trap, reached: asyncio.Event, within_s: float) -> bool:
    """Whether the trap fired in time; it is removed afterwards."""
    with undo_at_end(trap.cancel), suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await reached.wait()
    return reached.is_set()


def _parts(context: RunContext, fault: Fault, node: str) -> list[Coroutine[Any, Any, None]]:
    rng, options = context.rng("ambush", fault.at_s), fault.options
    silent = {"silent": bool(options.get("silent"))}
    names = list(context.cluster.bookies)
    bookies = rng.sample(names, min(len(names), int(options.get("bookies", 0))))
    kind = str(options.get("of_bookies", "kill"))
    parts = [process_faults.take_down(context, Fault(kind, fault.at_s, name, lasts_s=fault.lasts_s, options=silent)) for name in bookies]
    match options.get("node"):
        case "kill":
            parts.append(process_faults.take_down(context, Fault("kill", fault.at_s, node, lasts_s=fault.lasts_s, options=silent)))
        case "pause":
            parts.append(process_faults.pause(context, Fault("pause", fault.at_s, node, lasts_s=max(0.5, fault.lasts_s))))
    if options.get("stall"):
        parts.append(metadata_faults.slow(context, Fault("metadata_slow", fault.at_s, lasts_s=2.0, options={"factor": STALL_FACTOR})))
    return parts
