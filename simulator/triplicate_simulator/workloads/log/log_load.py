"""The load of the log workload: how much is written, published and removed, and by which clients."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

RETAIN_AGE_S = 86_400.0
"""How long logs keep records where the sweeper's clock is wrong: longer than any run."""

WIDE_ENSEMBLE, WIDE_SHARE = 20, 0.05
"""Size of ensembles that are much wider than their write quorum, and the share of seeds with them. The cluster has as many bookies then."""


@dataclass(frozen=True)
class LogLoad:
    """One run's load."""

    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    writers: int
    """Writers that compete for the first log."""
    pause_mean_s: float
    """Average pause of a writer between bursts."""
    burst_high: int
    """Largest number of appends in one burst."""
    tenure_mean_s: float
    """Average time for which a writer keeps the log before it leaves it in one way or another."""
    value_high_bytes: int
    window_entries: int
    roll_size_bytes: int
    roll_age_s: float
    compression: str
    evictions: int
    """Number of times that the first log's owner is killed, paused or cut off, and others are to take over."""
    truncations: int
    retain_size_bytes: int
    """0 keeps everything."""
    control: bool
    """Whether tailers read control records as well."""
    applications: int
    """Publishers of the second log."""
    rivals: bool
    """Whether every application has two publishers, which publish the same batches at the same time."""
    batches: int
    """Per application."""
    tasks: int
    """Staging ledgers per batch."""
    deaths: int
    """Like `evictions`, for the writer of the third log, which alternates with a publisher."""
    interruptions: int
    """Like `evictions`, for publishers of the second log."""
    outages: int
    """Number of times that enough bookies are killed to stop every writer."""
    lost_answers: int
    """Number of times that a change of some log's head is applied and its answer lost."""
    crowded: bool
    """Whether publishers wait for one another, so as to publish at the same moment."""
    small_pages: bool
    """Whether metadata nodes list so few segments that most of them move to pages."""
    orphan_grace_s: float = 3600.0
    """Age at which ledgers that no log lists are swept."""
    publisher_idle_s: float = 30 * 86400.0
    """Time after which an idle publisher's last batch is forgotten."""
    clocks_apart_s: float = 0.0
    """Error of the wall clocks of every second publisher."""
    sweeps: int = 0
    """Number of times that a log is swept at the very moment at which a ledger is about to be listed."""
    # Not part of the load's repr, which seeds further draws, so that these stay the same.
    publishers_kept: int = field(default=10_000, repr=False)
    """Idle publishers beyond this number are forgotten."""
    guests: int = field(default=0, repr=False)
    """Publishers of the first log, whose living writer lists their batches."""
    guest_batches: int = field(default=0, repr=False)
    """Per guest."""
    publish_wait_s: float = field(default=30.0, repr=False)
    """Time that a publisher waits for a living writer."""
    producers: int = field(default=0, repr=False)
    """Producers that number their records, and append them again after unknown outcomes."""
    recreations: int = field(default=0, repr=False)
    """Number of times that a log is deleted and created again, while an operation on it hangs."""
    sweeper_ahead_s: float = field(default=0.0, repr=False)
    """Error of the wall clock of the node that truncates and sweeps. If there is one, the logs keep records for a day."""
    strandings: int = field(default=0, repr=False)
    """Number of times that a writer ends while its process cannot reach the metadata."""
    encrypted: bool = field(default=False, repr=False)
    """Whether the logs are encrypted, and writers rotate their keys. Not drawn: bodies of another size would change every schedule."""


def draw_load(rng: random.Random) -> LogLoad:
    """Draw a load."""
    # Many short segments lead to pages; long ones to ensemble changes within them.
    roll_size_bytes = rng.choice([1024, 1024, 4096, 64 * 1024])
    # Ensembles of all five bookies leave no replacement: their segment breaks, and the writer must repair it.
    ensemble_size, write_quorum, ack_quorum = rng.choice([(3, 3, 2), (3, 3, 2), (5, 3, 2), (5, 3, 2), (4, 3, 2), (3, 2, 2)])
    load = LogLoad(
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        writers=rng.choice([2, 3, 3]),
        pause_mean_s=rng.choice([0.2, 0.35, 0.6]),
        burst_high=rng.choice([2, 3, 5]),
        tenure_mean_s=rng.choice([3.0, 8.0, 20.0]),
        value_high_bytes=rng.choice([20, 200, 800]),
        window_entries=rng.choice([3, 8, 100]),
        roll_size_bytes=roll_size_bytes,
        roll_age_s=rng.choice([2.0, 20.0]),
        compression=rng.choice(["auto", "none", "zlib", "zstd"]),
        evictions=rng.randrange(3, 7),
        truncations=rng.choice([0, 1, 2, 4]),
        retain_size_bytes=rng.choice([0, 0, 0, 8 * 1024]),
        control=rng.random() < 0.5,
        applications=rng.choice([1, 2]),
        rivals=rng.random() < 0.5,
        batches=rng.randrange(2, 6),
        tasks=rng.randrange(1, 4),
        deaths=rng.randrange(0, 4),
        interruptions=rng.randrange(0, 3),
        outages=rng.choice([0, 1, 1, 2]),
        lost_answers=rng.choice([2, 6, 12]),
        crowded=rng.random() < 0.6,
        small_pages=rng.random() < 0.5,
    )
    # A random stream of its own, so that the draws above are unchanged by the addition of sweeps.
    load = draw_sweeps(random.Random(repr(load)), load)
    load = draw_publishers(random.Random(f"publishers of {load!r}"), load)
    load = draw_guests(random.Random(f"guests of {load!r}"), load)
    load = replace(load, producers=random.Random(f"producers of {load!r}").choice([0, 1, 2]))
    load = replace(load, strandings=random.Random(f"strandings of {load!r}").choice([0, 1]))
    rng = random.Random(f"recreations of {load!r}")
    load = replace(load, recreations=rng.choice([0, 2, 4]), sweeper_ahead_s=rng.choice([0.0, 0.0, 2.0, -2.0]) * RETAIN_AGE_S)
    if random.Random(f"wide ensembles of {load!r}").random() < WIDE_SHARE:
        load = replace(load, ensemble_size=WIDE_ENSEMBLE, write_quorum=3, ack_quorum=2)
    return load


def draw_sweeps(rng: random.Random, load: LogLoad) -> LogLoad:
    """Draw the minimum age of swept ledgers, and the number of sweeps at the worst moment."""
    grace_s = rng.choice([3600.0, 1.0, 4.0])
    return replace(load, orphan_grace_s=grace_s, sweeps=rng.choice([1, 2, 4]) if grace_s < 60.0 else 0)


def draw_publishers(rng: random.Random, load: LogLoad) -> LogLoad:
    """Draw how many publishers are kept, how soon others are forgotten, and the errors of publishers' clocks."""
    kept, idle_s, apart_s = rng.choice([10_000, 0, 0, 1]), rng.choice([1.0, 3.0, 8.0]), rng.choice([0.0, 0.0, 30.0, 3600.0])
    if kept == 10_000:
        return load
    return replace(load, publishers_kept=kept, publisher_idle_s=idle_s, clocks_apart_s=apart_s)


def draw_guests(rng: random.Random, load: LogLoad) -> LogLoad:
    """Draw how many publishers the first log has besides its writers, and how long publishers wait."""
    return replace(load, guests=rng.choice([0, 1, 2, 2]), guest_batches=rng.randrange(3, 9), publish_wait_s=rng.choice([0.5, 3.0, 10.0]))
