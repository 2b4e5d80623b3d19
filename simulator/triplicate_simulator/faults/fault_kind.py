"""The type of a kind of fault, and the targets of faults."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from triplicate_simulator.cluster.plan import PLAIN_SETUP, BookieSetup, Fault
from triplicate_simulator.cluster.run_context import RunContext


@dataclass(frozen=True)
class FaultTargets:
    """Possible targets of a seed's faults."""

    bookies: tuple[str, ...]
    clients: tuple[str, ...]
    """Every node other than the bookies."""
    points: tuple[str, ...] = ()
    """Fault points that this workload's nodes may reach."""
    losses_max: int = 0
    """Number of bookies that may lose synced data: ack quorum - 1."""
    storage: BookieSetup = PLAIN_SETUP

    def any_node(self, rng: random.Random, *, bookie_rate: float = 0.6) -> str:
        """Return one node; more often a bookie than not."""
        return rng.choice(self.bookies if not self.clients or rng.random() < bookie_rate else self.clients)

    def point_of(self, rng: random.Random, node: str) -> str | None:
        """Return one fault point that a node of this sort may reach."""
        of_bookies = node in self.bookies
        names = [name for name in self.points if name.startswith("bookie.") == of_bookies]
        return rng.choice(names) if names else None


Draw = Callable[[random.Random, FaultTargets, float], Fault | None]


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault. `draw` makes a fault at a time, or None where it has no target. `run` carries it out, and undoes it when its
    time is over. `struck` of the run context counts only faults that had an effect."""

    meaning: str
    """The effect, in a few words."""
    draw: Draw
    run: Callable[[RunContext, Fault], Awaitable[None]]


@contextmanager
def undo_at_end(undo: Callable[[], object]) -> Iterator[None]:
    """Undo a fault when its time is over, or when it is interrupted."""
    try:
        yield
    finally:
        undo()
