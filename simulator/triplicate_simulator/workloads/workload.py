"""What a play is: a workload over the simulated cluster, with the checkers that judge what its clients saw."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from triplicate_simulator.checkers.history import Checker
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.cluster.simulated_cluster import ClusterOptions


class Workload(ABC):
    """One run of one kind of scenario. Its `load` is a frozen dataclass of plain values."""

    name: ClassVar[str]
    load_type: ClassVar[type[Any]]
    checkers: ClassVar[Mapping[str, Checker]]
    counted: ClassVar[tuple[str, ...]] = ()
    """Names in `counts` that must not be zero over a hundred seeds."""
    rooms: ClassVar[tuple[str, ...]] = ("client",)
    """Rooms of the code that its nodes beside the bookies run: faults may strike at their fault points."""
    ambushed: ClassVar[bool] = False
    """Whether ambushes wait at decisive moments of its clients."""

    def __init__(self, stage: RunContext, load: Any) -> None:
        self.stage = stage
        self.load = load

    @classmethod
    @abstractmethod
    def draw(cls, chance: random.Random) -> Any:
        """Draw a load."""

    @classmethod
    @abstractmethod
    def clients(cls, load: Any) -> tuple[str, ...]:
        """Names of the nodes beside the bookies that faults may strike: each is kept by `Stage.keep`, or restarts by itself."""

    @classmethod
    def smaller(cls, load: Any) -> Iterator[Any]:
        """Loads that ask for less, the boldest first: what shrinking tries."""
        return iter(())

    @classmethod
    def losses_max(cls, load: Any) -> int:
        """How many bookies may lose data which they had synced: the smallest ack quorum of this load's ledgers, less one.

        None where ledgers need every bookie that there is, since one that has lost data may stay down.
        """
        spare = int(getattr(load, "ensemble_size", 3)) < ClusterOptions.bookies
        return max(0, int(getattr(load, "ack_quorum", 2)) - 1) if spare else 0

    @abstractmethod
    async def begin(self) -> None:
        """The cluster stands: make what is needed and start the actors. Faults begin when this returns."""

    @abstractmethod
    async def finish(self) -> None:
        """Faults are over (`Stage.quiet` is set): bring every actor to its end by `Stage.by_deadline`, then read everything."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """What happened, in numbers."""
