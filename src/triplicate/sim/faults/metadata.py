"""Faults of the metadata store and of the way to it: slow, lost connections, rivals, sessions that end."""

from __future__ import annotations

import asyncio
import random

from triplicate.sim.faults.kind import Targets, undone
from triplicate.sim.plan import Strike
from triplicate.sim.stage import Stage


def draw_slow(chance: random.Random, targets: Targets, at_s: float) -> Strike:
    """Every operation takes many times as long."""
    return Strike("metadata_slow", at_s, lasts_s=chance.choice([2.0, 8.0]), options={"factor": chance.choice([10.0, 100.0])})


async def slow(stage: Stage, strike: Strike) -> None:
    """Slow the store down for a while."""
    cluster = stage.cluster
    before = cluster.metadata_operations
    stage.announce("metadata_slow", factor=float(strike.options["factor"]))
    cluster.options.metadata_slowness = float(strike.options["factor"])
    with undone(lambda: setattr(cluster.options, "metadata_slowness", 1.0)):
        await asyncio.sleep(strike.lasts_s)
    if cluster.metadata_operations > before:
        stage.count_strike("metadata_slow")


def draw_lost(chance: random.Random, targets: Targets, at_s: float) -> Strike:
    """Some operations lose their connection, half of them after they were applied."""
    return Strike("metadata_lost", at_s, lasts_s=chance.choice([2.0, 8.0, 20.0]), options={"rate": chance.choice([0.02, 0.1, 0.3])})


async def lose(stage: Stage, strike: Strike) -> None:
    """Lose connections for a while; who asked cannot know what became of it."""
    cluster = stage.cluster
    before = cluster.connections_lost
    stage.announce("metadata_lost", rate=float(strike.options["rate"]))
    cluster.options.metadata_loss_rate = float(strike.options["rate"])
    with undone(lambda: setattr(cluster.options, "metadata_loss_rate", 0.0)):
        await asyncio.sleep(strike.lasts_s)
    if cluster.connections_lost > before:
        stage.count_strike("metadata_lost")


def draw_conflict(chance: random.Random, targets: Targets, at_s: float) -> Strike:
    """Somebody else changes a node between somebody's reading and changing it."""
    return Strike("metadata_conflict", at_s, lasts_s=chance.choice([10.0, 25.0]), options={"rate": chance.choice([0.3, 0.7])})


async def conflict(stage: Stage, strike: Strike) -> None:
    """Write nodes of ledgers and logs again, as they are, right before somebody's change arrives: it meets another version."""
    cluster = stage.cluster
    before = cluster.conflicts
    stage.announce("metadata_conflict", rate=float(strike.options["rate"]))
    cluster.options.metadata_conflict_rate = float(strike.options["rate"])
    with undone(lambda: setattr(cluster.options, "metadata_conflict_rate", 0.0)):
        await asyncio.sleep(strike.lasts_s)
    if cluster.conflicts > before:
        stage.count_strike("metadata_conflict")


def draw_expired(chance: random.Random, targets: Targets, at_s: float) -> Strike:
    """A living node's session ends."""
    return Strike("session_expired", at_s, targets.any_node(chance))


async def expire(stage: Stage, strike: Strike) -> None:
    """End a session: its ephemeral nodes vanish, and its owner hears of it at its next operation."""
    if stage.cluster.node(strike.target).expire_session():
        stage.strike("session_expired", node=strike.target)
