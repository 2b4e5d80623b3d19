"""Faults of the metadata store and of connections to it: slow, lost, rival writes, expired sessions, lagging or silent servers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from triplicate_simulator.cluster.plan import Fault, Value
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.faults.fault_kind import FaultTargets, undone


async def _turn(stage: RunContext, strike: Fault, word: str, option: str, normal: float, met: Callable[[], int]) -> None:
    """Set an option of the cluster to the fault's value, and back when its time is over. It counts if it affected any operation."""
    before, value = met(), float(strike.options[word])
    stage.announce(strike.kind, **{word: value})
    setattr(stage.cluster.options, option, value)
    with undone(lambda: setattr(stage.cluster.options, option, normal)):
        await asyncio.sleep(strike.lasts_s)
    if met() > before:
        stage.count_strike(strike.kind)


def draw_slow(chance: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a time in which every operation takes many times as long."""
    return Fault("metadata_slow", at_s, lasts_s=chance.choice([2.0, 8.0]), options={"factor": chance.choice([10.0, 100.0])})


async def slow(stage: RunContext, strike: Fault) -> None:
    """Slow the store down for a while."""
    await _turn(stage, strike, "factor", "metadata_slowness", 1.0, lambda: stage.cluster.metadata_operations)


def draw_lost(chance: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a time in which some operations lose their connection, half of them after they were applied."""
    return Fault("metadata_lost", at_s, lasts_s=chance.choice([2.0, 8.0, 20.0]), options={"rate": chance.choice([0.02, 0.1, 0.3])})


async def lose(stage: RunContext, strike: Fault) -> None:
    """Lose connections for a while; the outcome of such an operation is unknown to its client."""
    await _turn(stage, strike, "rate", "metadata_loss_rate", 0.0, lambda: stage.cluster.connections_lost)


def draw_conflict(chance: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a time in which a rival changes nodes between another client's read and change."""
    return Fault("metadata_conflict", at_s, lasts_s=chance.choice([10.0, 25.0]), options={"rate": chance.choice([0.3, 0.7])})


async def conflict(stage: RunContext, strike: Fault) -> None:
    """Write nodes of ledgers and logs again, unchanged, right before a change arrives: the change meets another version."""
    await _turn(stage, strike, "rate", "metadata_conflict_rate", 0.0, lambda: stage.cluster.conflicts)


def draw_expired(chance: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw the end of a living node's session."""
    return Fault("session_expired", at_s, targets.any_node(chance))


async def expire(stage: RunContext, strike: Fault) -> None:
    """End a session: its ephemeral nodes vanish, and its owner learns of it at its next operation."""
    if stage.cluster.node(strike.target).expire_session():
        stage.strike("session_expired", node=strike.target)


# What the store does as a whole.

LAGS_S = (0.1, 0.5, 2.0, 5.0)
STALE_LASTS_S = (8.0, 20.0, 40.0)
SILENCES_S = (12.0, 25.0, 60.0, 120.0, 240.0)
SUSPECTED_LOW_S, SUSPECTED_HIGH_S = 1.0, 7.0
"""A session notices within this time that it gets no answers."""
ENDINGS = ("none", "some", "all")
"""Share of the sessions that end when silent servers answer again."""


def draw_stale(chance: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a lag of one or two of the store's servers behind its leader, by a time that varies and is bounded."""
    options: dict[str, Value] = {"lag_s": chance.choice(LAGS_S), "servers": chance.choice([1, 1, 2])}
    return Fault("stale_metadata", at_s, lasts_s=chance.choice(STALE_LASTS_S), options=options)


async def stale(stage: RunContext, strike: Fault) -> None:
    """Let servers lag. It counts if any read returned old data."""
    store, lag_s = stage.cluster.store, float(strike.options["lag_s"])
    struck = range(min(int(strike.options["servers"]), store.servers))
    before, began_s = store.stale_reads, stage.time()
    stage.announce(strike.kind, lag_s=lag_s, servers=len(struck))

    def catch_up() -> None:
        stage.history.lags.append((began_s, stage.time(), lag_s))
        for server in struck:
            store.lag(server, 0.0)

    for server in struck:
        store.lag(server, lag_s)
    with undone(catch_up):
        await asyncio.sleep(strike.lasts_s)
    if store.stale_reads > before:
        stage.count_strike(strike.kind)


def draw_silent(chance: random.Random, targets: FaultTargets, at_s: float) -> Fault:
    """Draw a silence of the store of up to four minutes."""
    return Fault("metadata_silent", at_s, lasts_s=chance.choice(SILENCES_S), options={"expires": chance.choice(ENDINGS)})


async def silent(stage: RunContext, strike: Fault) -> None:
    """Silence the store, and end sessions when it answers again. It counts if any operation timed out."""
    store, loop = stage.cluster.store, stage.world.loop
    if store.silent:
        return
    chance = stage.chance("silence", strike.at_s)
    before = store.unanswered
    stage.announce(strike.kind, seconds=strike.lasts_s, expires=str(strike.options.get("expires", "none")))
    for session_id in store.sessions:
        loop.call_later(chance.uniform(SUSPECTED_LOW_S, SUSPECTED_HIGH_S), store.suspect, session_id)
    store.fall_silent()
    with undone(store.speak):
        await asyncio.sleep(strike.lasts_s)
        share = {"none": 0.0, "some": 0.5, "all": 1.0}[str(strike.options.get("expires", "none"))]
        for session_id in store.sessions:
            if chance.random() < share:
                store.expire(session_id)
    if store.unanswered > before:
        stage.count_strike(strike.kind)
