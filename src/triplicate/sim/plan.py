"""What happens in one seed's run, drawn before it begins: how much is written, and which faults strike when.

Each seed turns a random subset of the fault kinds on, so that runs differ in kind and not only in detail.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class BookieCrash:
    """A bookie goes down and comes back.

    `manner`: ``power`` (what was not synced is lost), ``process`` (the kernel still writes what it holds), ``stop`` (in order).
    """

    bookie: str
    at_s: float
    operation: str
    """Strike right before a disk operation of this kind instead of at once: ``sync``, ``flush`` (entry logs, index, mark),
    ``any``. Empty: at once."""
    after_operations: int
    """How many such operations to let pass first."""
    silent: bool
    down_s: float
    manner: str = "power"


@dataclass(frozen=True)
class LinkFault:
    """Something on the way from one node to another: ``block`` (held), ``slow`` (delays times ten), ``reset`` (both ways, at once)."""

    kind: str
    source: str
    target: str
    at_s: float
    lasts_s: float


@dataclass(frozen=True)
class Plan:
    """One run. Times count from the moment the cluster stands."""

    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    entries: int
    pause_mean_s: float
    """The writer pauses this long between bursts, on average."""
    payload_high_bytes: int
    window_entries: int
    tailers: int
    writer_crash_s: float
    writer_silent: bool
    recovery_s: float
    """When the recoverer begins; before `writer_crash_s` the old writer is alive and must be fenced."""
    recoverers: int
    bookie_crashes: tuple[BookieCrash, ...]
    power_loss: bool
    """All bookies crash together with the writer, right before one of them syncs: what is only written then is lost everywhere."""
    power_bookie: str
    """The bookie whose sync it is."""
    link_faults: tuple[LinkFault, ...]
    sync_high_s: float
    """A disk's sync takes up to this long. On slow disks much is under way at any moment."""
    expiries: tuple[tuple[str, float], ...]
    """Bookies whose session with the metadata store ends though they live, and when."""
    metadata_loss_rate: float
    """Share of metadata operations whose connection is lost, before or after they were applied."""

    @property
    def quiet_s(self) -> float:
        """When the last fault is over."""
        ends = [crash.at_s + crash.down_s for crash in self.bookie_crashes] + [fault.at_s + fault.lasts_s for fault in self.link_faults]
        return max([self.writer_crash_s, self.recovery_s, *ends])


def draw_plan(chance: random.Random, bookies: list[str]) -> Plan:
    """Draw one run of the standard scenario: a bookie and the writer crash, the bookie restarts, another client recovers."""
    entries = chance.randrange(150, 300)
    pause_mean_s = chance.choice([0.005, 0.02, 0.05])
    duration_s = entries / 3 * pause_mean_s
    writer_crash_s = duration_s * chance.uniform(0.5, 1.1)
    zombie = chance.random() < 0.35
    recovery_s = writer_crash_s + (-chance.uniform(0.05, 0.5) * writer_crash_s if zombie else chance.uniform(0.0, 1.0))
    crashes = [_draw_crash(chance, chance.choice(bookies), duration_s)]
    while chance.random() < 0.4:
        crashes.append(_draw_crash(chance, chance.choice(bookies), duration_s))
    faults: list[LinkFault] = []
    if chance.random() < 0.5:
        others = [*bookies, "tailer-1", "recoverer-1", "writer"]
        for _ in range(chance.randrange(1, 5)):
            kind = chance.choice(["block", "block", "slow", "reset"])
            source, target = chance.choice(bookies), chance.choice(["writer", *others])
            if chance.random() < 0.5:
                source, target = target, source
            if source != target:
                faults.append(LinkFault(kind, source, target, duration_s * chance.random(), chance.choice([0.05, 0.5, 2.0, 8.0])))
    # Mostly the default; sometimes striped over all four bookies (which leaves none to replace one that fails), or with other quorums.
    ensemble_size, write_quorum, ack_quorum = chance.choice([(3, 3, 2)] * 6 + [(4, 3, 2), (3, 2, 2)])
    return Plan(
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        entries=entries,
        pause_mean_s=pause_mean_s,
        payload_high_bytes=chance.choice([100, 1000, 5000]),
        window_entries=chance.choice([1, 10, 100]),
        tailers=chance.choice([1, 1, 2]),
        writer_crash_s=writer_crash_s,
        writer_silent=chance.random() < 0.5,
        recovery_s=recovery_s,
        recoverers=2 if chance.random() < 0.2 else 1,
        bookie_crashes=tuple(sorted(crashes, key=lambda crash: crash.at_s)),
        power_loss=chance.random() < 0.3,
        power_bookie=chance.choice(bookies),
        link_faults=tuple(faults),
        sync_high_s=chance.choice([0.004, 0.004, 0.030]),
        expiries=tuple((bookie, duration_s * chance.random()) for bookie in bookies if chance.random() < 0.1),
        metadata_loss_rate=chance.choice([0.0, 0.0, 0.01, 0.05]),
    )


def _draw_crash(chance: random.Random, bookie: str, duration_s: float) -> BookieCrash:
    operation = chance.choice(["", "any", "sync", "flush"])
    return BookieCrash(
        bookie=bookie,
        at_s=duration_s * chance.uniform(0.05, 1.0),
        operation=operation,
        # A flush is about a dozen operations.
        after_operations=chance.randrange(12 if operation == "flush" else 30),
        silent=chance.random() < 0.5,
        down_s=chance.choice([0.05, 0.5, 2.0, 6.0]),
        manner=chance.choice(["power", "power", "process", "stop"]),
    )
