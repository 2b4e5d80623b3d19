"""A program: one case of plain SQLite with synchronous=FULL in one process. Prints one JSON object.

Usage: python -m benchmarks.sql.plain_sqlite FOLDER SECONDS CASE
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from benchmarks.sql.pgbench import ACCOUNTS, BRANCHES, ROWS, TELLERS, percentiles


def opened(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    for line in (
        "pragma journal_mode = wal",
        "pragma synchronous = full",
        "create table filled (id integer primary key, name text not null)",
        "create table inserted (id integer primary key, name text not null)",
        "create table branches (bid integer primary key, bbalance integer not null)",
        "create table tellers (tid integer primary key, bid integer not null, tbalance integer not null)",
        "create table accounts (aid integer primary key, bid integer not null, abalance integer not null, filler text not null)",
        "create table history (tid integer, bid integer, aid integer, delta integer, mtime text)",
    ):
        connection.execute(line)
    with connection:
        connection.executemany("insert into filled values (?, ?)", ((n, f"the name of row {n}") for n in range(1, ROWS + 1)))
        connection.executemany("insert into branches values (?, 0)", ((n,) for n in range(1, BRANCHES + 1)))
        connection.executemany("insert into tellers values (?, ?, 0)", ((n, n % BRANCHES + 1) for n in range(1, TELLERS + 1)))
        accounts = ((n, n % BRANCHES + 1, "a filler of some length") for n in range(1, ACCOUNTS + 1))
        connection.executemany("insert into accounts values (?, ?, 0, ?)", accounts)
    return connection


def timed(statement: Callable[[int], object], seconds: float) -> dict[str, float]:
    """Rate and latencies of one statement after another."""
    times: list[float] = []
    began = now = time.perf_counter()
    used = time.process_time()
    while now - began < seconds:
        statement(len(times))
        after = time.perf_counter()
        times.append((after - now) * 1000)
        now = after
    used = time.process_time() - used
    return {"per_s": len(times) / (now - began), "cpu_us": used / len(times) * 1e6, **percentiles(sorted(times))}


class PlainCases:
    """The statements of the cases, one transaction per call, as in `pgbench`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._chance = random.Random(1)

    def read(self, _: int) -> None:
        self._execute("select name from filled where id = ?", (self._chance.randint(1, ROWS),)).fetchall()

    def insert(self, number: int) -> None:
        self._execute("insert into inserted values (?, 'a name of some length')", (number,))

    def tpcb(self, _: int) -> None:
        aid, bid, tid, delta = self._drawn()
        self._execute("begin")
        self._execute("update accounts set abalance = abalance + ? where aid = ?", (delta, aid))
        self._execute("select abalance from accounts where aid = ?", (aid,)).fetchall()
        self._execute("update tellers set tbalance = tbalance + ? where tid = ?", (delta, tid))
        self._execute("update branches set bbalance = bbalance + ? where bid = ?", (delta, bid))
        self._execute("insert into history values (?, ?, ?, ?, current_timestamp)", (tid, bid, aid, delta))
        self._execute("commit")

    def ten(self, number: int) -> None:
        aid, bid, tid, delta = self._drawn()
        self._execute("begin")
        self._execute("update accounts set abalance = abalance + ? where aid = ?", (delta, aid))
        self._execute("select abalance from accounts where aid = ?", (aid,)).fetchall()
        self._execute("update tellers set tbalance = tbalance + ? where tid = ?", (delta, tid))
        self._execute("select tbalance from tellers where tid = ?", (tid,)).fetchall()
        self._execute("select bbalance from branches where bid = ?", (bid,)).fetchall()
        self._execute("insert into history values (?, ?, ?, ?, current_timestamp)", (tid, bid, aid, delta))
        self._execute("insert into inserted values (?, 'a name of some length')", (2 * number,))
        self._execute("insert into inserted values (?, 'a name of some length')", (2 * number + 1,))
        self._execute("commit")

    def _drawn(self) -> tuple[int, int, int, int]:
        """Account, branch, teller and amount of a transaction."""
        draw = self._chance.randint
        return draw(1, ACCOUNTS), draw(1, BRANCHES), draw(1, TELLERS), draw(-5000, 5000)


CASES: dict[str, Callable[[PlainCases, int], None]] = {
    "read_1": PlainCases.read,
    "insert_1": PlainCases.insert,
    "tpcb_16": PlainCases.tpcb,
    "ten_1": PlainCases.ten,
}


def measure(folder: Path, seconds: float, name: str) -> dict[str, float]:
    """Run one case on a new database in the folder, which is made."""
    folder.mkdir(exist_ok=True)
    plain = PlainCases(opened(folder / "plain.db"))
    return timed(lambda number: CASES[name](plain, number), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="without a database")
    parser.add_argument("seconds", type=float)
    parser.add_argument("case", choices=CASES)
    chosen = parser.parse_args()
    print(json.dumps(measure(chosen.folder, chosen.seconds, chosen.case)))


if __name__ == "__main__":
    main()
