"""The base of workloads: programs on a simulated cluster, with the checkers that judge what their clients saw."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from triplicate_simulator.checkers.history import Checker
from triplicate_simulator.cluster.plan import Fault
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.cluster.simulated_cluster import ClusterOptions
from triplicate_simulator.faults.fault_kind import FaultTargets


class Workload(ABC):
    """One run of one workload. Its `load` is a frozen dataclass of plain values."""

    name: ClassVar[str]
    load_type: ClassVar[type[Any]]
    checkers: ClassVar[Mapping[str, Checker]]
    counted: ClassVar[tuple[str, ...]] = ()
    """Names in `counts` that must not be zero over a hundred seeds."""
    rooms: ClassVar[tuple[str, ...]] = ("client",)
    """Rooms of the code that its nodes other than bookies run: faults may strike at their fault points."""
    ambushed: ClassVar[bool] = False
    """Whether triggered faults wait at decisive points of its clients."""

    def __init__(self, context: RunContext, load: Any) -> None:
        self.context = context
        self.load = load

    @classmethod
    @abstractmethod
    def draw(cls, rng: random.Random) -> Any:
        """Draw a load."""

    @classmethod
    @abstractmethod
    def clients(cls, load: Any) -> tuple[str, ...]:
        """Names of the nodes other than bookies that faults may strike. Each is kept by the run context, or restarts by itself."""

    @classmethod
    def smaller(cls, load: Any) -> Iterator[Any]:
        """Smaller loads, the boldest first, for shrinking."""
        return iter(())

    @classmethod
    def machines(cls, load: Any) -> Mapping[str, str]:
        """The machine of each bookie, where several share one; empty for the usual bookies with a machine each."""
        return {}

    @classmethod
    def draw_further_faults(cls, rng: random.Random, targets: FaultTargets, duration_s: float) -> tuple[Fault, ...]:
        """Draw faults that only this workload survives, from a random stream of their own."""
        return ()

    @classmethod
    def losses_max(cls, load: Any) -> int:
        """Number of bookies that may lose synced data: the smallest ack quorum of this load's ledgers, less one.

        Zero where ledgers need every bookie, since one that has lost data may stay down.
        """
        spare = int(getattr(load, "ensemble_size", 3)) < ClusterOptions.bookies
        return max(0, int(getattr(load, "ack_quorum", 2)) - 1) if spare else 0

    @abstractmethod
    async def begin(self) -> None:
        """Create what is needed and start the actors. The cluster runs; faults begin when this returns."""

    @abstractmethod
    async def finish(self) -> None:
        """Bring every actor to its end by the deadline, then read everything. Faults are over."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Counts of events."""
