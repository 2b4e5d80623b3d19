"""The measurements of a server. Each returns its figures, and raises `CaseFailed` where it cannot be measured."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.ledger.processes import CaseFailed, Driver, Process
from benchmarks.node_load import Peak
from benchmarks.sql import pgbench
from benchmarks.sql.levels import LevelOfReads
from benchmarks.sql.pgbench import Load, UnreadableReport
from benchmarks.sql.servers import DATABASE, LogTotals, SqlServer, postgres_programs

Figures = dict[str, float]
PGBENCH_LIMIT_S = 60.0
"""Time that pgbench has beside its own seconds."""
CONNECTIONS_LIMIT_S = 90.0
MEGABYTE = 1e6
IDLE_CONNECTIONS = 200
FILLING_CONNECTIONS = 800
LATER_CONNECTIONS = 1_000
MANY_CONNECTIONS = 2_000
FIRST_CONNECTIONS = 10
"""Connections that are opened and closed before memory is measured, so that what one connection loads once does not count."""
SETTLE_S = 1.0
CONNECTING_S = 0.01
"""Additional time of a load for each client's connection."""
KEYS_PER_RUN = 1_000 * pgbench.KEYS_PER_CLIENT
LEDGER_CLIENTS = 64
LEDGER_SHARE_OF_SECONDS = 0.5


@dataclass
class SqlTurn:
    """One turn of a side, with its fresh server.

    Args:
        seconds: of each load.
        programs: folder of pgbench.
    """

    server: SqlServer
    folder: Path
    seconds: float
    programs: Path = field(default_factory=postgres_programs)
    runs: int = 0
    """Loads run so far. Each inserting load has keys of its own."""
    appended: dict[str, LogTotals] = field(default_factory=dict)
    """Case → appended to the log by it."""

    def run(self, load: Load, port: int, seconds: float | None = None) -> Figures:
        """Run pgbench to its end."""
        bench = self.start(load, port, seconds)
        try:
            return bench.finish()
        finally:
            bench.stop()

    def start(self, load: Load, port: int, seconds: float | None = None) -> Bench:
        """Start pgbench; `Bench.finish` waits for it. Its time includes that of connecting, its rate does not."""
        self.runs += 1
        return Bench(self, load, port, (self.seconds if seconds is None else seconds) + load.clients * CONNECTING_S)


Case = Callable[[SqlTurn], Figures]


class Bench:
    """One run of pgbench as a process."""

    def __init__(self, turn: SqlTurn, load: Load, port: int, seconds: float) -> None:
        number = turn.runs
        parts = pgbench.parts(load.script)
        self._names = [name for name, _ in parts]
        scripts = [(turn.folder / f"{number}-{name}.sql", weight) for name, weight in parts]
        for (path, _), name in zip(scripts, self._names, strict=True):
            path.write_text(pgbench.SCRIPTS[name], encoding="utf-8")
        self._prefix = turn.folder / f"{number}-latencies"
        keys = number * KEYS_PER_RUN
        load = dataclasses.replace(load, variables={**load.variables, "n": 0, "base": keys})
        command = pgbench.command(turn.programs / "pgbench", load, scripts, seconds, port, DATABASE, self._prefix)
        self._limit_s = seconds + PGBENCH_LIMIT_S
        # It is no part of the server: its syncs, if any, are not slowed.
        environment = {"PGOPTIONS": load.options} if load.options else {}
        self._process = Process("pgbench", command, turn.folder / f"{number}-pgbench.log", stdout=subprocess.PIPE, environment=environment)

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def stop(self) -> None:
        self._process.kill()

    def finish(self) -> Figures:
        """Wait for the end; per_s, count, failed, and percentiles where latencies are written.

        Raises:
            CaseFailed: a client of pgbench was refused, or it did not end in time.
        """
        try:
            output, _ = self._process.popen.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            raise CaseFailed(f"pgbench did not end within {self._limit_s:.0f} s") from None
        if self._process.popen.returncode:
            raise CaseFailed(f"pgbench: {self._why()}")
        try:
            report = pgbench.read_report(output.decode(errors="replace"))
        except UnreadableReport as error:
            raise CaseFailed(str(error)) from error
        lines: list[str] = []
        for path in self._prefix.parent.glob(f"{self._prefix.name}.*"):
            lines += path.read_text().splitlines()
            path.unlink()
        latencies = pgbench.latency_figures(pgbench.latencies_ms(lines), self._names)
        return {"per_s": report.per_s, "count": report.count, "failed": report.failed, **latencies}

    def _why(self) -> str:
        lines = [line for line in self._process.log.read_text(errors="replace").splitlines() if "error" in line.lower()]
        return lines[0].replace("pgbench: error: ", "") if lines else self._process.last_words()


