"""The simulator: the real code of clients and bookies on virtual time, network and disks, driven and broken by one seed.

`run_seed` plays the standard scenario once, `run` for many seeds. To simulate something of your own: make a `World`, a
`SimulatedCluster` in it, write down what clients see in a `History`, and let `judge` look at it.
"""

from triplicate.sim.checkers import CHECKERS, Acknowledged, Copy, Ended, Event, History, Read, Sent, Tailed, Verdict, judge
from triplicate.sim.cluster import BookieNode, ClientNode, ClusterOptions, Node, SimulatedCluster, small_bookie_settings
from triplicate.sim.disk import DiskTiming, SimulatedDisk
from triplicate.sim.faults import KINDS, FaultKind
from triplicate.sim.host import NodeDied, SimulatedHost, World, derive_seed
from triplicate.sim.loop import HostCrashed, Life, SimulationStuck, VirtualLoop
from triplicate.sim.mutants import Hunt, Mutant, MutantMisfit, apply_mutant, hunt_all, mutants_folder, read_mutants, unclean
from triplicate.sim.network import NetworkTiming, SimulatedNetwork
from triplicate.sim.plan import Plan, Strike
from triplicate.sim.plays import PLAYS, Play
from triplicate.sim.points import Barrier, FaultPoints, Trap, points_known
from triplicate.sim.record import Fact, Recorder
from triplicate.sim.replay import replay, told
from triplicate.sim.run import Summary, run
from triplicate.sim.scenario import OTHER_FINDINGS, Result, Scenario, found_by, plan_from_json, plan_of, play_of, run_seed
from triplicate.sim.shrink import NothingToShrink, Shrunk, shrink
from triplicate.sim.stage import Stage
from triplicate.sim.timeline import Line, timeline

__all__ = [
    "CHECKERS",
    "KINDS",
    "OTHER_FINDINGS",
    "PLAYS",
    "Acknowledged",
    "Barrier",
    "BookieNode",
    "ClientNode",
    "ClusterOptions",
    "Copy",
    "DiskTiming",
    "Ended",
    "Event",
    "Fact",
    "FaultKind",
    "FaultPoints",
    "History",
    "HostCrashed",
    "Hunt",
    "Life",
    "Line",
    "Mutant",
    "MutantMisfit",
    "NetworkTiming",
    "Node",
    "NodeDied",
    "NothingToShrink",
    "Plan",
    "Play",
    "Read",
    "Recorder",
    "Result",
    "Scenario",
    "Sent",
    "Shrunk",
    "SimulatedCluster",
    "SimulatedDisk",
    "SimulatedHost",
    "SimulatedNetwork",
    "SimulationStuck",
    "Stage",
    "Strike",
    "Summary",
    "Tailed",
    "Trap",
    "Verdict",
    "VirtualLoop",
    "World",
    "apply_mutant",
    "derive_seed",
    "found_by",
    "hunt_all",
    "judge",
    "mutants_folder",
    "plan_from_json",
    "plan_of",
    "play_of",
    "points_known",
    "read_mutants",
    "replay",
    "run",
    "run_seed",
    "shrink",
    "small_bookie_settings",
    "timeline",
    "told",
    "unclean",
]
