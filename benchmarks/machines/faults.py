"""How long writes stop when the leader's machine is killed, stopped, or cut off; and whether a loaded leader is ever replaced.

Usage: python -m benchmarks.machines.faults [--rounds 20] [--stores embedded,zookeeper] [--faults kill,stop,cut]
       python -m benchmarks.machines.faults --load-only 10 [--clients 64]

Three machines as network namespaces (without the right to make them: as addresses of the loopback interface, and without `cut`), each with
a bookie, a database node and, for `zookeeper`, a ZooKeeper server. Writers at every node insert rows where it leads. A round strikes the
machine whose node leads: all its processes are killed, or stopped, or nothing goes to it or from it. The gap is the time from the fault to
the acknowledgement of the first row that is begun after it. Afterwards the machine comes back, and the round ends when every node has
every row. The embedded store is a file: a machine that is cut off still reaches it.

``--load-only`` strikes nobody: it writes with many clients for some minutes, and counts take-overs.

Prints a table and writes build/bench/faults.json. Exit code 1: a row is missing or duplicated, a process did not recover, a gap is beyond
its target, or a leader was replaced without a fault.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.driving import percentile
from benchmarks.ledger.processes import BUILD, CaseFailed
from benchmarks.machines.fleet import MACHINES, Fleet, Machine, mode_of
from benchmarks.machines.network import Network, inside_own_network
from benchmarks.machines.probes import Writers, Writes
from benchmarks.machines.timelines import TimeLine, Traces, steps_of

DATABASE = "shop"
MODULE = "benchmarks.machines.faults"
FAULTS = ("kill", "stop", "cut")
STORES = ("embedded", "zookeeper")
SETTLE_S = 3.0
GAP_LIMIT_S = 60.0
BACK_LIMIT_S = 120.0
POLL_S = 0.01
TICK_MS, SYNC_LIMIT = 500, 3
"""ZooKeeper's settings: its servers replace a leader of theirs that is silent for 1.5 s."""
LASTS_S = 8.0
"""Duration of a stop and of a cut, in seconds: less than a session with the metadata."""
LOAD_ANSWER_LIMIT_S, LOAD_PAUSE_S = 30.0, 1.0
"""Of the writers of `--load-only`, which are to load the leader and not the others."""
MEDIAN_TARGET_S, WORST_TARGET_S = 2.0, 5.0


@dataclass(frozen=True)
class Gaps:
    """The gaps after one kind of fault, in seconds."""

    store: str
    fault: str
    seconds: tuple[float, ...]
    time_lines: tuple[TimeLine, ...] = ()

    @property
    def median_s(self) -> float:
        return percentile(sorted(self.seconds), 0.5)

    @property
    def worst_s(self) -> float:
        return max(self.seconds)

    @property
    def verdict(self) -> str:
        """Whether the targets are met, or by how much they are missed."""
        misses = [
            f"{name} missed by {found - target:.2f} s"
            for name, found, target in (("median", self.median_s, MEDIAN_TARGET_S), ("worst", self.worst_s, WORST_TARGET_S))
            if found >= target
        ]
        return "; ".join(misses) or "met"