def processor_s(pids: list[int]) -> float:
    """Processor seconds of processes, user and system. An ended process counts as zero."""
    total = 0.0
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            spent = psutil.Process(pid).cpu_times()
            total += spent.user + spent.system
    return total


def reads(
    clients: int,
    protocol: str = "prepared",
    *,
    follower: bool = False,
    has_latencies: bool = False,
    level: LevelOfReads | None = None,
) -> Case:
    """Point reads of one row, at a level; without one as the server reads by default."""

    def measure(turn: SqlTurn) -> Figures:
        port = turn.server.follower_port if follower else turn.server.leader_port
        load = Load("read", clients, protocol, has_latencies, options=level.options(turn.server.position()) if level else "")
        node = [pid for at, pid in turn.server.nodes().items() if at == port]
        before = processor_s(node)
        figures = turn.run(load, port)
        used = processor_s(node) - before
        if used:
            figures |= {"per_core": figures["count"] / used, "node_cpu_us": used / figures["count"] * 1e6}
        return figures

    return measure


def writes(script: str, clients: int) -> Case:
    """Transactions on the leader, with the processor time of all nodes and bookies and the entries of the log."""

    def measure(turn: SqlTurn) -> Figures:
        server = turn.server
        nodes = server.nodes()
        everyone = [*nodes.values(), *server.bookies()]
        leader = [pid for port, pid in nodes.items() if port == server.leader_port]
        earlier = server.appended()
        used, used_by_leader = processor_s(everyone), processor_s(leader)
        figures = turn.run(Load(script, clients, has_latencies=True), server.leader_port)
        count = figures["count"]
        if everyone and count:
            figures["cpu_us"] = (processor_s(everyone) - used) / count * 1e6
            figures["node_cpu_us"] = (processor_s(leader) - used_by_leader) / count * 1e6
        now = server.appended()
        if earlier is not None and now is not None and now.groups > earlier.groups:
            appended = turn.appended[f"{script}_{clients}"] = now.since(earlier)
            figures["rows_per_entry"] = appended.records / appended.groups
            figures["entry_bytes"] = appended.bytes / appended.groups
        return figures

    return measure


def warm_up(turn: SqlTurn) -> Figures:
    """Short loads, so that the first case does not pay for what is loaded once."""
    for load in (Load("read", 4), Load("insert", 4), Load("tpcb", 1)):
        turn.run(load, turn.server.leader_port, seconds=1)
    turn.run(Load("read", 4), turn.server.follower_port, seconds=1)
    return {}


def ledger(turn: SqlTurn) -> Figures:
    """Appends to a ledger by a bare client on the same bookies.

    p50 with one append under way, of entries as one client's inserts make them. Rows per second with entries as 64 clients' inserts make
    them, and as many under way as 64 clients can fill.
    """
    one, many = turn.appended.get("insert_1"), turn.appended.get("insert_64")
    if one is None or many is None:
        raise CaseFailed("the inserts of which it takes the sizes were not measured")
    seconds = max(1.0, turn.seconds * LEDGER_SHARE_OF_SECONDS)
    rows = max(1.0, many.records / many.groups)
    window = max(1, math.ceil(LEDGER_CLIENTS / rows))
    alone = turn.server.append_to_ledger(max(1, round(one.bytes / one.groups)), 1, seconds)
    size = max(1, round(many.bytes / many.groups))
    grouped = turn.server.append_to_ledger(size, window, seconds)
    return {
        "p50_ms": alone["p50_ms"],
        "p99_ms": alone["p99_ms"],
        "per_s": grouped["appends_per_s"],
        "rows_per_s": grouped["appends_per_s"] * rows,
        "rows_per_entry": rows,
        "entry_bytes": size,
        "under_way": window,
    }


def pgbench_tables(turn: SqlTurn) -> Figures:
    """``pgbench -i --foreign-keys``. It needs TRUNCATE, COPY, VACUUM ANALYZE and ALTER TABLE. No target depends on it."""
    command = [
        str(turn.programs / "pgbench"),
        "--initialize",
        "--init-steps",
        "dtgvpf",
        "--host",
        "127.0.0.1",
        "--port",
        str(turn.server.leader_port),
    ]
    began = time.perf_counter()
    process = Process("pgbench -i", [*command, "--username", "bench", DATABASE], turn.folder / "initialize.log")
    try:
        code = process.popen.wait(PGBENCH_LIMIT_S)
    finally:
        process.kill()
    if code:
        lines = [line for line in process.log.read_text(errors="replace").splitlines() if "ERROR" in line]
        raise CaseFailed(f"pgbench -i: {lines[0] if lines else process.last_words()}")
    return {"seconds": time.perf_counter() - began}


