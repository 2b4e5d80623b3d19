"""How much the play of ledgers writes, and by whom."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class LedgerLoad:
    """One run's load."""

    writers: int
    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    entries: int
    """Per writer."""
    pause_mean_s: float
    """A writer pauses this long between bursts, on average."""
    payload_high_bytes: int
    recovery_s: float
    """When the recoverer begins, alive or not."""


def draw_load(chance: random.Random) -> LedgerLoad:
    """Draw a load."""
    # Mostly the default; sometimes striped over all five bookies (which leaves none to replace one that fails), or with other quorums.
    ensemble_size, write_quorum, ack_quorum = chance.choice([(3, 3, 2)] * 6 + [(5, 3, 2), (4, 3, 2), (3, 2, 2)])
    return LedgerLoad(
        writers=2,
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=ack_quorum,
        entries=chance.randrange(150, 300),
        pause_mean_s=chance.choice([0.05, 0.2, 0.4]),
        payload_high_bytes=chance.choice([100, 1000, 5000]),
        recovery_s=chance.uniform(5.0, 44.0),
    )
