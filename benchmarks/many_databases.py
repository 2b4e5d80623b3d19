"""The cost of many databases on one node: memory, threads, open files, idle CPU, and the time to create and restart them.

Usage: python -m benchmarks.many_databases [--counts 10,100,500] [--seconds N] [--open-files N] [--directory DIR]

A cluster of three bookies and one node is started in DIR (a temporary folder unless given). Databases with a table and a few rows are
made up to each count. At each count the node is watched while idle, and then while one client writes single rows to one database. In the
end the node is restarted, once in order and once after SIGKILL, and the rows of every database are read.
Prints figures as JSON and writes build/bench/many_databases.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import psycopg

from benchmarks.node_load import (
    POLL_S,
    database_connection,
    load_average,
    readiness,
    save,
    say,
    single_writes,
    stop,
    summary,
    with_client,
)
from triplicate.cli import LocalCluster, local_cluster
from triplicate.client import Client
from triplicate.sql import create_database

ROWS = 5
SETTLE_S = 5.0
READY_LIMIT_S = 60.0
RESTART_LIMIT_S = 300.0
NODE = "node-1"


def name_of(number: int) -> str:
    return f"db{number:04}"


def fill(port: int, name: str) -> float:
    """Wait until a database accepts writes, and insert its rows; return the time of the first insert."""
    deadline = time.monotonic() + READY_LIMIT_S
    while True:
        try:
            with database_connection(port, name) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS single(id INTEGER PRIMARY KEY, v TEXT)")
                taken_at = time.perf_counter()
                for number in range(ROWS):
                    connection.execute("INSERT INTO single VALUES (%s, %s)", (number + 1, "x" * 100))
            return taken_at
        except psycopg.Error as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} takes no writes within {READY_LIMIT_S:.0f} s of its creation: {error}") from error
            time.sleep(POLL_S)


async def grow(client: Client, port: int, first: int, last: int) -> dict[str, Any]:
    """Make databases one after another, each until it accepts writes and has its rows."""
    calls: list[float] = []
    until_written: list[float] = []
    began = time.perf_counter()
    for number in range(first, last + 1):
        begun = time.perf_counter()
        await create_database(client, name_of(number))
        calls.append(time.perf_counter() - begun)
        until_written.append(await asyncio.to_thread(fill, port, name_of(number)) - begun)
    seconds = time.perf_counter() - began
    return {"seconds": round(seconds, 1), "call": summary(calls), "until_it_takes_a_write": summary(until_written)}


def open_files(pid: int) -> dict[str, int]:
    """The open files of a process by kind; those of databases by the ending of their names."""
    kinds: Counter[str] = Counter()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(one)
        except FileNotFoundError:
            continue  # Closed since the list was read.
        kinds[kind_of(target)] += 1
    return {"all": sum(kinds.values()), **dict(sorted(kinds.items()))}


def kind_of(target: str) -> str:
    if not target.startswith("/"):
        return target.partition(":")[0]
    if "/databases/" in target:
        return Path(target).name
    return "other"


def process_facts(pid: int) -> dict[str, Any]:
    process = psutil.Process(pid)
    return {"rss_mib": round(process.memory_info().rss / 2**20, 1), "threads": process.num_threads(), "open_files": open_files(pid)}


def cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def idle_share(pids: dict[str, int], seconds: float) -> dict[str, float]:
    """Processor use of each idle process, in percent of a core."""
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    begun = time.perf_counter()
    time.sleep(seconds)
    took = time.perf_counter() - begun
    return {name: round((cpu_s(pid) - before[name]) / took * 100, 1) for name, pid in pids.items()}


def on_disk(directory: Path) -> dict[str, Any]:
    files = [one for one in directory.rglob("*") if one.is_file()]
    sizes = [one.stat().st_size for one in files]
    return {"files": len(files), "mib": round(sum(sizes) / 2**20, 1)}


def look(cluster: LocalCluster, count: int, seconds: float) -> dict[str, Any]:
    """Measure the node with `count` databases: idle, and with one client that writes to one of them."""
    pids = {name: running.process.pid for name, running in cluster.running.items()}
    time.sleep(SETTLE_S)
    idle = idle_share(pids, seconds)
    figures: dict[str, Any] = {
        "databases": count,
        "load_average": load_average(),
        "idle_cpu_percent": idle,
        "node": process_facts(pids[NODE]),
        "bookies_rss_mib": [process_facts(pid)["rss_mib"] for name, pid in pids.items() if name != NODE],
        "node_directory": on_disk(cluster.folder.folder_of(cluster.folder.member(NODE)) / "data"),
        "metadata_mib": round(cluster.folder.metadata_path.stat().st_size / 2**20, 1),
    }
    if count:
        latencies = single_writes(cluster.folder.member(NODE).port, name_of(1), seconds / 2)
        figures["single_writes_to_one"] = summary(latencies)
    say(f"{count} databases: node {figures['node']}, idle {idle}, writes {figures.get('single_writes_to_one')}")
    return figures


def leading(metrics_port: int) -> int:
    databases = readiness(metrics_port).get("databases", {})
    return sum(one["role"] == "leader" for one in databases.values())


def restart(cluster: LocalCluster, count: int, *, kill: bool) -> dict[str, Any]:
    """Restart the node; measure the time until it leads every database, and until every database has answered."""
    member = cluster.folder.member(NODE)
    stopped_s = stop(cluster, NODE, kill=kill)
    say(f"the node has ended after {stopped_s:.1f} s")
    begun = time.perf_counter()
    cluster.launch(NODE)
    open_s: float | None = None
    while (leads := leading(member.metrics_port)) < count:
        if open_s is None and cluster.newly_ready():
            open_s = time.perf_counter() - begun
            say(f"the node serves after {open_s:.1f} s")
        if time.perf_counter() - begun > RESTART_LIMIT_S:
            raise TimeoutError(f"the node leads {leads} of {count} databases {RESTART_LIMIT_S:.0f} s after its start")
        time.sleep(0.1)
    lead_s, used_s = time.perf_counter() - begun, cpu_s(cluster.running[NODE].process.pid)
    if open_s is None and cluster.newly_ready():
        open_s = lead_s
    say(f"it leads all {count} after {lead_s:.1f} s")
    asked: list[float] = []
    for number in range(1, count + 1):
        asked_at = time.perf_counter()
        with database_connection(member.port, name_of(number)) as connection:
            found = connection.execute("SELECT count(*) FROM single").fetchone()
        assert found is not None, "a count has one row"
        assert found[0] >= ROWS, f"{name_of(number)} has lost rows: {found[0]}"
        asked.append(time.perf_counter() - asked_at)
    say(f"all {count} have answered, {summary(asked)}")
    return {
        "stop_s": round(stopped_s, 2),
        "until_copies_are_open_s": None if open_s is None else round(open_s, 2),
        "until_all_are_led_s": round(lead_s, 2),
        "node_cpu_s": round(used_s, 1),
        "first_query_of_each": summary(asked),
        "node": process_facts(cluster.running[NODE].process.pid),
    }


def measure(cluster: LocalCluster, counts: list[int], seconds: float) -> dict[str, Any]:
    uri, port = cluster.folder.metadata_uri, cluster.folder.member(NODE).port
    figures: dict[str, Any] = {"load_average_before": load_average(), "open_files_limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}
    stages = [look(cluster, 0, seconds)]
    there = 0
    for count in counts:
        first, there = there + 1, count
        cpu_before = cpu_s(cluster.running[NODE].process.pid)
        made = with_client(uri, lambda client, first=first, last=count: grow(client, port, first, last))  # type: ignore[misc]
        made["node_cpu_s"] = round(cpu_s(cluster.running[NODE].process.pid) - cpu_before, 1)
        say(f"databases {first} to {count} are there: {made}")
        stages.append({**look(cluster, count, seconds), "created": {"first": first, **made}})
    figures["stages"] = stages
    figures["restart_in_order"] = restart(cluster, there, kill=False)
    figures["restart_after_sigkill"] = restart(cluster, there, kill=True)
    time.sleep(SETTLE_S)
    figures["idle_after_the_restart"] = look(cluster, there, seconds)
    figures["load_average_after"] = load_average()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", default="10,100,500", help="how many databases there are at each stage, ascending")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the idle node is watched; rows are written for half as long")
    parser.add_argument("--open-files", type=int, help="the soft limit of open files under which the cluster runs")
    parser.add_argument("--directory", type=Path)
    given = parser.parse_args()
    if given.open_files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (given.open_files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory(prefix="tm-", dir=given.directory) as folder:
        try:
            with local_cluster(Path(folder) / "c", bookies=3, nodes=1) as cluster:
                save(measure(cluster, [int(one) for one in given.counts.split(",")], given.seconds), "many_databases")
        except BaseException:
            say_last_lines(Path(folder) / "c" / NODE / "log")
            raise


def say_last_lines(log: Path) -> None:
    """The end of the node's log, read before its folder is deleted."""
    if log.exists():
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]:
            say(f"{NODE}: {line}")


if __name__ == "__main__":
    main()
