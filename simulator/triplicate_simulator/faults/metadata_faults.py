"""Faults of the metadata store and of connections to it: slow, lost, rival writes, expired sessions, lagging or silent servers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import ExitStack

from triplicate_simulator.cluster.plan import Fault, Value
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.faults.fault_kind import FaultTargets, undo_at_end
from triplicate_simulator.faults.process_faults import at_point


async def _set_option_while(context: RunContext, fault: Fault, word: str, option: str, normal: float, met: Callable[[], int]) -> None:
    """Set an option of the cluster to the fault's value, and back when its time is over. It counts if it affected any operation."""
    before, value = met(), float(fault.options[word])
    context.announce_fault(fault.kind, **{word: value})
    setattr(context.cluster.options, option, value)
    with undo_at_end(lambda: setattr(context.cluster.options, option, normal)):
        await asyncio.sleep(fault.lasts_s)
    if met() > before:
        context.count_fault(fault.kind)


def draw_slow(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a time in which every operation takes many times as long."""
    return Fault("metadata_slow", at_s, lasts_s=rng.choice([2.0, 8.0]), options={"factor": rng.choice([10.0, 100.0])})


async def slow(context: RunContext, fault: Fault) -> None:
    """Slow the store down for a while."""
    await _set_option_while(context, fault, "factor", "metadata_slowness", 1.0, lambda: context.cluster.metadata_operations)


def draw_lost(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a time in which some operations lose their connection, half of them after they were applied."""
    return Fault("metadata_lost", at_s, lasts_s=rng.choice([2.0, 8.0, 20.0]), options={"rate": rng.choice([0.02, 0.1, 0.3])})


async def lose(context: RunContext, fault: Fault) -> None:
    """Lose connections for a while; the outcome of such an operation is unknown to its client."""
    await _set_option_while(context, fault, "rate", "metadata_loss_rate", 0.0, lambda: context.cluster.connections_lost)


def draw_conflict(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a time in which a rival changes nodes between another client's read and change."""
    return Fault("metadata_conflict", at_s, lasts_s=rng.choice([10.0, 25.0]), options={"rate": rng.choice([0.3, 0.7])})


async def conflict(context: RunContext, fault: Fault) -> None:
    """Write nodes of ledgers and logs again, unchanged, right before a change arrives: the change meets another version."""
    await _set_option_while(context, fault, "rate", "metadata_conflict_rate", 0.0, lambda: context.cluster.conflicts)


def draw_expired(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw the end of a living node's session."""
    return Fault("session_expired", at_s, targets.any_node(rng))


async def expire(context: RunContext, fault: Fault) -> None:
    """End a session: its ephemeral nodes vanish, and its owner learns of it at its next operation."""
    if context.cluster.node(fault.target).expire_session():
        context.record_fault("session_expired", node=fault.target)


# The store as a whole.

LAGS_S = (0.1, 0.5, 2.0, 5.0)
STALE_LASTS_S = (8.0, 20.0, 40.0)
SILENCES_S = (12.0, 25.0, 60.0, 120.0, 240.0)
SUSPECTED_LOW_S, SUSPECTED_HIGH_S = 1.0, 7.0
"""A session notices within this time that it gets no answers."""
ENDINGS = ("none", "some", "all")
"""Share of the sessions that end when silent servers answer again."""


def draw_stale(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a lag of one or two of the store's servers behind its leader, by a time that varies and is bounded."""
    options: dict[str, Value] = {"lag_s": rng.choice(LAGS_S), "servers": rng.choice([1, 1, 2])}
    return Fault("stale_metadata", at_s, lasts_s=rng.choice(STALE_LASTS_S), options=options)


async def stale(context: RunContext, fault: Fault) -> None:
    """Let servers lag. It counts if any read returned old data."""
    store, lag_s = context.cluster.store, float(fault.options["lag_s"])
    struck = range(min(int(fault.options["servers"]), store.servers))
    before, began_s = store.stale_reads, context.time()
    context.announce_fault(fault.kind, lag_s=lag_s, servers=len(struck))

    def catch_up() -> None:
        context.history.lags.append((began_s, context.time(), lag_s))
        for server in struck:
            store.lag(server, 0.0)

    for server in struck:
        store.lag(server, lag_s)
    with undo_at_end(catch_up):
        await asyncio.sleep(fault.lasts_s)
    if store.stale_reads > before:
        context.count_fault(fault.kind)


OUTAGES_S = (9.0, 12.0, 16.0)
"""Longer than an operation is tried again: for about 4 s, with logs for 8 s."""


def draw_unreachable(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a time in which the requests of a node, of some or of all nodes fail, one by one, while their sessions live."""
    nodes = list(dict.fromkeys([*targets.bookies, *targets.clients]))
    group = rng.choice([[targets.any_node(rng, bookie_rate=0.4)], rng.sample(nodes, len(nodes) // 2), nodes])
    return Fault("metadata_unreachable", at_s, lasts_s=rng.choice(OUTAGES_S), options={"group": " ".join(group)})


async def refuse(context: RunContext, fault: Fault) -> None:
    """Lose each request of these nodes before it is applied, or of the one that comes to a fault point. It counts if there was any."""
    before = context.cluster.connections_lost
    group = str(fault.options.get("group", "")).split()
    with ExitStack() as outage:

        def begin(node: str) -> None:
            group.extend([] if group else [node])
            context.announce_fault(fault.kind, group=" ".join(group))
            outage.enter_context(context.cluster.without_metadata(group))

        if "point" not in fault.options:
            begin(fault.target)
        elif not await at_point(context, fault, begin):
            return
        await asyncio.sleep(fault.lasts_s)
    if context.cluster.connections_lost > before:
        context.count_fault(fault.kind)


def draw_silent(rng: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a silence of the store of up to four minutes."""
    return Fault("metadata_silent", at_s, lasts_s=rng.choice(SILENCES_S), options={"expires": rng.choice(ENDINGS)})


async def silent(context: RunContext, fault: Fault) -> None:
    """Silence the store, and end sessions when it answers again. It counts if any operation timed out."""
    store, loop = context.cluster.store, context.world.loop
    if store.silent:
        return
    rng = context.rng("silence", fault.at_s)
    before = store.unanswered
    context.announce_fault(fault.kind, seconds=fault.lasts_s, expires=str(fault.options.get("expires", "none")))
    for session_id in store.sessions:
        loop.call_later(rng.uniform(SUSPECTED_LOW_S, SUSPECTED_HIGH_S), store.wake_session, session_id)
    store.begin_silence()
    with undo_at_end(store.end_silence):
        await asyncio.sleep(fault.lasts_s)
        share = {"none": 0.0, "some": 0.5, "all": 1.0}[str(fault.options.get("expires", "none"))]
        for session_id in store.sessions:
            if rng.random() < share:
                store.expire(session_id)
    if store.unanswered > before:
        context.count_fault(fault.kind)
