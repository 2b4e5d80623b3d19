"""A program: plain SQLite with synchronous=FULL in one process, one transaction per insert. Prints one JSON object.

Usage: python -m benchmarks.sql.plain_sqlite FOLDER SECONDS [--writes-only]
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


def measure(folder: Path, seconds: float, *, writes_only: bool) -> dict[str, dict[str, float]]:
    chance = random.Random(1)
    connection = opened(folder / "plain.db")

    def read(_: int) -> object:
        return connection.execute("select name from filled where id = ?", (chance.randint(1, ROWS),)).fetchall()

    def insert(number: int) -> object:
        return connection.execute("insert into inserted values (?, 'a name of some length')", (number,))

    def tpcb(_: int) -> None:
        aid, bid, tid, delta = (
            chance.randint(1, ACCOUNTS),
            chance.randint(1, BRANCHES),
            chance.randint(1, TELLERS),
            chance.randint(-5000, 5000),
        )
        connection.execute("begin")
        connection.execute("update accounts set abalance = abalance + ? where aid = ?", (delta, aid))
        connection.execute("select abalance from accounts where aid = ?", (aid,)).fetchall()
        connection.execute("update tellers set tbalance = tbalance + ? where tid = ?", (delta, tid))
        connection.execute("update branches set bbalance = bbalance + ? where bid = ?", (delta, bid))
        connection.execute("insert into history values (?, ?, ?, ?, current_timestamp)", (tid, bid, aid, delta))
        connection.execute("commit")

    cases: dict[str, Callable[[int], object]] = {} if writes_only else {"read_1": read}
    cases |= {"insert_1": insert, "tpcb_16": tpcb}
    return {name: timed(statement, seconds) for name, statement in cases.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--writes-only", action="store_true")
    chosen = parser.parse_args()
    print(json.dumps(measure(chosen.folder, chosen.seconds, writes_only=chosen.writes_only)))


if __name__ == "__main__":
    main()
