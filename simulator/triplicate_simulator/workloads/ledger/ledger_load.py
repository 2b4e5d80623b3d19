"""The load of the ledger workload: how much is written, by which writers, and how."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from triplicate.client import ClientSettings

KIB = 1024


@dataclass(frozen=True)
class LedgerLoad:
    """One run's load."""

    writers: tuple[str, ...] = ("plain", "plain")
    """The kind of each writer: words of `plain`, `adv` (own ids, out of order) and `deferred` (force makes durable)."""
    ensemble_size: int = 3
    write_quorum: int = 3
    ack_quorum: int = 2
    digest: str = "CRC32C"
    wire: str = "v2"
    """Protocol of all clients; `mixed`: writers and recoverers version 2, readers version 3."""
    ledgers: int = 100
    """Largest number of ledgers of a writer while faults last."""
    entries: int = 60
    """Average number of entries of a ledger; twice as many at most."""
    pause_mean_s: float = 0.5
    """Average pause of a writer between bursts."""
    burst: int = 5
    """Largest number of appends in a burst."""
    payload_high_bytes: int = 1000
    window_entries: int = 1000
    window_bytes: int = 1024 * KIB
    explicit_lac_s: float = 0.0
    """Interval of explicit last-add-confirmed of an idle writer; 0: never."""
    delay_ensemble_change: bool = False
    break_share: float = 0.0
    """Share of bursts after which a writer's connections to some bookies of its ensemble break."""
    close_share: float = 0.5
    """Share of its ledgers that a writer closes in order; it abandons the others."""
    dormant_share: float = 0.2
    """Share of the abandoned ledgers to which a writer returns after a while and appends, unaware of any recovery."""
    tailers: int = 1
    """For each writer."""
    long_poll: bool = True
    probe_pause_s: float = 0.3
    recoverers: int = 1
    recovery_delay_s: float = 1.0
    """Average delay of the recovery of a ledger without writer."""
    zombie_share: float = 0.2
    """Share of the ledgers that are recovered although a writer still writes them."""
    zombie_delay_s: float = 4.0
    """Average delay of such a recovery after the ledger's creation; twice as late at most."""
    skew_share: float = 0.0
    """Share of such recoveries in which writer and recoverer have slow links to different bookies."""
    delete_share: float = 0.0
    """Share of its recovered ledgers that a recoverer deletes a while later."""
    undelete_share: float = 0.0
    """Share of its deleted ledgers that a recoverer restores, where there is a trash."""
    clears: bool = False
    """Whether everything is deleted at the end, after which bookies must free the space."""
    hedge_share: float = 0.05
    """Additional reads of late entries that a client may send, per read."""

    def __post_init__(self) -> None:
        # JSON knows lists only.
        object.__setattr__(self, "writers", tuple(self.writers))

    def settings(self, given: ClientSettings) -> ClientSettings:
        """Settings of the clients."""
        return replace(
            given,
            wire="v3" if self.wire == "v3" else "v2",
            window_entries=self.window_entries,
            window_bytes=self.window_bytes,
            explicit_lac_interval_s=self.explicit_lac_s,
            long_poll=self.long_poll,
            delay_ensemble_change=self.delay_ensemble_change,
            tail_wait_maximum_s=0.3,
            hedge_read_share=self.hedge_share,
        )


def draw_load(rng: random.Random) -> LedgerLoad:
    """Draw a load."""
    # Mostly the default; sometimes striped over all five bookies (which leaves no replacement for a failed one), or with other quorums.
    sizes = rng.choice([(3, 3, 2)] * 6 + [(5, 3, 2), (4, 3, 2), (3, 2, 2), (5, 5, 3), (2, 2, 2)])
    kinds = ["plain"] * 6 + ["adv"] * 2 + ["deferred", "adv deferred"]
    pace = rng.choice([(0.55, 4), (1.1, 8), (2.2, 16)])
    window = rng.choice([(1000, 1024 * KIB)] * 3 + [(10, 64 * KIB), (50, 8 * KIB)])
    load = LedgerLoad(
        # At least one plain writer: the others' entries have weaker promises.
        writers=("plain", *(rng.choice(kinds) for _ in range(rng.choice([1, 1, 2])))),
        ensemble_size=sizes[0],
        write_quorum=sizes[1],
        ack_quorum=sizes[2],
        digest=rng.choice(["CRC32C"] * 3 + ["CRC32", "HMAC", "DUMMY"]),
        wire=rng.choice(["v2", "v2", "v3", "mixed"]),
        entries=rng.choice([20, 40, 80]),
        pause_mean_s=pace[0],
        burst=pace[1],
        payload_high_bytes=rng.choice([100, 1000, 3000]),
        window_entries=window[0],
        window_bytes=window[1],
        explicit_lac_s=rng.choice([0.0, 0.0, 0.2]),
        delay_ensemble_change=rng.random() < 0.3,
        break_share=rng.choice([0.0, 0.05, 0.2]),
        close_share=rng.choice([0.2, 0.5, 0.8]),
        dormant_share=rng.choice([0.0, 0.3, 0.6]),
        long_poll=rng.random() < 0.6,
        probe_pause_s=rng.choice([0.5, 1.0]),
        recoverers=rng.choice([1, 2, 2]),
        recovery_delay_s=rng.choice([0.1, 1.0, 4.0]),
        zombie_share=rng.choice([0.0, 0.3, 0.6]),
        zombie_delay_s=rng.choice([0.5, 3.0]),
        skew_share=rng.choice([0.0, 0.9]),
        delete_share=rng.choice([0.0, 0.3, 0.6]),
        undelete_share=rng.choice([0.0, 0.5, 0.5]),
        clears=rng.random() < 0.3,
    )
    # Drawn ahead, so that the faults of each seed stay what they were.
    state = rng.getstate()
    share = rng.choice([0.05, 0.05, 0.0])
    rng.setstate(state)
    return replace(load, hedge_share=share)


def smaller_loads(load: LedgerLoad) -> Iterator[LedgerLoad]:
    """Smaller loads, the boldest first."""
    for count in range(1, len(load.writers)):
        yield replace(load, writers=load.writers[:count])
    for index in range(len(load.writers) if len(load.writers) > 1 else 0):
        yield replace(load, writers=load.writers[:index] + load.writers[index + 1 :])
    now = dataclasses.asdict(load)
    less: list[tuple[str, Any]] = [
        ("tailers", 0),
        ("recoverers", 1),
        ("probe_pause_s", 1000.0),
        ("ledgers", 1),
        ("ledgers", 2),
        ("ledgers", load.ledgers // 2),
        ("entries", 1),
        ("entries", load.entries // 4),
        ("entries", load.entries // 2),
        ("burst", 1),
    ]
    for name, value in less:
        if (value > now[name]) if name == "probe_pause_s" else (value < now[name] and (value > 0 or name == "tailers")):
            yield replace(load, **{name: value})
    plainest: dict[str, Any] = dataclasses.asdict(LedgerLoad(payload_high_bytes=100, dormant_share=0.0, zombie_share=0.0))
    words = "wire digest explicit_lac_s window_entries window_bytes payload_high_bytes"
    shares = "dormant_share zombie_share skew_share break_share delete_share undelete_share"
    for name in f"{words} {shares}".split():
        if now[name] not in (plainest[name], 1.0):
            yield replace(load, **{name: plainest[name]})
    if load.clears:
        yield replace(load, clears=False)
    if load.writers != ("plain",) * len(load.writers):
        yield replace(load, writers=("plain",) * len(load.writers))
