"""Histories of databases and key-value stores while leaders and bookies are killed, stopped and cut off, checked at the end.

Usage: python -m benchmarks.histories.run [--operations 20000] [--rounds 2] [--metadata sqlite] [--clusters processes,machines]

Two clusters, one after the other. `processes`: four bookies and three nodes on this machine, which are killed and stopped. `machines`:
three network namespaces, each with a bookie and a node, one of which is cut off (left out without the right to make them). On each there
are clients of a database, of a key-value store, and of both at each level of reads. Each round injects every fault once. The run of a
cluster ends after the requested numbers of operations and rounds. Prints tables of the gaps and of the verdicts, and writes
build/bench/histories.json.
Exit code 1: a history is wrong or undecided, or a process did not recover.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.histories.clients import Client, Shared
from benchmarks.histories.cluster import FaultyCluster, LocalCluster, RunFailed, wait_for
from benchmarks.histories.final_state import judge_database, judge_store, prepare, store_leader
from benchmarks.histories.level_doors import sql_doors, store_doors
from benchmarks.histories.levels import LevelClients
from benchmarks.histories.machine_cluster import MachineCluster
from benchmarks.histories.nemesis import CUTS, FAULTS, Fault, Nemesis, Target
from benchmarks.histories.outcome import Outcome, facts_of, show
from benchmarks.histories.stages import Blame, Kind, Result, Stages
from benchmarks.histories.store_clients import PAUSE_S, StoreClient
from benchmarks.histories.windows import environment, read_windows
from benchmarks.ledger.processes import BUILD
from benchmarks.machines.fleet import MACHINES
from benchmarks.machines.network import Network, inside_own_network

DATABASE, STORE = "books", "basket"
CLIENTS, STORE_CLIENTS, WANDERERS = 24, 8, 3
SECONDS_MAX = 1800.0
JOIN_LIMIT_S = 60.0
MODULE = "benchmarks.histories.run"
KINDS = ("processes", "machines")
RESP = {"TRIPLICATE_RESP_SERVE": "true"}
SQL = (Kind.STATEMENTS, Kind.TRANSACTIONS)


@dataclass
class Load:
    """All clients of a run, which share its stages."""

    cluster: FaultyCluster
    stages: Stages = field(default_factory=Stages)

    def __post_init__(self) -> None:
        nodes, stores = lambda: list(self.cluster.addresses.values()), self.cluster.resp_addresses
        self.database = Shared(nodes, DATABASE, self.stages)
        self.store = Shared(stores, STORE, self.stages)
        self.levels = [
            LevelClients(nodes, sql_doors(DATABASE), Kind.SQL_LEVELS, self.stages),
            LevelClients(stores, store_doors(STORE), Kind.KEY_VALUE_LEVELS, self.stages),
        ]
        self.targets = [
            Target(DATABASE, lambda: self.cluster.leader(DATABASE), self.database),
            Target(STORE, lambda: store_leader(self.cluster, STORE), self.store),
        ]

    def prepare(self) -> None:
        """Make the database and the store."""
        self.cluster.command("database", "create", DATABASE)
        self.cluster.command("kv", "create", STORE)
        wait_for(lambda: prepare(self.cluster, DATABASE), "the tables are made")
        wait_for(lambda: store_leader(self.cluster, STORE), "a node leads the store")

    def run(self, work: Callable[[], None], clients: int, store_clients: int, pause_s: float = 0.0) -> float:
        """Run the clients beside some work; the seconds that it took.

        Args:
            pause_s: of each client after each operation; 0: what is usual for its kind.

        Raises:
            RunFailed: a client ended by itself, or does not end.
        """
        threads: list[Client | StoreClient] = [Client(self.database, number, pause_s) for number in range(clients)]
        threads += [StoreClient(self.store, number, pause_s=pause_s or PAUSE_S) for number in range(store_clients)]
        threads += [StoreClient(self.store, number, wanders=True) for number in range(WANDERERS)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            with contextlib.ExitStack() as stack:
                for levels in self.levels:
                    stack.enter_context(levels)
                work()
        finally:
            seconds = time.monotonic() - began
            self.database.over.set()
            self.store.over.set()
            for thread in threads:
                thread.join(JOIN_LIMIT_S)
        for thread in threads:
            if thread.failure is not None or thread.is_alive():
                raise RunFailed(f"{thread.name} ended by {thread.failure!r}" if thread.failure else f"{thread.name} does not end")
        for levels in self.levels:
            if levels.failure is not None:
                raise RunFailed(f"the clients of {levels.history.kind} ended by {levels.failure!r}")
        return seconds


def play(
    cluster: FaultyCluster,
    faults: Sequence[Fault],
    operations: int,
    rounds: int,
    clients: int = CLIENTS,
    store_clients: int = STORE_CLIENTS,
    windows: Path | None = None,
    pause_s: float = 0.0,
) -> Outcome:
    """Run clients and faults until there are enough of both, and check the history.

    Args:
        operations: of the database, and of the store.
        windows: where the nodes note their windows of groups, if they do.
        pause_s: of each client after each operation; 0: what is usual for its kind.

    Raises:
        RunFailed: the cluster did not recover from a fault, or a client ended by itself.
    """
    load, blame = Load(cluster), Blame()
    load.prepare()
    nemesis = Nemesis(cluster, load.targets, load.stages, windows)
    began = time.monotonic()

    def work() -> None:
        done = 0
        while done < rounds or min(_finished(load.stages, SQL), _finished(load.stages, (Kind.KEY_VALUE,))) < operations:
            nemesis.round(faults)
            done += 1
            if time.monotonic() > began + SECONDS_MAX:
                raise RunFailed(f"fewer than {operations} operations in {SECONDS_MAX:.0f} s")

    seconds = load.run(work, clients, store_clients, pause_s)
    report = judge_database(cluster, load.database, blame)
    store_report = judge_store(cluster, load.store, blame)
    histories = {levels.history.kind: levels.history for levels in load.levels}
    for history in histories.values():
        report.violations += history.violations
        blame.wrong |= {(stage, history.kind) for stage in history.wrong}
    strange = [*load.database.strange, *load.store.strange]
    return Outcome(nemesis.injected, report, store_report, seconds, load.stages, blame, strange, histories)


def _finished(stages: Stages, kinds: Sequence[Kind]) -> int:
    return stages.total(kinds, Result.ANSWERED, Result.UNKNOWN)


def play_cluster(kind: str, chosen: argparse.Namespace, folder: Path, network: Network | None) -> Outcome | None:
    """Run one of the two clusters; None if none of its faults is wanted. Raises RunFailed."""
    faults = [fault for fault in (FAULTS if kind == "processes" else CUTS) if fault.name.startswith(chosen.faults)]
    if not faults:
        return None
    if kind == "machines":
        assert network is not None, "it was checked"
        with MachineCluster(folder / "machines", network, chosen.metadata) as machines:
            return play(machines, faults, chosen.operations, chosen.rounds)
    with LocalCluster(folder / "cluster", store=chosen.metadata, environment={**environment(folder), **RESP}) as cluster:
        outcome = play(cluster, faults, chosen.operations, chosen.rounds, windows=folder)
    outcome.windows = read_windows(folder)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--operations", type=int, default=20_000, help="operations of each cluster's database and of its store, at least")
    parser.add_argument("--rounds", type=int, default=2, help="times that each fault is injected, at least")
    parser.add_argument("--metadata", choices=("sqlite", "zk"), default="sqlite", help="where the clusters keep their metadata")
    parser.add_argument("--faults", default="", help="only faults whose names begin so")
    parser.add_argument("--clusters", default=",".join(KINDS), help="of processes, of machines, or both, with a comma between them")
    parser.add_argument("--keep", action="store_true", help="keep the clusters' folder")
    chosen = parser.parse_args()
    clusters = chosen.clusters.split(",")
    if not set(clusters) <= set(KINDS):
        parser.error(f"clusters are {', '.join(KINDS)}")
    if not any(fault.name.startswith(chosen.faults) for fault in (*FAULTS, *CUTS)):
        parser.error(f"no fault begins with {chosen.faults!r}; there are {', '.join(fault.name for fault in (*FAULTS, *CUTS))}")
    console = Console(width=170)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # It warns of each transaction whose connection ends.
    network = Network(MACHINES) if "machines" in clusters and inside_own_network(MODULE, sys.argv[1:]) else None
    if network is None and "machines" in clusters:
        console.print("no machine is cut off: that needs `ip`, `unshare` and the right to make network namespaces", highlight=False)
        clusters.remove("machines")
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="histories-", dir=BUILD))
    outcomes: dict[str, Outcome] = {}
    try:
        for kind in clusters:
            outcome = play_cluster(kind, chosen, folder, network)
            if outcome is not None:
                outcomes[kind] = outcome
    except RunFailed as error:
        console.print(f"failed: {error}; the clusters' folder: {folder}", highlight=False)
        return 1
    show(outcomes, console)
    (BUILD / "histories.json").write_text(json.dumps(facts_of(outcomes, chosen.metadata), indent=2) + "\n")
    is_sound = all(outcome.is_sound for outcome in outcomes.values())
    if chosen.keep or not is_sound:
        console.print(f"the clusters' folder: {folder}", highlight=False)
    else:
        shutil.rmtree(folder)
    return 0 if is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
