"""The load of the database workload, and the faults of leaders."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

LEADER_FAULTS = ("pause", "cut_off", "kill", "crash", "stop", "session_expired")
HAND_OVER = "hand_over"
HANG = "hang"
"""Faults of the node that leads at their time."""
HANG_SHARE, HANG_S = 0.5, (0.6, 2.5, 5.0)
LATE_ANSWERS = "late_answers"
LATE_SHARE, LATE_S = 0.7, (1.0, 2.0)
LEADER_FAULTS_AT = ("pause at", "kill at", "crash at")
"""Faults of the first node that reaches a fault point from that time on: right there or, with "after", a moment later."""
POINTS = ("sql.append", "sql.local_commit", "sql.apply", "replica.take_over", "replica.replay")
LEADER_FAULTS_AFTER = ("pause after sql.append", "kill after sql.append", "crash after sql.append")
"""A moment after a batch was sent, when some bookies have it and others do not."""
FURTHER_GROUP, FURTHER_APPEND = "sql.further_group", "sql.further_append"
"""Points at which a group of a leader's statements is at the log, and a further one is about to run or to be sent."""
WINDOW_FAULTS = (
    *(f"{kind} {FURTHER_GROUP}" for kind in ("mute at", "kill at", "crash at")),
    *(f"{kind} {FURTHER_APPEND}" for kind in ("mute at", "mute after", "pause at", "pause after", "kill at", "kill after")),
    "mute at sql.append",
)
"""Faults of a leader while groups of statements are at the log, or about to be."""
LEVELS_SHARE = 0.6
MOVE_LEADER, DRAIN_NODE = "move_leader", "drain_node"
"""Changes by an operator."""
PLACEMENT_SHARE, COPIES, DRAIN_S = 0.4, (0, 2), (3.0, 6.0, 10.0)
RECREATIONS = (0, 0, 1, 2)
PIECE_BYTES = (0, 0, 300, 900)
CROWD_SHARE, CROWD_SIZES = 0.75, (12, 24, 40)


def later_field(default: Any) -> Any:
    """A field that was added later. It is not part of the load's repr, which seeds further draws, so that these stay the same."""
    return field(default=default, repr=False)


@dataclass(frozen=True)
class DatabaseLoad:
    """One run's load."""

    nodes: int
    talkers: int
    """Clients that change data."""
    watchers: int
    """Clients that read copies."""
    pause_mean_s: float
    """Average pause of a client between sessions."""
    timeout_s: float
    """Time after which a client gives up a session."""
    registers: int
    roll_size_bytes: int
    """Size of the log's segments."""
    roll_age_s: float
    tables: bool
    """Whether tables are created, changed and dropped."""
    leader_strikes: tuple[tuple[str, float, float], ...]
    """Faults of the leader: kind (and fault point), time (seconds since the workload began), and duration."""
    databases: int = 1
    """Databases on the same nodes; the first is the busiest."""
    snapshot_log_bytes: int = later_field(0)
    """Log between two snapshots; 0 makes none and keeps the whole log."""
    snapshot_interval_s: float = later_field(2.0)
    snapshot_keep_log_s: float = later_field(0.0)
    snapshot_turn_s: float = later_field(60.0)
    snapshot_losses: int = later_field(0)
    """Number of times that the newest snapshot's ledger is deleted without the nodes' knowledge, right before a copy is lost."""
    request_keep_s: float = later_field(86_400.0)
    request_limit: int = later_field(10_000_000)
    dated_requests: bool = later_field(False)
    """Whether request ids contain the time of issue."""
    read_idle_s: float = later_field(60.0)
    snapshot_limit_s: float = later_field(3600.0)
    lease_s: float = later_field(-1.0)
    """Lease of every database; below 0: none or the usual one, by another draw."""
    retry_longest_s: float = later_field(1.0)
    crowd: int = later_field(0)
    """Clients that send a statement each within a few milliseconds, now and then; 0 for no such crowd."""
    level_readers: int = later_field(0)
    """Clients that read whole states at the levels of a session."""
    janitor_interval_s: float = later_field(600.0)
    """Interval at which one of the nodes sweeps the logs and merges small segments, which are merged at the age of `MERGE_AFTER_S`."""
    copies: int = later_field(0)
    """Copies of each database; 0: one on every node."""
    piece_bytes: int = later_field(0)
    """Size from which on a transaction is written in parts, and the size of a part; 0 for that of real nodes, which none reaches."""
    recreations: int = later_field(0)
    """Number of times that a further database is dropped and made again under its name."""
    placement_changes: tuple[tuple[str, float, float], ...] = field(default=(), repr=False)
    """Changes of placement by an operator: kind, time and duration, as those of `leader_strikes`."""

    def __post_init__(self) -> None:
        # JSON has no tuples.
        for name in ("leader_strikes", "placement_changes"):
            events = tuple((str(kind), float(at), float(lasts)) for kind, at, lasts in getattr(self, name))
            object.__setattr__(self, name, events)

    @property
    def is_placed(self) -> bool:
        """Whether nodes balance."""
        return self.copies > 0 or bool(self.placement_changes)


