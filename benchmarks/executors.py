"""The cost of a batch of many Spark executors in the metadata store: operations, the log's nodes, and time; on simulated machines.

Usage: python -m benchmarks.executors [--counts 10,100,1000] [--batches N] [--kib N] [--target-mib N]

Bookies and clients are the real ones, in the deterministic simulator: five bookies, and each executor is a process of its own with a
session of its own, which writes one staging ledger for a batch. All begin at once. Then a driver joins small ledgers and publishes the
batch, as the sink does, and a reader plans the whole log. Counts and sizes are exact. Times are those of the model, in which an operation
of the metadata store takes 0.4 to 8 ms and those of one session come one after the other, which ZooKeeper's need not.
Prints a table as JSON and writes build/bench/executors.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from triplicate.client import Client
from triplicate.config import BookieSettings
from triplicate.log import Logs, LogSettings, StagedLedger, StagingOrigin
from triplicate.metadata.core.own_paths import log_path, pages_path
from triplicate.sim.host import World
from triplicate_simulator.cluster.simulated_cluster import ClusterOptions, SimulatedCluster, small_bookie_settings

LOG, APPLICATION = "l", "a"
KIB, MIB = 1024, 1024 * 1024
READS = ("get", "exists", "children")
CALLBACKS_MAX = 500_000_000
FILE = Path("build/bench/executors.json")


class Metadata:
    """Counts the operations of clients that arrive at the metadata store, by their names; those of bookies are their own chores."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        cluster.metadata_looks.append(self._look)

    def _look(self, owner: str, operation: str, _: str) -> None:
        if owner in self._cluster.clients:
            self.counts[operation] += 1

    def cost(self, began_s: float) -> dict[str, Any]:
        """The operations since the last call, and the time since `began_s`."""
        counts, self.counts = dict(self.counts), Counter()
        reads = sum(count for operation, count in counts.items() if operation in READS)
        seconds = round(self._cluster.world.loop.time() - began_s, 3)
        return {"operations": sum(counts.values()), "reads": reads, "by_name": dict(sorted(counts.items())), "seconds": seconds}


async def stage(size_bytes: int, batch: int, partition: int, client: Client) -> StagedLedger:
    """The work of a task."""
    async with await Logs(client).staging(StagingOrigin(LOG, APPLICATION, batch=batch, partition=partition)) as writer:
        await writer.append_many([bytes(size_bytes)])
    return await writer.seal()


async def commit(staged: Sequence[StagedLedger], batch: int, target_bytes: int, client: Client) -> int:
    """The work of the driver; returns how many segments the batch has."""
    logs = Logs(client)
    joined = await logs.join_staged(StagingOrigin(LOG, APPLICATION, batch=batch), staged, target_bytes)
    await logs.publish(LOG, joined.ledgers, application=APPLICATION, batch=batch, publisher="driver")
    await logs.discard(LOG, [ledger.ledger_id for ledger in joined.replaced])
    return len(joined.ledgers)


async def plan(records: int, parts: int, client: Client) -> None:
    """The work of a reader's driver."""
    await Logs(client).plan(LOG, 0, records, parts)


async def sizes(client: Client) -> dict[str, int]:
    """The log's head and pages: their number, and sizes in bytes."""
    tree, root = client.metadata.tree, client.metadata.own_root
    pages = pages_path(root, LOG)
    names = (await tree.children(pages))[0] if await tree.exists(pages) is not None else []
    read = [len((await tree.get(f"{pages}/{name}"))[0]) for name in names]
    return {"head_bytes": len((await tree.get(log_path(root, LOG)))[0]), "pages": len(read), "pages_bytes": sum(read)}


async def measure(cluster: SimulatedCluster, executors: int, batches: int, size_bytes: int, target_bytes: int) -> list[dict[str, Any]]:
    """The costs of each batch."""
    await cluster.start()
    metadata, now, driver = Metadata(cluster), cluster.world.loop.time, cluster.client("driver")
    await driver.run(lambda client: Logs(client).create(LOG, LogSettings(compression="none")))
    rows: list[dict[str, Any]] = []
    for batch in range(batches):
        metadata.cost(now())
        began_s = now()
        tasks = [cluster.client(f"executor-{number}").run(partial(stage, size_bytes, batch, number)) for number in range(executors)]
        staged = await asyncio.gather(*tasks)
        staging = metadata.cost(began_s)
        began_s = now()
        listed = await driver.run(partial(commit, staged, batch, target_bytes))
        publishing = metadata.cost(began_s)
        began_s = now()
        await driver.run(partial(plan, (batch + 1) * executors, executors))
        row = {
            "batch": batch,
            "staging": staging,
            "per_executor": round(staging["operations"] / executors, 1),
            "publishing": publishing,
            "segments": listed,
            "planning": metadata.cost(began_s),
            "nodes": await driver.run(sizes),
        }
        rows.append(row)
    await cluster.stop()
    return rows


def bookie_settings(bookie_id: str) -> BookieSettings:
    """The sizes of real bookies, where those of the simulator fill their caches after a few entries."""
    return replace(small_bookie_settings(bookie_id), write_cache_bytes=64 * MIB, journal_file_bytes=64 * MIB, entry_log_bytes=256 * MIB)


def run(executors: int, batches: int, size_bytes: int, target_bytes: int) -> dict[str, Any]:
    began = time.monotonic()
    world = World(1, callbacks_max=CALLBACKS_MAX)
    try:
        rows = world.run(
            measure(SimulatedCluster(world, ClusterOptions(bookie_settings=bookie_settings)), executors, batches, size_bytes, target_bytes)
        )
    finally:
        world.close()
    return {"executors": executors, "task_bytes": size_bytes, "batches": rows, "took_s": round(time.monotonic() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of a batch of many Spark executors in the metadata store.")
    parser.add_argument("--counts", default="10,100,1000")
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--kib", type=int, default=4, help="what each task writes")
    parser.add_argument("--target-mib", type=float, default=0, help="size up to which the driver joins ledgers; 0 joins none")
    given = parser.parse_args()
    found = [run(int(count), given.batches, given.kib * KIB, int(given.target_mib * MIB)) for count in given.counts.split(",")]
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
