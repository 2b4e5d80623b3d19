"""Faults of processes and machines: crash, kill, stop, pause, wrong clock, power loss."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress

from triplicate.sim.host import NodeDied
from triplicate.sim.virtual_loop import HostCrashed, context_of
from triplicate_simulator.cluster.plan import Fault, Value
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.cluster.simulated_cluster import LEDGER_DIRECTORY, BookieNode, SimulatedNode
from triplicate_simulator.faults.fault_kind import Draw, FaultTargets, undo_at_end

DOWN_S = (0.05, 0.5, 2.0, 6.0)
"""Time that a struck node stays down."""
PAUSES_S = (0.1, 0.7, 1.5, 4.0, 9.0)
JUMPS_S = (0.3, 3.0, 60.0, 3600.0)
WAIT_OPERATION_S = 1.0
"""Time that a crash waits for the disk operation that it is to precede."""
WAIT_POINT_S = 10.0
"""Time that a crash or pause waits for the node to reach a fault point."""
STOP_PATIENCE_S = 20.0
SESSION_S = 3.0
"""A process that was silent for longer has lost its session with the metadata store."""


def draw_down(kind: str) -> Draw:
    """Return a draw of faults that take a node down for a while."""

    def draw(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
        node = rng.choice(targets.bookies) if kind == "stop" else targets.any_node(rng)
        return Fault(kind, at_s, node, lasts_s=rng.choice(DOWN_S), options={"silent": rng.random() < 0.5})

    return draw


async def take_down(context: RunContext, fault: Fault) -> None:
    """Crash (power off), kill (the process only) or stop (in order) a node, and let it come back."""
    node = context.cluster.node(fault.target)
    if not node.alive:
        return
    context.record_fault(fault.kind, node=fault.target)
    if fault.kind == "stop" and isinstance(node, BookieNode):
        # A bookie that cannot stop in order is killed, as a supervisor does.
        with suppress(NodeDied, TimeoutError):
            async with asyncio.timeout(STOP_PATIENCE_S):
                await node.stop()
    node.crash(silent=bool(fault.options.get("silent")), keep_unsynced=fault.kind != "crash")
    await asyncio.sleep(fault.lasts_s)
    await node.restart()


# At a chosen moment.


def draw_crash_at(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a crash right before a bookie's disk operation, during its flush, or where a node reaches a fault point."""
    place = rng.choice(["any", "sync", "flush", "point", "point", "point"])
    node = targets.any_node(rng) if place == "point" else rng.choice(targets.bookies)
    lasts_s = rng.choice(DOWN_S)
    point = targets.point_of(rng, node) if place == "point" else None
    if point is not None:
        kept = rng.random() < 0.3
        options: dict[str, Value] = {
            "point": point,
            "after": rng.choice([0, 0, 1, 3, 10, 40]),
            "silent": not kept,
            "keep_unsynced": kept,
        }
        return Fault("crash_at", at_s, node, lasts_s=lasts_s, options=options)
    operation = "sync" if place == "point" else place
    # A flush is about a dozen operations.
    after = rng.randrange(12 if operation == "flush" else 30)
    return Fault("crash_at", at_s, node, lasts_s=lasts_s, options={"operation": operation, "after": after, "silent": True})


async def crash_at(context: RunContext, fault: Fault) -> None:
    """Wait for the moment, crash the node there, and let it come back. No effect if the moment does not come."""
    node, options = context.cluster.node(fault.target), fault.options

    def crash() -> None:
        context.record_fault("crash_at", node=node.name, at=str(options.get("point") or options.get("operation")))
        node.crash(silent=bool(options.get("silent")), keep_unsynced=bool(options.get("keep_unsynced")))

    if not node.alive:
        return
    if "point" in options:
        struck = await at_point(context, fault, lambda _: crash())
    else:
        struck = await at_operation(context, node, str(options["operation"]), int(options["after"]), crash)
    if struck:
        await asyncio.sleep(fault.lasts_s)
        await node.restart()


async def at_point(context: RunContext, fault: Fault, act: Callable[[str], None]) -> bool:
    """Call `act` with the node when the fault's target, or any node where it has none, reaches the fault point of its options.

    Returns:
        False when it does not in time.
    """
    struck = asyncio.Event()

    def on_reached(node: str) -> None:
        struck.set()
        act(node)

    trap = context.world.points.trap(
        str(fault.options["point"]), on_reached, node=fault.target or None, skip=int(fault.options.get("after", 0))
    )
    with undo_at_end(trap.cancel), suppress(TimeoutError):
        async with asyncio.timeout(WAIT_POINT_S):
            await struck.wait()
    return struck.is_set()


async def at_operation(context: RunContext, node: SimulatedNode, kind: str, after: int, act: Callable[[], None]) -> bool:
    """Call `act`, which must crash the node, right before one of its disk operations. False when that does not come in time.

    Args:
        kind: ``sync``, ``flush`` (any operation on a file that only flushes touch), or ``any``.
        after: number of such operations to let pass first.
    """
    disk = context.world.disk(node.name)
    if not node.alive or disk.before_operation is not None:
        return False
    struck = asyncio.Event()
    left = after

    def before_operation(operation: str, path: str) -> None:
        nonlocal left
        if kind in ("any", operation) or (kind == "flush" and is_of_flush(path)):
            left -= 1
        if left < 0:
            disk.before_operation = None
            context.world.loop.call_soon(struck.set, context=context_of(None))
            act()
            raise HostCrashed(node.name)

    disk.before_operation = before_operation
    with suppress(TimeoutError):
        async with asyncio.timeout(WAIT_OPERATION_S):
            await struck.wait()
    if disk.before_operation is before_operation:
        disk.before_operation = None
    return struck.is_set()


