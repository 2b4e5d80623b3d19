"""Microseconds per statement by stage: a node with the clock of `stages`, over three bookies, under loads of pgbench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.histories.cluster import LocalCluster, wait_for
from benchmarks.ledger.processes import ROOT, CaseFailed, Driver, free_port, wait_for_port
from benchmarks.sql.cases import SqlTurn
from benchmarks.sql.pgbench import Load
from benchmarks.sql.sampling import FunctionShare, shares
from benchmarks.sql.servers import DATABASE, SqlServer, data_folder
from benchmarks.sql.stages import REST

Stages = dict[str, dict[str, float]]
LOADS = {
    "read, 1 client": Load("read", 1),
    "read, 16 clients": Load("read", 16),
    "read, simple, 16 clients": Load("read", 16, "simple"),
    "insert, 1 client": Load("insert", 1),
    "insert, 64 clients": Load("insert", 64),
}
TOTAL = "all, with the clock"
PLAIN = "all, without the clock"
FUNCTIONS = 20
"""Functions in the table of each load."""
ASK_LIMIT_S = 30.0
START_LIMIT_S = 60.0


class StagedNode(SqlServer):
    """One node with the clock, and three bookies as in other sides.

    Args:
        mode: an option of `staged_node`; empty for the clock.
    """

    def __init__(self, folder: Path, source: Path, mode: str) -> None:
        super().__init__("stages", folder, {"PYTHONPATH": f"{source}:{ROOT}"})
        self._mode = mode
        self._cluster: LocalCluster | None = None
        self._node: Driver | None = None

    @property
    def node(self) -> Driver:
        if self._node is None:
            raise CaseFailed("the node with the clock does not run")
        return self._node

    def start(self) -> None:
        self._cluster = cluster = LocalCluster(self.folder / "c", bookies=3, nodes=0, environment=self.environment, restart=False)
        self.leader_port = self.follower_port = free_port()
        command = [sys.executable, "-m", "benchmarks.sql.staged_node", *([self._mode] if self._mode else [])]
        command += ["--metadata", cluster.uri, "--node-node-id", "staged", "--node-port", str(self.leader_port)]
        command += ["--node-directory", str(self.folder / "node")]
        self._node = Driver("node with the clock", command, self.folder / "node.log", environment=self.environment)
        wait_for_port(self.leader_port, self._node)
        cluster.command("database", "create", DATABASE)
        wait_for(self._leads, "the node leads", START_LIMIT_S)

    def _leads(self) -> bool:
        with self.connect() as connection:
            return connection.execute("SHOW transaction_read_only").fetchone() == ("off",)

    def stop(self) -> None:
        if self._node is not None:
            self._node.stop()
        if self._cluster is not None:
            cluster, self._cluster = self._cluster, None
            cluster.__exit__(None, None, None)

    def nodes(self) -> dict[int, int]:
        return {self.leader_port: self.node.pid}

    def bookies(self) -> list[int]:
        return []


def per_statement(before: dict[str, Any], after: dict[str, Any], count: float) -> dict[str, float]:
    """Microseconds per statement of each stage, of the rest, and of all."""
    spent = {name: (after["stages"][name] - before["stages"][name]) / count * 1e6 for name in after["stages"]}
    total = (after["cpu_s"] - before["cpu_s"]) / count * 1e6
    return {**spent, REST: total - sum(spent.values()), TOTAL: total}


def check_calls(before: dict[str, Any], after: dict[str, Any], load: str) -> None:
    """Check that a load of inserts enters every stage.

    Raises:
        CaseFailed: the functions of a stage are there, and the code calls others in their place.
    """
    unused = [stage for stage, calls in after["calls"].items() if calls == before["calls"][stage]]
    if unused:
        raise CaseFailed(f"{load}: no function of {', '.join(unused)} was called; adapt TABLE in benchmarks/sql/stages.py")


class StageFigures(NamedTuple):
    """Microseconds per statement by stage for each load, and by function for some."""

    stages: Stages
    functions: dict[str, list[FunctionShare]]


def measure(base: Path, source: Path, seconds: float, *, samples: bool) -> StageFigures:
    """Run the loads on a node with the clock and on one without; with samples, on a third whose stack is sampled.

    Raises:
        CaseFailed: the node ended, for example because the table of stages names a function that is gone.
    """
    found = StageFigures({}, {})
    for mode in ("", "--plain", *(["--samples"] if samples else [])):
        with data_folder(base) as folder, StagedNode(folder, source, mode) as server:
            turn = SqlTurn(server, folder, seconds)
            turn.run(Load("read", 4), server.leader_port, seconds=1)
            turn.run(Load("insert", 4), server.leader_port, seconds=1)
            for name, load in LOADS.items():
                if mode != "--samples" or load.clients > 1:
                    _measure_load(turn, server, mode, name, found)
    return found


def _measure_load(turn: SqlTurn, server: StagedNode, mode: str, name: str, found: StageFigures) -> None:
    load = LOADS[name]
    before = server.node.ask("report", limit_s=ASK_LIMIT_S)
    count = turn.run(load, server.leader_port)["count"]
    after = server.node.ask("report", limit_s=ASK_LIMIT_S)
    total_us = (after["cpu_s"] - before["cpu_s"]) / count * 1e6
    if not mode:
        found.stages[name] = per_statement(before, after, count)
        if load.script == "insert":
            check_calls(before, after, name)
    elif mode == "--plain":
        found.stages[name][PLAIN] = total_us
    else:
        found.functions[name] = shares(before, after, total_us, FUNCTIONS)