def draw_load(rng: random.Random) -> DatabaseLoad:
    """Draw a load."""
    # A leader that survives its replacement is the rarest and most dangerous case, so it is drawn more often.
    all_kinds = [*LEADER_FAULTS, "cut_off", "cut_off", *LEADER_FAULTS_AT, *LEADER_FAULTS_AFTER]
    kinds = [kind for kind in all_kinds if rng.random() < 0.4] or [rng.choice(all_kinds)]
    at_s = rng.uniform(2.0, 9.0)
    strikes = []
    while at_s < 36.0:
        kind = rng.choice(kinds)
        lasts_s = rng.choice([2.0, 4.0] if kind == "cut_off" else [0.3, 2.0, 4.0])
        strikes.append((f"{kind} {rng.choice(POINTS)}" if kind in LEADER_FAULTS_AT else kind, round(at_s, 3), lasts_s))
        at_s += lasts_s + rng.uniform(3.0, 14.0)
    load = DatabaseLoad(
        nodes=3,
        talkers=rng.choice([2, 3]),
        watchers=2,
        pause_mean_s=rng.choice([0.4, 0.7, 1.2]),
        timeout_s=rng.choice([2.0, 5.0, 30.0]),
        registers=rng.choice([1, 2, 4]),
        roll_size_bytes=rng.choice([2048, 16 * 1024, 1024 * 1024]),
        roll_age_s=rng.choice([3.0, 20.0, 7200.0]),
        tables=rng.random() < 0.6,
        leader_strikes=tuple(strikes),
    )
    # A random stream of its own, so that the draws above are unchanged by the addition of further databases.
    load = draw_databases(random.Random(repr(load)), load)
    load = draw_limits(random.Random(f"limits of {load!r}"), load)
    load = draw_hangs(random.Random(f"hangs of {load!r}"), load)
    load = draw_late_answers(random.Random(f"late answers of {load!r}"), load)
    load = draw_crowd(random.Random(f"crowd of {load!r}"), load)
    load = draw_levels(random.Random(f"levels of {load!r}"), load)
    load = draw_placement(random.Random(f"placement of {load!r}"), load)
    load = replace(load, recreations=random.Random(f"recreations of {load!r}").choice(RECREATIONS))
    return replace(load, piece_bytes=random.Random(f"pieces of {load!r}").choice(PIECE_BYTES))


def draw_databases(rng: random.Random, load: DatabaseLoad) -> DatabaseLoad:
    """Draw the number of databases, and whether leaders hand over in order while others come back."""
    databases = rng.choice([1, 1, 1, 2, 3, 4])
    strikes = list(load.leader_strikes)
    if rng.random() < 0.4:
        strikes += [(HAND_OVER, round(rng.uniform(3.0, 36.0), 3), rng.choice([0.3, 2.0])) for _ in range(rng.choice([1, 2, 3]))]
    return replace(load, databases=databases, leader_strikes=tuple(sorted(strikes, key=lambda strike: strike[1])))


def draw_limits(rng: random.Random, load: DatabaseLoad) -> DatabaseLoad:
    """Draw limits that a short run reaches, each in some seeds; the usual ones in the others."""
    snapshot_log_bytes = rng.choice([0, 2048, 6 * 1024, 16 * 1024])
    return replace(
        load,
        snapshot_log_bytes=snapshot_log_bytes,
        snapshot_interval_s=rng.choice([4.0, 6.0, 8.0]),
        snapshot_keep_log_s=rng.choice([0.0, 0.0, 4.0]),
        snapshot_losses=rng.choice([0, 1, 1, 2]) if snapshot_log_bytes else 0,
        request_keep_s=rng.choice([86_400.0, 2.0, 6.0]),
        request_limit=rng.choice([10_000_000, 10_000_000, 2, 8]),
        dated_requests=rng.random() < 0.5,
        read_idle_s=rng.choice([60.0, 0.3, 1.0]),
        snapshot_limit_s=rng.choice([3600.0, 0.5, 2.0]),
        lease_s=rng.choice([-1.0, -1.0, 0.3, 1.0, 3.0]),
        retry_longest_s=rng.choice([1.0, 1.0, 0.2, 2.0]),
        janitor_interval_s=rng.choice([600.0, 3.0, 6.0]),
        # With 0 all nodes, including the leader, may start one at a time.
        snapshot_turn_s=rng.choice([60.0, 0.0, 1.0]),
    )


