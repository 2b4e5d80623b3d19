"""How much the play of logs writes, publishes and takes away, and by whom."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class LogLoad:
    """One run's load."""

    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    writers: int
    """Who compete for the first log."""
    pause_mean_s: float
    """A writer pauses this long between bursts, on average."""
    burst_high: int
    """Appends in one burst, at most."""
    tenure_mean_s: float
    """A writer wants the log for this long, on average, then leaves it in one way or another."""
    value_high_bytes: int
    window_entries: int
    roll_size_bytes: int
    roll_age_s: float
    compression: str
    evictions: int
    """How often the first log's owner is killed, paused or cut off, and others are told to hurry."""
    truncations: int
    retain_size_bytes: int
    """0 keeps everything."""
    control: bool
    """Whether tailers ask for control records as well."""
    applications: int
    """Publishers of the second log."""
    rivals: bool
    """Whether every application has two drivers, which publish the same batches at the same time."""
    batches: int
    """Per application."""
    tasks: int
    """Staging ledgers per batch."""
    deaths: int
    """The same for the writer of the third log, which changes between it and a publisher."""
    interruptions: int
    """The same for publishers of the second log."""
    outages: int
    """How often so many bookies are killed that nobody can write."""
    lost_answers: int
    """How often a change of some log's head is applied and its answer lost."""
    crowded: bool
    """Whether publishers wait for one another, so as to publish at the same moment."""
    small_pages: bool
    """Whether metadata nodes list so few segments that most of them move to pages."""
    orphan_grace_s: float = 3600.0
    """Ledgers that no log lists are swept at this age."""
    publisher_idle_s: float = 30 * 86400.0
    """What a publisher published last is forgotten after this time."""
    clocks_apart_s: float = 0.0
    """The wall clocks of every second publisher are ahead by this."""
    sweeps: int = 0
    """How often a log is swept at the very moment in which somebody is about to list a ledger."""
    # Left out of the load's text, from which further draws are seeded: they stay what they were.
    publishers_kept: int = field(default=10_000, repr=False)
    """Publishers beyond this number are forgotten when they are idle."""
    guests: int = field(default=0, repr=False)
    """Publishers of the first log, for which writers compete: its living writer lists their batches."""
    guest_batches: int = field(default=0, repr=False)
    """Per guest."""
    publish_wait_s: float = field(default=30.0, repr=False)
    """How long a publisher waits for a living writer."""


def draw_load(chance: random.Random) -> LogLoad:
    """Draw a load."""
    # Many short segments bring pages; long ones bring ensemble changes in their midst.
    roll_size_bytes = chance.choice([1024, 1024, 4096, 64 * 1024])
    # Five bookies of five leave none to replace one that fails: its segment breaks, and its writer must get past it.
    ensemble_size, write_quorum, ack_quorum = chance.choice([(3, 3, 2), (3, 3, 2), (5, 3, 2), (5, 3, 2), (4, 3, 2), (3, 2, 2)])
    load = LogLoad(
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        writers=chance.choice([2, 3, 3]),
        pause_mean_s=chance.choice([0.2, 0.35, 0.6]),
        burst_high=chance.choice([2, 3, 5]),
        tenure_mean_s=chance.choice([3.0, 8.0, 20.0]),
        value_high_bytes=chance.choice([20, 200, 800]),
        window_entries=chance.choice([3, 8, 100]),
        roll_size_bytes=roll_size_bytes,
        roll_age_s=chance.choice([2.0, 20.0]),
        compression=chance.choice(["auto", "none", "zlib", "zstd"]),
        evictions=chance.randrange(3, 7),
        truncations=chance.choice([0, 1, 2, 4]),
        retain_size_bytes=chance.choice([0, 0, 0, 8 * 1024]),
        control=chance.random() < 0.5,
        applications=chance.choice([1, 2]),
        rivals=chance.random() < 0.5,
        batches=chance.randrange(2, 6),
        tasks=chance.randrange(1, 4),
        deaths=chance.randrange(0, 4),
        interruptions=chance.randrange(0, 3),
        outages=chance.choice([0, 1, 1, 2]),
        lost_answers=chance.choice([2, 6, 12]),
        crowded=chance.random() < 0.6,
        small_pages=chance.random() < 0.5,
    )
    # A stream of chance of its own, so that everything above is what it was before there were sweeps of young ledgers.
    load = draw_sweeps(random.Random(repr(load)), load)
    load = draw_publishers(random.Random(f"publishers of {load!r}"), load)
    return draw_guests(random.Random(f"guests of {load!r}"), load)


def draw_sweeps(chance: random.Random, load: LogLoad) -> LogLoad:
    """Draw how young the ledgers are that sweeps take, and how often one comes at the worst moment."""
    grace_s = chance.choice([3600.0, 1.0, 4.0])
    return replace(load, orphan_grace_s=grace_s, sweeps=chance.choice([1, 2, 4]) if grace_s < 60.0 else 0)


def draw_publishers(chance: random.Random, load: LogLoad) -> LogLoad:
    """Draw how many publishers are kept, how soon others are forgotten, and how far the clocks of publishers are apart."""
    kept, idle_s, apart_s = chance.choice([10_000, 0, 0, 1]), chance.choice([1.0, 3.0, 8.0]), chance.choice([0.0, 0.0, 30.0, 3600.0])
    if kept == 10_000:
        return load
    return replace(load, publishers_kept=kept, publisher_idle_s=idle_s, clocks_apart_s=apart_s)


def draw_guests(chance: random.Random, load: LogLoad) -> LogLoad:
    """Draw how many publishers the first log has beside its writers, and how patient publishers are."""
    return replace(
        load, guests=chance.choice([0, 1, 2, 2]), guest_batches=chance.randrange(3, 9), publish_wait_s=chance.choice([0.5, 3.0, 10.0])
    )
