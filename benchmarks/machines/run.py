"""The gap in writes when one machine of three dies, and when ZooKeeper's leader dies.

Usage: python -m benchmarks.machines.run [--rounds 10]

Three machines on addresses of the loopback interface, each with a ZooKeeper server, a bookie and a database node. One client inserts rows
through a connection string that names all nodes. In each round the machine with the database's leader is killed, later started again; then
the machine with ZooKeeper's leader, likewise. The gap is the time from the kill to the first row that is begun after it and acknowledged.
At the end each node must have every acknowledged row once.

Prints a table and writes build/bench/machines.json. Exit code 1: a row is missing or duplicated, or a process did not recover.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.driving import percentile
from benchmarks.ledger.processes import BUILD, CaseFailed
from benchmarks.machines.fleet import Fleet, Machine

DATABASE = "shop"
SETTLE_S = 2.0
GAP_LIMIT_S = 120.0
POLL_S = 0.01


@dataclass
class Inserter:
    """One client that inserts row after row and reconnects when needed."""

    dsn: str
    acknowledged: list[int] = field(default_factory=list)
    begun_at: list[float] = field(default_factory=list)
    """Start time of each acknowledged insert."""
    unknown: set[int] = field(default_factory=set)
    leader_port: int = 0
    stopping: bool = False

    def run(self) -> None:
        number = 0
        connection: psycopg.Connection[Any] | None = None
        while not self.stopping:
            try:
                if connection is None:
                    connection = psycopg.connect(self.dsn, autocommit=True)
                    self.leader_port = connection.info.port
                number += 1
                began = time.monotonic()
                self.unknown.add(number)
                connection.execute("insert into rows values(%s)", (number,))
                self.unknown.discard(number)
                self.acknowledged.append(number)
                self.begun_at.append(began)
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                connection = None
                time.sleep(POLL_S)
        if connection is not None:
            connection.close()

    def first_after(self, moment: float) -> float | None:
        """Start time of the first acknowledged insert begun after a moment; None while there is none."""
        return next((began for began in self.begun_at[bisect_right(self.begun_at, moment) :]), None)


def gap_after(inserter: Inserter, strike: Callable[[], None]) -> float:
    """Seconds from a kill to the acknowledgement of the first row begun after it.

    Raises:
        CaseFailed: there is none within the limit.
    """
    strike()
    struck = time.monotonic()
    while (first := inserter.first_after(struck)) is None:
        if time.monotonic() > struck + GAP_LIMIT_S:
            raise CaseFailed(f"no write is acknowledged within {GAP_LIMIT_S:.0f} s")
        time.sleep(POLL_S)
    return first - struck


def measure(fleet: Fleet, rounds: int, console: Console) -> dict[str, list[float]]:
    """Run the rounds; return gaps in seconds by kind of kill."""
    dsn = f"{fleet.node_hosts} dbname={DATABASE} user=bench target_session_attrs=read-write connect_timeout=2"
    inserter = Inserter(dsn)
    wait_for(lambda: _prepare(dsn), "the database takes statements")
    thread = threading.Thread(target=inserter.run, name="inserter", daemon=True)
    thread.start()
    victims: dict[str, Callable[[], Machine]] = {
        "machine with the database's leader": lambda: fleet.machine_at(inserter.leader_port),
        "machine with ZooKeeper's leader": fleet.zookeeper_leader,
    }
    gaps: dict[str, list[float]] = {kind: [] for kind in victims}
    try:
        for number in range(rounds):
            for kind, find in victims.items():
                time.sleep(SETTLE_S)
                machine, zookeeper = find(), fleet.zookeeper_leader()
                led = machine is fleet.machine_at(inserter.leader_port)
                gap = gap_after(inserter, partial(fleet.kill, machine))
                gaps[kind].append(gap)
                both = ", of the database and of ZooKeeper" if led and machine is zookeeper else ""
                console.print(f"round {number + 1}: {kind} ({machine.name}{both}): {gap:.2f} s", highlight=False)
                fleet.restart(machine)
                wait_for(lambda: _copies(fleet) == len(fleet.machines), "all nodes serve the database again")
    finally:
        inserter.stopping = True
        thread.join(GAP_LIMIT_S)
    check_rows(fleet, inserter)
    return gaps


def check_rows(fleet: Fleet, inserter: Inserter) -> None:
    """Check that every node has each acknowledged row once, and no row that was never sent.

    Raises:
        CaseFailed: not so.
    """
    wanted = set(inserter.acknowledged)
    for machine in fleet.machines:

        def complete(machine: Machine = machine) -> bool:
            found = rows_of(machine)
            return len(found) == len(set(found)) and wanted <= set(found) <= wanted | inserter.unknown

        wait_for(complete, f"{machine.name} holds each of {len(wanted)} acknowledged rows once")


def rows_of(machine: Machine) -> list[int]:
    dsn = f"host={machine.address} port={machine.node_port} dbname={DATABASE} user=bench connect_timeout=2"
    with psycopg.connect(dsn, autocommit=True) as connection:
        return [number for (number,) in connection.execute("select n from rows")]


def _prepare(dsn: str) -> bool:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table if not exists rows(n integer)")
    return True


def _copies(fleet: Fleet) -> int:
    return sum(bool(rows_of(machine)) for machine in fleet.machines)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Return when a condition holds; an error of an absent server counts as false.

    Raises:
        CaseFailed: it does not hold within the limit.
    """
    deadline = time.monotonic() + GAP_LIMIT_S
    while True:
        try:
            if condition():
                return
        except psycopg.Error as error:
            reason = str(error).strip()
        else:
            reason = "not so"
        if time.monotonic() > deadline:
            raise CaseFailed(f"within {GAP_LIMIT_S:.0f} s: {what}: {reason}")
        time.sleep(0.1)


def table_of(gaps: dict[str, list[float]]) -> Table:
    table = Table("killed", "rounds", "gap p50, s", "worst, s", title="writes after the loss of one machine of three")
    for kind, seconds in gaps.items():
        ordered = sorted(seconds)
        table.add_row(kind, str(len(ordered)), f"{percentile(ordered, 0.5):.2f}", f"{ordered[-1]:.2f}")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="kills of each kind (10)")
    parser.add_argument("--tick-ms", type=int, default=2000, help="ZooKeeper's tickTime (2000)")
    chosen = parser.parse_args()
    console = Console()
    try:
        with Fleet(BUILD / "machines", tick_ms=chosen.tick_ms) as fleet:
            fleet.start()
            fleet.run_command("database", "create", DATABASE, "--metadata", fleet.uri)
            gaps = measure(fleet, chosen.rounds, console)
    except CaseFailed as error:
        console.print(f"failed: {error}", highlight=False)
        return 1
    console.print(table_of(gaps))
    (BUILD / "machines.json").write_text(json.dumps({"v": 1, "rounds": chosen.rounds, "gaps_s": gaps}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
