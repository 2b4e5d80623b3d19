"""The load that `benchmarks/layers.py` runs with one state of the code: appends to a log, and commits and reads of a database.

Usage: python benchmarks/layers_load.py FOLDER SECONDS; prints one JSON object. It uses only functions that both states of the code have.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.driving import percentile
from triplicate.cli import LocalCluster, local_cluster
from triplicate.client import connect
from triplicate.log import Logs
from triplicate.sql import create_database

PAYLOAD = b"." * 1024
WINDOW = 64
CLIENTS = 16
FIRST_KEY = 1_000_000_000
"""Number of rows that one client inserts first; reads search for them."""
START_LIMIT_S = 60.0


def rate_and_latency(latencies: list[float], seconds: float) -> dict[str, float]:
    ordered = sorted(latencies)

    def at(share: float) -> float:
        return percentile(ordered, share) * 1000

    return {"per_s": len(ordered) / seconds, "p50_ms": at(0.5), "p99_ms": at(0.99)}


async def log_appends(uri: str, seconds: float) -> dict[str, float]:
    """One appender per place in the window, with entries of 1 KiB."""
    latencies: list[float] = []
    async with connect(uri) as client:
        logs = Logs(client)
        await logs.create("bench")
        async with await logs.writer("bench", owner="bench") as writer:
            end = time.perf_counter() + seconds

            async def appender() -> None:
                while (began := time.perf_counter()) < end:
                    await writer.append_entry([PAYLOAD])
                    latencies.append(time.perf_counter() - began)

            spent = resource.getrusage(resource.RUSAGE_SELF)
            await asyncio.gather(*(appender() for _ in range(WINDOW)))
            after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - spent.ru_utime - spent.ru_stime
    return {**rate_and_latency(latencies, seconds), "client_cpu_us": cpu_s / len(latencies) * 1e6}


def statements(dsn: str, clients: int, seconds: float, statement: Callable[[psycopg.Connection[Any], int], None]) -> dict[str, float]:
    """Run one statement after another on some connections."""
    latencies: list[float] = []

    def client(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            done = 0
            while (began := time.perf_counter()) < end:
                statement(connection, clients * FIRST_KEY + number * 10_000_000 + done)
                done += 1
                latencies.append(time.perf_counter() - began)

    end = time.perf_counter() + seconds
    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rate_and_latency(latencies, seconds)


def insert(connection: psycopg.Connection[Any], key: int) -> None:
    connection.execute("insert into rows values(%s, 'value')", (key,), prepare=True)


def select(connection: psycopg.Connection[Any], key: int) -> None:
    connection.execute("select v from rows where k = %s", (FIRST_KEY + key % 50,), prepare=True).fetchall()


def leader_dsn(cluster: LocalCluster) -> str:
    nodes = [str(one.facts["address"]).rpartition(":") for one in cluster.running.values() if one.member.kind == "node"]
    hosts, ports = ",".join(host for host, _, _ in nodes), ",".join(port for _, _, port in nodes)
    dsn = f"host={hosts} port={ports} dbname=bench user=bench target_session_attrs=read-write"
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute("create table if not exists rows(k integer primary key, v text)")
                return dsn
        except psycopg.Error:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


async def make_database(uri: str) -> None:
    async with connect(uri) as client:
        await create_database(client, "bench")


def main(folder: Path, seconds: float) -> dict[str, dict[str, float]]:
    with local_cluster(folder, bookies=3, nodes=1) as cluster:
        uri = cluster.folder.metadata_uri
        figures = {"log append, 64 at a time": asyncio.run(log_appends(uri, seconds))}
        asyncio.run(make_database(uri))
        dsn = leader_dsn(cluster)
        for clients in (1, CLIENTS):
            figures[f"one-row insert, {clients} clients"] = statements(dsn, clients, seconds, insert)
            figures[f"point read, {clients} clients"] = statements(dsn, clients, seconds, select)
        return figures


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), float(sys.argv[2]))))
