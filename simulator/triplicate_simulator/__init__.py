"""The simulator: whole clusters of the real code in virtual time, driven and broken by one seed, and judged by checkers.

`run_seed` runs one seed's scenario, `run` many. The world that clusters run in is `triplicate.sim`.
"""

from triplicate_simulator.checkers import CHECKERS, Acknowledged, Copy, Ended, Event, History, Read, Sent, Tailed, Verdict, judge
from triplicate_simulator.cluster.plan import Fault, Plan
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.cluster.simulated_cluster import (
    BookieNode,
    ClientNode,
    ClusterOptions,
    SimulatedCluster,
    SimulatedNode,
    small_bookie_settings,
)
from triplicate_simulator.faults import KINDS, FaultKind
from triplicate_simulator.runner.mutants import Hunt, Mutant, MutantMisfit, apply_mutant, hunt_all, mutants_folder, read_mutants, unclean
from triplicate_simulator.runner.replay import replay, told
from triplicate_simulator.runner.scenario import OTHER_FINDINGS, Result, Scenario, found_by, plan_from_json, plan_of, run_seed, workload_of
from triplicate_simulator.runner.seed_runs import Summary, run
from triplicate_simulator.runner.shrink import NothingToShrink, Shrunk, shrink
from triplicate_simulator.runner.timeline import Line, timeline
from triplicate_simulator.workloads import WORKLOADS, Workload

__all__ = [
    "CHECKERS",
    "KINDS",
    "OTHER_FINDINGS",
    "WORKLOADS",
    "Acknowledged",
    "BookieNode",
    "ClientNode",
    "ClusterOptions",
    "Copy",
    "Ended",
    "Event",
    "Fault",
    "FaultKind",
    "History",
    "Hunt",
    "Line",
    "Mutant",
    "MutantMisfit",
    "NothingToShrink",
    "Plan",
    "Read",
    "Result",
    "RunContext",
    "Scenario",
    "Sent",
    "Shrunk",
    "SimulatedCluster",
    "SimulatedNode",
    "Summary",
    "Tailed",
    "Verdict",
    "Workload",
    "apply_mutant",
    "found_by",
    "hunt_all",
    "judge",
    "mutants_folder",
    "plan_from_json",
    "plan_of",
    "read_mutants",
    "replay",
    "run",
    "run_seed",
    "shrink",
    "small_bookie_settings",
    "timeline",
    "told",
    "unclean",
    "workload_of",
]
