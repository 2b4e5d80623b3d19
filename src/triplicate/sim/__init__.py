"""The ports of `triplicate.runtime` in virtual time: a loop, a network, disks and hosts, and everything drawn from one seed.

For your own tests: make a `World`, start hosts in it, run the real code on their ports, crash and partition them.
The package `triplicate_simulator` runs whole clusters under faults, with workloads and checkers.
"""

from triplicate.sim.barriers import Barrier, FaultPoints, Trap, points_known
from triplicate.sim.disk import DiskTiming, SimulatedDisk
from triplicate.sim.host import NodeDied, SimulatedHost, World, derive_seed
from triplicate.sim.network import SimulatedNetwork
from triplicate.sim.recorder import Fact, Recorder
from triplicate.sim.transport import NetworkTiming
from triplicate.sim.virtual_loop import HostCrashed, Life, SimulationStuck, VirtualLoop

__all__ = [
    "Barrier",
    "DiskTiming",
    "Fact",
    "FaultPoints",
    "HostCrashed",
    "Life",
    "NetworkTiming",
    "NodeDied",
    "Recorder",
    "SimulatedDisk",
    "SimulatedHost",
    "SimulatedNetwork",
    "SimulationStuck",
    "Trap",
    "VirtualLoop",
    "World",
    "derive_seed",
    "points_known",
]
