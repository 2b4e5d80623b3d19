"""pgbench: its scripts, its command line, and what it prints. Pure.

Source: PostgreSQL 15 documentation, "pgbench".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.driving import percentile

ROWS = 10_000
"""Rows of the table of point reads."""
KEYS_PER_CLIENT = 10_000_000
"""Each client of an insert run has as many keys for itself."""
BRANCHES = 16
TELLERS = 160
ACCOUNTS = 16_000

READ = f"""\\set id random(1, {ROWS})
SELECT name FROM filled WHERE id = :id;
"""
INSERT = f"""\\set n :n + 1
\\set id :base + :client_id * {KEYS_PER_CLIENT} + :n
INSERT INTO inserted VALUES (:id, 'a name of some length');
"""
TPCB = f"""\\set aid random(1, {ACCOUNTS})
\\set bid random(1, {BRANCHES})
\\set tid random(1, {TELLERS})
\\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM accounts WHERE aid = :aid;
UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
"""
SCRIPTS = {"read": READ, "insert": INSERT, "tpcb": TPCB}
"""The statements of TPC-B are pgbench's own, on tables that `TABLES` makes. With one branch, its row's lock would let one client write."""

LOADED = "CREATE TABLE loaded (id bigint PRIMARY KEY, name text NOT NULL)"
TABLES = (
    "CREATE TABLE filled (id integer PRIMARY KEY, name text NOT NULL)",
    "CREATE TABLE inserted (id bigint PRIMARY KEY, name text NOT NULL)",
    LOADED,
    "CREATE TABLE probed (id bigint PRIMARY KEY, name text NOT NULL)",
    "CREATE TABLE branches (bid integer PRIMARY KEY, bbalance integer NOT NULL)",
    "CREATE TABLE tellers (tid integer PRIMARY KEY, bid integer NOT NULL, tbalance integer NOT NULL)",
    "CREATE TABLE accounts (aid integer PRIMARY KEY, bid integer NOT NULL, abalance integer NOT NULL, filler text NOT NULL)",
    "CREATE TABLE history (tid integer, bid integer, aid integer, delta integer, mtime timestamp)",
    f"INSERT INTO filled SELECT n, 'the name of row ' || n FROM generate_series(1, {ROWS}) AS rows(n)",
    f"INSERT INTO branches SELECT n, 0 FROM generate_series(1, {BRANCHES}) AS rows(n)",
    f"INSERT INTO tellers SELECT n, n % {BRANCHES} + 1, 0 FROM generate_series(1, {TELLERS}) AS rows(n)",
    f"INSERT INTO accounts SELECT n, n % {BRANCHES} + 1, 0, 'a filler of some length' FROM generate_series(1, {ACCOUNTS}) AS rows(n)",
)


@dataclass(frozen=True, slots=True)
class Load:
    """One run of pgbench."""

    script: str
    clients: int
    protocol: str = "prepared"
    has_latencies: bool = False
    """Whether pgbench writes the latency of each transaction."""
    variables: Mapping[str, int] = field(default_factory=dict)


def command(program: Path, load: Load, script: Path, seconds: float, port: int, database: str, log_prefix: Path) -> list[str]:
    """The command line. pgbench counts whole seconds.

    Args:
        log_prefix: path of the latencies; a process id and a thread number are added to it.
    """
    found = [str(program), "--no-vacuum", "--protocol", load.protocol, "--client", str(load.clients), "--jobs", "1"]
    found += [
        "--time",
        str(max(1, round(seconds))),
        "--file",
        str(script),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--username",
        "bench",
    ]
    if load.has_latencies:
        found += ["--log", "--log-prefix", str(log_prefix)]
    for name, value in load.variables.items():
        found += ["--define", f"{name}={value}"]
    return [*found, database]


@dataclass(frozen=True, slots=True)
class Report:
    """The end of pgbench's output: transactions done and failed, and their rate without the time of connecting."""

    count: int
    failed: int
    per_s: float


class UnreadableReport(Exception):
    """The output has another form than that of PostgreSQL 13 to 17."""


_COUNT = re.compile(r"^number of transactions actually processed: (\d+)", re.MULTILINE)
_FAILED = re.compile(r"^number of failed transactions: (\d+)", re.MULTILINE)
_RATE = re.compile(r"^tps = ([\d.]+) \((?:without initial connection time|excluding connections establishing)\)", re.MULTILINE)


def read_report(output: str) -> Report:
    """Parse what pgbench prints.

    Raises:
        UnreadableReport: a line is missing.
    """
    count, failed, rate = _COUNT.search(output), _FAILED.search(output), _RATE.search(output)
    if count is None or rate is None:
        raise UnreadableReport(f"pgbench printed no {'count' if count is None else 'rate'}: {output.strip()[-200:]!r}")
    return Report(int(count[1]), 0 if failed is None else int(failed[1]), float(rate[1]))


def latencies_ms(lines: Iterable[str]) -> list[float]:
    """Latencies in milliseconds, ascending, from a log of transactions. Failed transactions have a word in place of the time."""
    times = (line.split()[2] for line in lines if line.strip())
    return sorted(int(time) / 1000 for time in times if time.isdecimal())


def percentiles(ordered: Sequence[float]) -> dict[str, float]:
    """p50 and p99, empty without latencies."""
    return {"p50_ms": percentile(ordered, 0.5), "p99_ms": percentile(ordered, 0.99)} if ordered else {}