def draw_hangs(rng: random.Random, load: DatabaseLoad) -> DatabaseLoad:
    """Draw whether the leader hangs while its session lives, for less or for more than its limit."""
    if rng.random() >= HANG_SHARE:
        return load
    hangs = [(HANG, round(rng.uniform(3.0, 30.0), 3), rng.choice(HANG_S)) for _ in range(rng.choice([1, 2]))]
    return replace(load, leader_strikes=tuple(sorted((*load.leader_strikes, *hangs), key=lambda strike: strike[1])))


def draw_late_answers(rng: random.Random, load: DatabaseLoad) -> DatabaseLoad:
    """Draw whether the answers of bookies reach the leader late while the metadata declare it dead."""
    if rng.random() >= LATE_SHARE:
        return load
    late = [(LATE_ANSWERS, round(rng.uniform(3.0, 36.0), 3), rng.choice(LATE_S)) for _ in range(rng.choice([2, 3, 4]))]
    return replace(load, leader_strikes=tuple(sorted((*load.leader_strikes, *late), key=lambda strike: strike[1])))


def draw_crowd(rng: random.Random, load: DatabaseLoad) -> DatabaseLoad:
    """Draw whether crowds of clients come, and faults of the leader while their statements are at the log."""
    if rng.random() >= CROWD_SHARE:
        return load
    times = [round(rng.uniform(2.0, 36.0), 3) for _ in range(rng.choice([2, 3, 4]))]
    faults = [(rng.choice(WINDOW_FAULTS), at_s, rng.choice([0.3, 2.0, 4.0])) for at_s in times]
    strikes = tuple(sorted((*load.leader_strikes, *faults), key=lambda strike: strike[1]))
    return replace(load, crowd=rng.choice(CROWD_SIZES), leader_strikes=strikes)


def draw_levels(rng: random.Random, load: DatabaseLoad) -> DatabaseLoad:
    """Draw whether clients read at the levels of a session."""
    return replace(load, level_readers=rng.choice([1, 2])) if rng.random() < LEVELS_SHARE else load


def draw_placement(rng: random.Random, load: DatabaseLoad) -> DatabaseLoad:
    """Draw whether an operator moves leaders and drains nodes, and whether databases have copies on some of the nodes only."""
    if rng.random() >= PLACEMENT_SHARE:
        return load
    times = [round(rng.uniform(3.0, 30.0), 3) for _ in range(rng.choice([1, 2, 3]))]
    changes = [(rng.choice([MOVE_LEADER, MOVE_LEADER, DRAIN_NODE]), at_s, rng.choice(DRAIN_S)) for at_s in sorted(times)]
    return replace(load, copies=rng.choice(COPIES), placement_changes=tuple(changes))


def smaller_loads(load: DatabaseLoad) -> Iterator[DatabaseLoad]:
    """Smaller loads, the boldest first."""
    if load.leader_strikes:
        yield replace(load, leader_strikes=())
        for index in range(len(load.leader_strikes)):
            yield replace(load, leader_strikes=load.leader_strikes[:index] + load.leader_strikes[index + 1 :])
    if load.databases > 1:
        yield replace(load, databases=1)
    if load.talkers > 1:
        yield replace(load, talkers=1)
    if load.watchers > 0:
        yield replace(load, watchers=0)
    if load.tables:
        yield replace(load, tables=False)
    if load.registers > 1:
        yield replace(load, registers=1)
    if load.pause_mean_s < 2.0:
        yield replace(load, pause_mean_s=load.pause_mean_s * 2)
    for known in fields(load):
        if not known.repr and getattr(load, known.name) != known.default:
            usual: dict[str, Any] = {known.name: known.default}
            yield replace(load, **usual)
