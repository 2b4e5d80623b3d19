"""Many databases on three nodes: the time until all are served, what each copy costs a node, and how their leaders spread.

Usage: python -m benchmarks.spread_databases [--databases N] [--copies N] [--directory DIR]

A cluster of three bookies and three nodes is started in DIR (a temporary folder unless given), with N databases (1000) that have two copies
each, or as many as --copies says (3: one on every node). The times are measured until every database is led, until leaders are even, and
again after SIGKILL of all nodes. Then one node is drained. Prints figures as JSON and writes build/bench/spread_databases.json.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from benchmarks.node_load import load_average, save, say, stop, with_client
from triplicate.cli import LocalCluster, local_cluster
from triplicate.client import Client
from triplicate.runtime import map_bounded
from triplicate.sql import PlacedReplica, Placement, create_database, drain_node, placed_databases

NODES = ("node-1", "node-2", "node-3")
POLL_S = 1.0
LIMIT_S = 1800.0
CREATED_AT_ONCE = 8
IDLE_S = 5.0

Figures = dict[str, float]


def facts_of(cluster: LocalCluster) -> list[PlacedReplica]:
    return with_client(cluster.folder.metadata_uri, placed_databases)


def waited(cluster: LocalCluster, holds: Callable[[list[PlacedReplica]], bool], awaited: str) -> float:
    """Seconds until a condition of the databases holds."""
    began = time.perf_counter()
    while not holds(found := facts_of(cluster)):
        if time.perf_counter() - began > LIMIT_S:
            raise TimeoutError(f"{awaited}: not within {LIMIT_S:.0f} s; leaders {leaders(found)}")
        time.sleep(POLL_S)
    seconds = time.perf_counter() - began
    say(f"{awaited}: after {seconds:.1f} s, leaders {leaders(found)}")
    return round(seconds, 1)


def leaders(databases: list[PlacedReplica]) -> dict[str, int]:
    counts = Counter(one.leader or "none" for one in databases)
    return dict(sorted(counts.items()))


def copies(databases: list[PlacedReplica]) -> dict[str, int]:
    return dict(sorted(Counter(node for one in databases for node in one.served_on).items()))


def are_served(count: int, copies_of_each: int) -> Callable[[list[PlacedReplica]], bool]:
    """Whether all databases are led, and have their copies."""
    return lambda found: len(found) == count and all(one.leader and len(one.served_on) >= copies_of_each for one in found)


def are_even(nodes: tuple[str, ...]) -> Callable[[list[PlacedReplica]], bool]:
    """Whether each of the nodes leads nearly as many as the others."""

    def check(found: list[PlacedReplica]) -> bool:
        counts = leaders(found)
        led = [counts.get(node, 0) for node in nodes]
        return sum(led) == len(found) and max(led) - min(led) <= max(1, 0.1 * len(found) / len(nodes))

    return check


def processes(cluster: LocalCluster) -> dict[str, psutil.Process]:
    """All processes of the cluster by name."""
    return {name: psutil.Process(one.process.pid) for name, one in sorted(cluster.running.items())}


def resources(cluster: LocalCluster) -> dict[str, dict[str, float]]:
    """Resident memory in MiB, open files and threads of each process, and its processor time in percent of a core while nobody asks."""
    found = processes(cluster)
    before = {name: sum(process.cpu_times()[:2]) for name, process in found.items()}
    began = time.perf_counter()
    time.sleep(IDLE_S)
    took = time.perf_counter() - began
    return {
        name: {
            "rss_mib": round(process.memory_info().rss / 2**20, 1),
            "open_files": process.num_fds(),
            "threads": process.num_threads(),
            "idle_cpu_percent": round((sum(process.cpu_times()[:2]) - before[name]) / took * 100, 1),
        }
        for name, process in found.items()
    }


def for_each_copy(empty: Mapping[str, Mapping[str, float]], full: Mapping[str, Mapping[str, float]], copies: Mapping[str, int]) -> Figures:
    """The addition of a copy to its node, as the mean over all nodes: memory, open files and processor time while nobody asks."""
    count = sum(copies.values())
    added = {
        key: sum(full[name][key] - empty[name][key] for name in copies) / count for key in ("rss_mib", "open_files", "idle_cpu_percent")
    }
    return {key: round(value, 3) for key, value in added.items()}


def create_all(cluster: LocalCluster, count: int, placement: Placement) -> float:
    async def create(client: Client) -> None:
        async def one(number: int) -> None:
            await create_database(client, f"db{number:04}", placement=placement)

        await map_bounded(one, range(1, count + 1), most=CREATED_AT_ONCE, name="databases")

    began = time.perf_counter()
    with_client(cluster.folder.metadata_uri, create)
    return round(time.perf_counter() - began, 1)


def measure(cluster: LocalCluster, count: int, copies_of_each: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"databases": count, "copies": copies_of_each, "load_average_before": load_average()}
    figures["empty"] = resources(cluster)
    figures["created_s"] = create_all(cluster, count, Placement(copies=None if copies_of_each >= len(NODES) else copies_of_each))
    say(f"{count} databases are made in {figures['created_s']} s")
    figures["until_all_are_served_s"] = waited(cluster, are_served(count, copies_of_each), "all databases are served")
    figures["until_leaders_are_even_s"] = waited(cluster, are_even(NODES), "leaders are even")
    found = facts_of(cluster)
    figures |= {"leaders": leaders(found), "copies_on": copies(found), "full": resources(cluster)}
    figures["for_each_copy"] = for_each_copy(figures["empty"], figures["full"], figures["copies_on"])
    say(f"each copy adds {figures['for_each_copy']}")
    for name in NODES:
        stop(cluster, name, kill=True)
    began = time.perf_counter()
    for name in NODES:
        cluster.launch(name)
    served_s = waited(cluster, are_served(count, copies_of_each), "all databases are served after a restart")
    even_s = waited(cluster, are_even(NODES), "leaders are even after a restart")
    figures["restart_of_all"] = {
        "until_all_are_served_s": served_s,
        "until_leaders_are_even_s": even_s,
        "seconds": round(time.perf_counter() - began, 1),
        "then": resources(cluster),
    }
    if copies_of_each < len(NODES):
        with_client(cluster.folder.metadata_uri, lambda client: drain_node(client, NODES[0]))
        drained = waited(cluster, lambda found: not any(NODES[0] in one.served_on or one.leader == NODES[0] for one in found), "drained")
        figures["drain_s"] = drained
        figures["copies_after_the_drain"] = copies(facts_of(cluster))
    figures["load_average_after"] = load_average()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--databases", type=int, default=1000)
    parser.add_argument("--copies", type=int, default=2)
    parser.add_argument("--directory", type=Path)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="ts-", dir=given.directory) as folder,
        local_cluster(Path(folder) / "c", bookies=3, nodes=len(NODES)) as cluster,
    ):
        save(measure(cluster, given.databases, given.copies), "spread_databases")


if __name__ == "__main__":
    main()
