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
TEN = f"""\\set n :n + 1
\\set id :base + :client_id * {KEYS_PER_CLIENT} + 2 * :n
\\set next :id + 1
\\set aid random(1, {ACCOUNTS})
\\set bid random(1, {BRANCHES})
\\set tid random(1, {TELLERS})
\\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM accounts WHERE aid = :aid;
UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
SELECT tbalance FROM tellers WHERE tid = :tid;
SELECT bbalance FROM branches WHERE bid = :bid;
INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
INSERT INTO inserted VALUES (:id, 'a name of some length');
INSERT INTO inserted VALUES (:next, 'a name of some length');
END;
"""
"""The tables are changed in one order, so that two transactions of PostgreSQL never wait for each other. With a write first, they wait for
the writer here and never fail with 40001."""
SCRIPTS = {"read": READ, "insert": INSERT, "tpcb": TPCB, "ten": TEN}
"""The statements of TPC-B are pgbench's own, on tables that `TABLES` makes. With one branch, its row's lock would let one client write."""
MIXES = {"mixed": (("read", 9), ("insert", 1))}
"""Loads whose transactions are drawn from several scripts, with their weights."""


def parts(name: str) -> tuple[tuple[str, int], ...]:
    """The scripts of a load with their weights. The numbers in pgbench's log follow this order."""
    return MIXES.get(name, ((name, 1),))


LOADED = "CREATE TABLE loaded (id bigint PRIMARY KEY, name text NOT NULL)"
TABLES = (
    "CREATE TABLE filled (id integer PRIMARY KEY, name text NOT NULL)",
    "CREATE TABLE inserted (id bigint PRIMARY KEY, name text NOT NULL)",
    LOADED,
    "CREATE TABLE probed (id bigint PRIMARY KEY, name text NOT NULL)",
    "CREATE TABLE handed (id bigint PRIMARY KEY, name text NOT NULL)",
    "CREATE TABLE copied (id bigint PRIMARY KEY, name text NOT NULL, price double precision, note text)",
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
    """One run of pgbench.

    Args:
        script: a name in `SCRIPTS` or `MIXES`.
        has_latencies: whether pgbench writes the latency of each transaction.
        options: parameters of its sessions, as in PGOPTIONS.
    """

    script: str
    clients: int
    protocol: str = "prepared"
    has_latencies: bool = False
    options: str = ""
    variables: Mapping[str, int] = field(default_factory=dict)


def command(
    program: Path, load: Load, scripts: Sequence[tuple[Path, int]], seconds: float, port: int, database: str, log_prefix: Path
) -> list[str]:
    """The command line. pgbench counts whole seconds.

    Args:
        scripts: files with their weights.
        log_prefix: path of the latencies; a process id and a thread number are added to it.
    """
    found = [str(program), "--no-vacuum", "--protocol", load.protocol, "--client", str(load.clients), "--jobs", "1"]
    for script, weight in scripts:
        found += ["--file", f"{script}@{weight}"]
    found += [
        "--time",
        str(max(1, round(seconds))),
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


def latencies_ms(lines: Iterable[str]) -> dict[int, list[float]]:
    """Latencies in milliseconds by the script's number, from a log of transactions. Failed ones have a word in place of the time."""
    found: dict[int, list[float]] = {}
    for words in map(str.split, lines):
        if words and words[2].isdecimal():
            found.setdefault(int(words[3]), []).append(int(words[2]) / 1000)
    return found


def latency_figures(by_script: Mapping[int, Sequence[float]], names: Sequence[str]) -> dict[str, float]:
    """p50 and p99 of all transactions; in a mix also p99 of each script, by its name. Empty without latencies."""
    figures = percentiles(sorted(one for latencies in by_script.values() for one in latencies))
    if len(names) > 1:
        figures |= {f"{names[number]}_p99_ms": percentile(sorted(latencies), 0.99) for number, latencies in by_script.items()}
    return figures


def percentiles(ordered: Sequence[float]) -> dict[str, float]:
    """p50 and p99, empty without latencies."""
    return {"p50_ms": percentile(ordered, 0.5), "p99_ms": percentile(ordered, 0.99)} if ordered else {}
