"""What a kind of fault is, and what there is to strike."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from triplicate_simulator.cluster.plan import PLAIN_SETUP, BookieSetup, PlannedFault
from triplicate_simulator.cluster.run_context import RunContext


@dataclass(frozen=True)
class FaultTargets:
    """What a seed's faults may strike."""

    bookies: tuple[str, ...]
    clients: tuple[str, ...]
    """Every node beside the bookies."""
    points: tuple[str, ...] = ()
    """Fault points that this play's nodes may come to."""
    losses_max: int = 0
    """How many bookies may lose data which they had synced: ack quorum - 1."""
    storage: BookieSetup = PLAIN_SETUP

    def any_node(self, chance: random.Random, *, bookie_rate: float = 0.6) -> str:
        """One node; more often a bookie than not."""
        return chance.choice(self.bookies if not self.clients or chance.random() < bookie_rate else self.clients)

    def point_of(self, chance: random.Random, node: str) -> str | None:
        """One fault point that a node of this sort may come to."""
        of_bookies = node in self.bookies
        names = [name for name in self.points if name.startswith("bookie.") == of_bookies]
        return chance.choice(names) if names else None


Draw = Callable[[random.Random, FaultTargets, float], PlannedFault | None]


@dataclass(frozen=True)
class FaultKind:
    """One kind. `draw` makes a strike at a time, or None where there is nothing to strike; `strike` does it, and undoes it when its time is
    over. `struck` of the stage counts only what struck something."""

    meaning: str
    """What happens, in a few words."""
    draw: Draw
    strike: Callable[[RunContext, PlannedFault], Awaitable[None]]


@contextmanager
def undone(undo: Callable[[], object]) -> Iterator[None]:
    """Take a fault back when its time is over, or when its striking is interrupted."""
    try:
        yield
    finally:
        undo()