def connections(turn: SqlTurn, name: str) -> Driver:
    return Driver(name, [sys.executable, "-m", "benchmarks.sql.connections"], turn.folder / f"{name}.log")


def _opened(driver: Driver, port: int, count: int) -> Figures:
    answer = driver.ask("open", limit_s=CONNECTIONS_LIMIT_S, port=port, database=DATABASE, count=count)
    if answer["failure"]:
        raise CaseFailed(f"{answer['opened']} of {count} connections were opened: {answer['failure']}")
    return {"open_s": answer["seconds"]}


def idle_200(turn: SqlTurn) -> Figures:
    """The resident memory that 200 connections add to the leader's node, after one read on each.

    The first connections use memory that earlier loads have freed, so the mean over the last 1,000 of 2,000 counts if it is more.
    """
    port = turn.server.leader_port
    pid = turn.server.nodes().get(port)
    if pid is None:
        raise CaseFailed("one process of this server does not hold all connections")
    node = psutil.Process(pid)
    driver = connections(turn, "connections")
    try:
        _opened(driver, port, FIRST_CONNECTIONS)
        driver.ask("read", limit_s=CONNECTIONS_LIMIT_S)
        driver.ask("close", limit_s=CONNECTIONS_LIMIT_S)
        time.sleep(SETTLE_S)
        sizes = [node.memory_info().rss]
        for count in (IDLE_CONNECTIONS, FILLING_CONNECTIONS, LATER_CONNECTIONS):
            _opened(driver, port, count)
            driver.ask("read", limit_s=CONNECTIONS_LIMIT_S)
            time.sleep(SETTLE_S)
            sizes.append(node.memory_info().rss)
        first, later = sizes[1] - sizes[0], (sizes[3] - sizes[2]) / LATER_CONNECTIONS * IDLE_CONNECTIONS
        return {"mb": max(first, later) / MEGABYTE, "first_mb": first / MEGABYTE, "later_mb": later / MEGABYTE}
    finally:
        driver.kill()


def memory_200(turn: SqlTurn) -> Figures:
    """The most resident memory of the leader's node while 200 connections run statements: reads, a transaction, a prepared statement.

    It counts in all, with what the loads before have left.
    """
    port = turn.server.leader_port
    pid = turn.server.nodes().get(port)
    if pid is None:
        raise CaseFailed("one process of this server does not hold all connections")
    driver = connections(turn, "working connections")
    try:
        with Peak(pid) as peak:
            _opened(driver, port, IDLE_CONNECTIONS)
            answer = driver.ask("work", limit_s=CONNECTIONS_LIMIT_S)
            time.sleep(SETTLE_S)
        if answer["failure"]:
            raise CaseFailed(f"{answer['served']} of {IDLE_CONNECTIONS} connections were served: {answer['failure']}")
        return {"mb": peak.bytes / MEGABYTE, "more_mb": (peak.bytes - peak.first) / MEGABYTE}
    finally:
        driver.kill()


def connections_2000(turn: SqlTurn) -> Figures:
    """2,000 connections to one node, and one read on each of them, 200 at once."""
    driver = connections(turn, "many connections")
    try:
        figures = _opened(driver, turn.server.leader_port, MANY_CONNECTIONS)
        answer = driver.ask("read", limit_s=CONNECTIONS_LIMIT_S)
        if answer["failure"]:
            raise CaseFailed(f"{answer['served']} of {MANY_CONNECTIONS} connections were served: {answer['failure']}")
        return {**figures, "served": answer["served"], "per_s": answer["served"] / answer["seconds"]}
    finally:
        driver.kill()


def plain_sqlite(name: str) -> Case:
    """A case of the program `plain_sqlite`."""

    def measure(turn: SqlTurn) -> Figures:
        command = [sys.executable, "-m", "benchmarks.sql.plain_sqlite", str(turn.folder / name), str(turn.seconds), name]
        log = turn.folder / f"plain-sqlite-{name}.log"
        process = Process("plain SQLite", command, log, stdout=subprocess.PIPE, environment=turn.server.environment)
        try:
            output, _ = process.popen.communicate(timeout=turn.seconds + PGBENCH_LIMIT_S)
        finally:
            process.kill()
        if process.popen.returncode:
            raise CaseFailed(f"plain SQLite: {process.last_words()}")
        found: Figures = json.loads(output)
        return found

    return measure
