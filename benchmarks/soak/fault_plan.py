"""The faults of a soak run, planned from a seed before the run. Pure.

A round has every kind once, in an order drawn from the seed. Faults do not overlap. The disks of at most one bookie are lost in a round
before the copies are restored: the injector waits for the end of the previous restoration.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Sequence
from dataclasses import dataclass


class FaultKind(enum.Enum):
    """One kind of fault."""

    KILL = "bookie killed"
    STOP = "bookie stopped"
    DELAY = "bookie delayed"
    DROP = "bookie unreachable"
    CUT = "connections cut"
    FULL = "disk full"
    WIPE = "disks lost"
    REPLACE = "disks replaced"
    DECOMMISSION = "bookie decommissioned"
    NODE_KILL = "leading node killed"
    NODE_STOP = "leading node stopped"


DURATIONS_S = {
    FaultKind.KILL: (2.0, 6.0),
    FaultKind.STOP: (3.0, 9.0),
    FaultKind.DELAY: (5.0, 10.0),
    FaultKind.DROP: (4.0, 8.0),
    FaultKind.CUT: (4.0, 8.0),
    FaultKind.FULL: (6.0, 10.0),
    FaultKind.WIPE: (3.0, 6.0),
    FaultKind.REPLACE: (1.0, 4.0),
    FaultKind.DECOMMISSION: (3.0, 6.0),
    FaultKind.NODE_KILL: (2.0, 5.0),
    FaultKind.NODE_STOP: (2.5, 8.0),
}
"""Shortest and longest duration of each kind, in seconds. For lost disks: the time until there is a bookie with empty ones, another
one or (disks replaced) the same."""
CALM_S = (2.0, 4.0)
"""Shortest and longest pause after a fault, in seconds."""
NODE_KINDS = (FaultKind.NODE_KILL, FaultKind.NODE_STOP)
"""Kinds that strike the node that leads a database, whichever it is."""
ENDS_PROCESS = (FaultKind.KILL, FaultKind.WIPE, FaultKind.REPLACE, FaultKind.DECOMMISSION, FaultKind.FULL)
"""Kinds that may end the bookie's process. They spare one place, so that the memory of one bookie is observed over the whole run."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault.

    Args:
        at_s: seconds from the start of the load.
        place: number of the bookie's place, from 1 on; 0 for the leading node.
        lasts_s: duration in seconds.
    """

    at_s: float
    kind: FaultKind
    place: int
    lasts_s: float

    def __str__(self) -> str:
        where = f" {self.place}" if self.place else ""
        return f"{self.at_s:.1f} s: {self.kind.value}{where}, {self.lasts_s:.1f} s"


def make_plan(seed: int, seconds: float, places: Sequence[int], *, small_disk: int, observed: int) -> tuple[PlannedFault, ...]:
    """The faults that begin and end within a time.

    Args:
        places: numbers of the places of bookies.
        small_disk: the place whose disk fills.
        observed: the place whose process is not ended.
    """
    chance = random.Random(f"soak {seed}")
    plan: list[PlannedFault] = []
    at_s = chance.uniform(*CALM_S)
    while True:
        for kind in chance.sample(list(FaultKind), len(FaultKind)):
            lasts_s = chance.uniform(*DURATIONS_S[kind])
            drawn = chance.choice([place for place in places if place != observed or kind not in ENDS_PROCESS])
            place = 0 if kind in NODE_KINDS else small_disk if kind is FaultKind.FULL else drawn
            if at_s + lasts_s > seconds:
                return tuple(plan)
            plan.append(PlannedFault(at_s, kind, place, lasts_s))
            at_s += lasts_s + chance.uniform(*CALM_S)