class Rounds:
    """Strikes the machine of the leader, again and again."""

    def __init__(self, fleet: Fleet, writes: Writes) -> None:
        self._fleet = fleet
        self._writes = writes

    def run(self, fault: str) -> TimeLine:
        """One round.

        Raises:
            CaseFailed: writes do not go on, or the machine does not come back.
        """
        time.sleep(SETTLE_S)
        machine = self._leader()
        with_metadata_leader = self._fleet.has_zookeeper and mode_of(machine) == "leader"
        traces = Traces(other.processes["node"].log for other in self._fleet.machines if other is not machine)
        struck, struck_wall = time.monotonic(), time.time()
        self._strike(machine, fault)
        if fault == "cut":
            struck, struck_wall = time.monotonic(), time.time()  # The command takes as long as a write, which could end before it.
        try:
            while (first := self._writes.first_after(struck)) is None:
                if time.monotonic() > struck + GAP_LIMIT_S:
                    raise CaseFailed(f"no write is acknowledged within {GAP_LIMIT_S:.0f} s of a {fault}")
                time.sleep(POLL_S)
            if fault != "kill":
                time.sleep(max(0.0, struck + LASTS_S - time.monotonic()))
        finally:
            self._undo(machine, fault)
        wait_for(lambda: self._is_complete(), "every node serves the rows that were written before")
        gap_s = first - struck
        return TimeLine(fault, with_metadata_leader, gap_s, steps_of(traces.lines(), struck_wall, struck_wall + gap_s))

    def _leader(self) -> Machine:
        moment = time.monotonic()
        wait_for(lambda: self._writes.first_after(moment) is not None, "writes are acknowledged")
        return next(one for one in self._fleet.machines if one.address == self._writes.hosts[-1])

    def _strike(self, machine: Machine, fault: str) -> None:
        if fault == "kill":
            self._fleet.kill(machine)
        elif fault == "stop":
            self._fleet.stop(machine)
        else:
            assert self._fleet.network is not None, "a machine is cut off in a network"
            self._fleet.network.cut(machine.number)

    def _undo(self, machine: Machine, fault: str) -> None:
        if fault == "kill":
            self._fleet.restart(machine)
        elif fault == "stop":
            self._fleet.resume(machine)
        elif self._fleet.network is not None:
            self._fleet.network.join(machine.number)

    def _is_complete(self) -> bool:
        written = len(self._writes.acknowledged)
        # A server that comes back late is a second machine that is missing.
        is_whole = not self._fleet.has_zookeeper or all(mode_of(machine) for machine in self._fleet.machines)
        return is_whole and all(count_of(machine) >= written for machine in self._fleet.machines)


def _connect(machine: Machine) -> psycopg.Connection[tuple[int]]:
    dsn = f"host={machine.address} port={machine.node_port} dbname={DATABASE} user=bench connect_timeout=2"
    return psycopg.connect(dsn, autocommit=True)


def count_of(machine: Machine) -> int:
    with _connect(machine) as connection:
        row = connection.execute("select count(*) from rows").fetchone()
    return 0 if row is None else row[0]


