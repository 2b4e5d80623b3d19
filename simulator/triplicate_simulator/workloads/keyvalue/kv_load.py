"""The load of the workload of key-value stores, and the faults of leaders."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from triplicate_simulator.workloads.sql.sql_load import DRAIN_NODE, DRAIN_S, MOVE_LEADER, PLACEMENT_SHARE, RECREATIONS

LEADER_FAULTS = ("pause", "hang", "cut_off", "cut_off", "kill", "crash", "stop", "session_expired", "hand_over")
"""Faults of the node that leads at their time."""
POINTS = ("kv.append", "kv.commit", "kv.apply", "replica.take_over", "replica.replay")
LEADER_FAULTS_AT = (
    *(f"{kind} {point}" for kind in ("pause at", "kill at", "crash at", "mute at") for point in POINTS),
    "pause after kv.append",
    "kill after kv.append",
    "crash after kv.append",
    "mute after kv.append",
)
"""Faults of the first node that reaches a fault point from that time on: right there, or a moment later."""


@dataclass(frozen=True)
class StoreLoad:
    """One run's load."""

    nodes: int
    talkers: int
    """Clients that change keys."""
    watchers: int
    """Clients that read copies, and clients that watch; this number of each."""
    pause_mean_s: float
    timeout_s: float
    registers: int
    burst: int
    """Changes that a client sends at a time, now and then."""
    roll_size_bytes: int
    snapshot_log_bytes: int
    """Log between two snapshots; 0 makes none and keeps the whole log."""
    lease_s: float
    watch_buffer_bytes: int
    leader_strikes: tuple[tuple[str, float, float], ...]
    """Faults of the leader: kind (and fault point), time (seconds since the workload began), and duration."""
    placement_changes: tuple[tuple[str, float, float], ...] = field(default=(), repr=False)
    """Moves of the leader and drains of its node: kind, time, and duration of a drain."""
    recreations: int = field(default=0, repr=False)
    """Number of times that a further store is dropped and made again under its name."""

    def __post_init__(self) -> None:
        # JSON has no tuples.
        for name in ("leader_strikes", "placement_changes"):
            strikes = tuple((str(kind), float(at), float(lasts)) for kind, at, lasts in getattr(self, name))
            object.__setattr__(self, name, strikes)


def draw_load(rng: random.Random) -> StoreLoad:
    """Draw a load."""
    strikes = []
    at_s = rng.uniform(2.0, 6.0)
    while at_s < 36.0:
        kind = rng.choice([*LEADER_FAULTS, *rng.sample(LEADER_FAULTS_AT, 8)])
        lasts_s = rng.choice([0.3, 2.0, 4.0])
        strikes.append((kind, round(at_s, 3), lasts_s))
        at_s += lasts_s + rng.uniform(2.0, 9.0)
    load = StoreLoad(
        nodes=3,
        talkers=rng.choice([2, 3, 4]),
        watchers=2,
        pause_mean_s=rng.choice([0.4, 0.7, 1.2]),
        timeout_s=rng.choice([2.0, 5.0, 30.0]),
        registers=rng.choice([1, 2, 4]),
        burst=rng.choice([10, 20]),
        roll_size_bytes=rng.choice([2048, 16 * 1024, 1024 * 1024]),
        snapshot_log_bytes=rng.choice([0, 4 * 1024, 16 * 1024]),
        lease_s=rng.choice([0.0, 0.3, 0.75, 3.0]),
        watch_buffer_bytes=rng.choice([2048, 1024 * 1024]),
        leader_strikes=tuple(strikes),
    )
    load = replace(load, recreations=random.Random(f"recreations of {load!r}").choice(RECREATIONS))
    if rng.random() >= PLACEMENT_SHARE:
        return load
    times = sorted(round(rng.uniform(3.0, 30.0), 3) for _ in range(rng.choice([1, 2, 3])))
    changes = [(rng.choice([MOVE_LEADER, MOVE_LEADER, DRAIN_NODE]), at_s, rng.choice(DRAIN_S)) for at_s in times]
    return replace(load, placement_changes=tuple(changes))


def smaller_loads(load: StoreLoad) -> Iterator[StoreLoad]:
    """Smaller loads, the boldest first."""
    if load.leader_strikes:
        yield replace(load, leader_strikes=())
        for index in range(len(load.leader_strikes)):
            yield replace(load, leader_strikes=load.leader_strikes[:index] + load.leader_strikes[index + 1 :])
    if load.recreations:
        yield replace(load, recreations=0)
    if load.placement_changes:
        yield replace(load, placement_changes=())
    if load.talkers > 1:
        yield replace(load, talkers=1)
    if load.watchers > 0:
        yield replace(load, watchers=0)
    if load.registers > 1:
        yield replace(load, registers=1)
    if load.snapshot_log_bytes:
        yield replace(load, snapshot_log_bytes=0)
    if load.burst > 1:
        yield replace(load, burst=1)
    if load.pause_mean_s < 2.0:
        yield replace(load, pause_mean_s=load.pause_mean_s * 2)
