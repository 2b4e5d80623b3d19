"""Faults of the metadata store and of the way to it: slow, lost connections, rivals, sessions that end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from triplicate.sim.faults.kind import Targets, undone
from triplicate.sim.plan import Strike
from triplicate.sim.stage import Stage


async def _turn(stage: Stage, strike: Strike, word: str, option: str, normal: float, met: Callable[[], int]) -> None:
    """Turn an option of the cluster to what the strike says, and back when its time is over; it counts if any operation has met it."""
    before, value = met(), float(strike.options[word])
    stage.announce(strike.kind, **{word: value})
    setattr(stage.cluster.options, option, value)
    with undone(lambda: setattr(stage.cluster.options, option, normal)):
        await asyncio.sleep(strike.lasts_s)
    if met() > before:
        stage.count_strike(strike.kind)


def draw_slow(chance: random.Random, targets: Targets, at_s: float) -> Strike:
    """Every operation takes many times as long."""
    return Strike("metadata_slow", at_s, lasts_s=chance.choice([2.0, 8.0]), options={"factor": chance.choice([10.0, 100.0])})


async def slow(stage: Stage, strike: Strike) -> None:
    """Slow the store down for a while."""
    await _turn(stage, strike, "factor", "metadata_slowness", 1.0, lambda: stage.cluster.metadata_operations)


def draw_lost(chance: random.Random, targets: Targets, at_s: float) -> Strike:
    """Some operations lose their connection, half of them after they were applied."""
    return Strike("metadata_lost", at_s, lasts_s=chance.choice([2.0, 8.0, 20.0]), options={"rate": chance.choice([0.02, 0.1, 0.3])})


async def lose(stage: Stage, strike: Strike) -> None:
    """Lose connections for a while; who asked cannot know what became of it."""
    await _turn(stage, strike, "rate", "metadata_loss_rate", 0.0, lambda: stage.cluster.connections_lost)


def draw_conflict(chance: random.Random, targets: Targets, at_s: float) -> Strike:
    """Somebody else changes a node between somebody's reading and changing it."""
    return Strike("metadata_conflict", at_s, lasts_s=chance.choice([10.0, 25.0]), options={"rate": chance.choice([0.3, 0.7])})


async def conflict(stage: Stage, strike: Strike) -> None:
    """Write nodes of ledgers and logs again, as they are, right before somebody's change arrives: it meets another version."""
    await _turn(stage, strike, "rate", "metadata_conflict_rate", 0.0, lambda: stage.cluster.conflicts)


def draw_expired(chance: random.Random, targets: Targets, at_s: float) -> Strike:
    """A living node's session ends."""
    return Strike("session_expired", at_s, targets.any_node(chance))


async def expire(stage: Stage, strike: Strike) -> None:
    """End a session: its ephemeral nodes vanish, and its owner hears of it at its next operation."""
    if stage.cluster.node(strike.target).expire_session():
        stage.strike("session_expired", node=strike.target)