def check_rows(fleet: Fleet, writes: Writes) -> None:
    """Check that every node has each acknowledged row once, and no row that was never sent.

    Raises:
        CaseFailed: not so.
    """
    wanted = set(writes.acknowledged)
    for machine in fleet.machines:

        def is_complete(machine: Machine = machine) -> bool:
            with _connect(machine) as connection:
                found = [number for (number,) in connection.execute("select n from rows")]
            return len(found) == len(set(found)) and wanted <= set(found) <= wanted | writes.unknown

        wait_for(is_complete, f"{machine.name} holds each of {len(wanted)} acknowledged rows once")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Return when a condition holds; an error of an absent server counts as false. Raises CaseFailed after the limit."""
    deadline, reason = time.monotonic() + BACK_LIMIT_S, ""
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except psycopg.Error as error:
            reason = f": {str(error).strip()}"
        time.sleep(0.1)
    raise CaseFailed(f"not within {BACK_LIMIT_S:.0f} s: {what}{reason}")


def _start(fleet: Fleet) -> list[tuple[str, int]]:
    """Start the machines and make the table; the addresses of the nodes."""
    fleet.start()
    fleet.run_command("database", "create", DATABASE, "--metadata", fleet.uri)
    dsn = f"{fleet.node_hosts} dbname={DATABASE} user=bench target_session_attrs=read-write connect_timeout=2"

    def is_made() -> bool:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("create table if not exists rows(n integer)")
        return True

    wait_for(is_made, "the database takes statements")
    return [(machine.address, machine.node_port) for machine in fleet.machines]


def measure(store: str, faults: Sequence[str], rounds: int, network: Network | None, console: Console) -> list[Gaps]:
    """Run all rounds of one store. Raises CaseFailed."""
    found: dict[str, list[TimeLine]] = {fault: [] for fault in faults}
    with Fleet(BUILD / "faults" / store, store=store, network=network, tick_ms=TICK_MS, sync_limit=SYNC_LIMIT) as fleet:
        with Writers(_start(fleet), DATABASE) as writes:
            each = Rounds(fleet, writes)
            for number in range(rounds):
                for fault in faults:
                    found[fault].append(each.run(fault))
                    console.print(f"{store}, round {number + 1}: {found[fault][-1]}", highlight=False, soft_wrap=True)
        check_rows(fleet, writes)
    return [Gaps(store, fault, tuple(line.gap_s for line in lines), tuple(lines)) for fault, lines in found.items()]


@dataclass(frozen=True)
class Quiet:
    """A run without a fault."""

    store: str
    minutes: float
    clients: int
    writes: int
    take_overs: int


def load(store: str, minutes: float, clients: int, network: Network | None) -> Quiet:
    """Write for some minutes without a fault. Raises CaseFailed."""
    with Fleet(BUILD / "faults" / store, store=store, network=network, tick_ms=TICK_MS, sync_limit=SYNC_LIMIT) as fleet:
        with Writers(_start(fleet), DATABASE, clients, LOAD_ANSWER_LIMIT_S, LOAD_PAUSE_S) as writes:
            time.sleep(60.0 * minutes)
        check_rows(fleet, writes)
    return Quiet(store, minutes, clients, len(writes.acknowledged), max(writes.epochs, default=0) - min(writes.epochs, default=0))


def table_of(results: Sequence[Gaps]) -> Table:
    title = f"seconds without writes; targets: median below {MEDIAN_TARGET_S:g}, worst below {WORST_TARGET_S:g}"
    table = Table("store", "fault", "rounds", "median", "worst", "targets", title=title)
    for one in results:
        table.add_row(one.store, one.fault, str(len(one.seconds)), f"{one.median_s:.2f}", f"{one.worst_s:.2f}", one.verdict)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="faults of each kind (20)")
    parser.add_argument("--stores", default=",".join(STORES), help="metadata stores, with commas between them")
    parser.add_argument("--faults", default=",".join(FAULTS), help="faults, with commas between them")
    parser.add_argument("--load-only", type=float, default=0.0, metavar="MINUTES", help="no fault; count take-overs under load")
    parser.add_argument("--clients", type=int, default=64, help="writers of --load-only at each node (64); those at the leader write")
    chosen = parser.parse_args()
    stores, faults = chosen.stores.split(","), chosen.faults.split(",")
    if not set(stores) <= set(STORES) or not set(faults) <= set(FAULTS):
        parser.error(f"stores are {', '.join(STORES)}, faults are {', '.join(FAULTS)}")
    console = Console()
    network = Network(MACHINES) if inside_own_network(MODULE, sys.argv[1:]) else None
    if network is None and "cut" in faults:
        console.print("no machine is cut off: that needs `ip`, `unshare` and the right to make network namespaces", highlight=False)
        faults.remove("cut")
    try:
        if chosen.load_only:
            quiet = [load(store, chosen.load_only, chosen.clients, network) for store in stores]
            for run in quiet:
                console.print(f"{run.store}: {run.writes} writes in {run.minutes:g} min, {run.take_overs} take-overs", highlight=False)
            _store("load", [asdict(run) for run in quiet])
            return 1 if any(run.take_overs for run in quiet) else 0
        gaps = [found for store in stores for found in measure(store, faults, chosen.rounds, network, console)]
    except CaseFailed as error:
        console.print(f"failed: {error}", highlight=False)
        return 1
    console.print(table_of(gaps))
    _store("gaps", [{**asdict(one), "verdict": one.verdict} for one in gaps])
    return 0 if all(one.verdict == "met" for one in gaps) else 1


def _store(name: str, found: list[dict[str, object]]) -> None:
    path = BUILD / "faults.json"
    facts = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**facts, "v": 1, name: found}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