def is_of_flush(path: str) -> bool:
    """Whether only flushes touch this file once the bookie runs: entry logs, index, and the journal's mark."""
    return path.startswith(LEDGER_DIRECTORY) or path.rpartition("/")[2].startswith("mark")


# All at once.


def draw_power_loss(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a power loss of all bookies, and in some cases of the clients."""
    options = {"clients": rng.random() < 0.5, "after": rng.choice([0, 0, 1, 5])}
    return Fault("power_loss", at_s, rng.choice(targets.bookies), lasts_s=rng.choice([0.1, 1.0, 4.0]), options=options)


async def power_loss(context: RunContext, fault: Fault) -> None:
    """Cut the power of all right before a sync of one bookie: data of that sync must not have been acknowledged."""
    cluster = context.cluster
    nodes: list[SimulatedNode] = list(cluster.bookies.values())
    if fault.options.get("clients"):
        nodes += [*cluster.clients.values(), *cluster.others.values()]

    def cut() -> None:
        struck = [node.name for node in nodes if node.alive]
        context.record_fault("power_loss", nodes=" ".join(struck))
        for node in nodes:
            node.crash(silent=True)

    first = cluster.bookies[fault.target]
    if not await at_operation(context, first, "sync", int(fault.options.get("after", 0)), cut):
        cut()
    await asyncio.sleep(fault.lasts_s)
    await restart_all(context, nodes)


async def restart_all(context: RunContext, nodes: Sequence[SimulatedNode]) -> None:
    """Let several nodes come back at the same moment."""
    starts = [context.world.loop.start_task(node.restart(), name=f"restart {node.name}") for node in nodes]
    for start in starts:
        await start


# Standing still, and clocks.


def draw_pause(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a pause of a process, at some moment or at a fault point."""
    node, lasts_s = targets.any_node(rng, bookie_rate=0.4), rng.choice(PAUSES_S)
    point = targets.point_of(rng, node) if rng.random() < 0.5 else None
    options: dict[str, Value] = {} if point is None else {"point": point, "after": rng.choice([0, 0, 1, 3, 10])}
    # After a long pause a process has lost its session: the metadata store cannot distinguish it from a dead one.
    return Fault("pause", at_s, node, lasts_s=lasts_s, options={**options, "expires": lasts_s > SESSION_S and rng.random() < 0.7})


async def pause(context: RunContext, fault: Fault) -> None:
    """Stop the process as SIGSTOP does, and resume it later: it does not know that time has passed."""
    node = context.cluster.node(fault.target)
    host = node.host
    if host is None or not host.alive or host.paused:
        return
    if "point" in fault.options:
        if not await at_point(context, fault, lambda _: node.host.pause() if node.host is not None else None):
            return
        host = node.host
        if host is None or not host.paused:
            return
    else:
        host.pause()
    context.record_fault("pause", node=fault.target, seconds=fault.lasts_s, at=str(fault.options.get("point", "")))
    with undo_at_end(host.resume):
        if fault.options.get("expires"):
            await asyncio.sleep(SESSION_S)
            node.expire_session()
        await asyncio.sleep(max(0.0, fault.lasts_s - SESSION_S) if fault.options.get("expires") else fault.lasts_s)


def draw_clock(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a jump of a machine's wall clock."""
    seconds = rng.choice(JUMPS_S) * rng.choice([-1.0, 1.0])
    node = targets.any_node(rng, bookie_rate=0.4)
    return Fault("clock", at_s, node, lasts_s=rng.choice([1.0, 10.0]), options={"seconds": seconds})


async def clock(context: RunContext, fault: Fault) -> None:
    """Let the wall clock jump, and later jump back."""
    node, seconds = context.cluster.node(fault.target), float(fault.options["seconds"])
    if node.host is None or not node.alive:
        return
    context.record_fault("clock", node=fault.target, seconds=seconds)
    node.host.jump_clock(seconds)
    await asyncio.sleep(fault.lasts_s)
    node.host.jump_clock(-seconds)


RATE_ERRORS = (0.0001, 0.002, 0.01)
"""Relative error of a monotonic clock; leases allow for no more."""
RATE_LASTS_S = (10.0, 43.0)


def draw_clock_rate(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw wrong rates of some machines' monotonic clocks: some fast, others slow."""
    nodes = [*targets.bookies, *targets.clients]
    chosen = rng.sample(nodes, rng.randrange(1, len(nodes) + 1))
    error = rng.choice(RATE_ERRORS)
    options: dict[str, Value] = {"fast": " ".join(chosen[::2]), "slow": " ".join(chosen[1::2]), "error": error}
    return Fault("clock_rate", at_s, lasts_s=rng.choice(RATE_LASTS_S), options=options)


async def clock_rate(context: RunContext, fault: Fault) -> None:
    """Run clocks at wrong rates, in all lives of their machines, and correct them later."""
    error = float(fault.options["error"])
    rates = dict.fromkeys(str(fault.options["fast"]).split(), 1.0 + error)
    rates |= dict.fromkeys(str(fault.options["slow"]).split(), 1.0 - error)
    context.record_fault("clock_rate", **fault.options)

    def run_right() -> None:
        for name in rates:
            context.world.clock(name).set_rate(1.0)

    for name, rate in rates.items():
        context.world.clock(name).set_rate(rate)
    with undo_at_end(run_right):
        await asyncio.sleep(fault.lasts_s)
