"""The simulator: whole clusters of the real code in virtual time, driven and broken by one seed, and judged by checkers.

`run_seed` runs one seed's scenario, `run` many. The world that clusters run in is `triplicate.sim`.
"""

from triplicate_simulator.checkers.history import History, Verdict, judge
from triplicate_simulator.checkers.ledger_checkers import LEDGER_CHECKERS
from triplicate_simulator.checkers.ledger_promises import Acknowledged, Copy, Ended, Event, Read, Sent, Tailed
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
from triplicate_simulator.faults.fault_kind import FaultKind
from triplicate_simulator.faults.fault_table import FAULT_KINDS
from triplicate_simulator.runner.mutants import (
    InvalidMutant,
    Mutant,
    MutantResult,
    apply_mutant,
    hunt_all,
    mutants_folder,
    read_mutants,
    violations_without_mutants,
)
from triplicate_simulator.runner.replay import describe_run, replay
from triplicate_simulator.runner.scenario import (
    OTHER_FINDINGS,
    Result,
    Scenario,
    plan_from_json,
    plan_of,
    reporter_of,
    run_seed,
    workload_of,
)
from triplicate_simulator.runner.seed_runs import Summary, run
from triplicate_simulator.runner.shrink import NothingToShrink, ShrunkPlan, shrink
from triplicate_simulator.runner.timeline import Line, timeline
from triplicate_simulator.workloads.workload import Workload
from triplicate_simulator.workloads.workload_table import WORKLOADS

__all__ = [
    "FAULT_KINDS",
    "LEDGER_CHECKERS",
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
    "InvalidMutant",
    "Line",
    "Mutant",
    "MutantResult",
    "NothingToShrink",
    "Plan",
    "Read",
    "Result",
    "RunContext",
    "Scenario",
    "Sent",
    "ShrunkPlan",
    "SimulatedCluster",
    "SimulatedNode",
    "Summary",
    "Tailed",
    "Verdict",
    "Workload",
    "apply_mutant",
    "describe_run",
    "hunt_all",
    "judge",
    "mutants_folder",
    "plan_from_json",
    "plan_of",
    "read_mutants",
    "replay",
    "reporter_of",
    "run",
    "run_seed",
    "shrink",
    "small_bookie_settings",
    "timeline",
    "violations_without_mutants",
    "workload_of",
]
