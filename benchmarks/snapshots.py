"""Duration of a restart, and of a new copy from a snapshot and from the whole log; and the cost of a snapshot for writers.

Usage: python -m benchmarks.snapshots [--rows N] [--passes N] [--seconds N] [--directory DIR]

A cluster of three bookies and one node is started in DIR (a temporary folder unless given) with a database of N rows of some 150 bytes.
Each pass updates every row, so that the log is longer than the database. Snapshots are made on request only.
Prints figures as JSON and writes build/bench/snapshots.json.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.node_load import (
    POLL_S,
    Peak,
    Writer,
    database_connection,
    end,
    load_average,
    save,
    say,
    single_writes,
    stop,
    summary,
    with_client,
)
from triplicate.cli import LocalCluster, local_cluster
from triplicate.cli.supervision.cluster_folder import ClusterFolder
from triplicate.client import Client
from triplicate.log import Logs, LogSettings, Snapshot
from triplicate.sql import create_database, database_file, database_info

NAME = "bench"
NODE = "node-1"
BATCH = 20_000
ROLL_BYTES = 16 << 20
WAIT_S = 900.0
BEHIND = 10
"""One row in this number is updated behind the newest snapshot before a copy is made from it."""
ON_REQUEST_BYTES = 2**50
"""Growth that no log reaches, so that snapshots are made only on request, and the log is still truncated behind them."""


def fill(port: int, rows: int, passes: int) -> None:
    with database_connection(port, NAME) as connection:
        connection.execute("CREATE TABLE single(id INTEGER PRIMARY KEY, v TEXT)")
        connection.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, note TEXT)")
        connection.execute("CREATE INDEX item_name ON item(name)")
        for start in range(0, rows, BATCH):
            connection.execute(
                f"WITH RECURSIVE c(x) AS (VALUES({start + 1}) UNION ALL SELECT x + 1 FROM c WHERE x < {min(start + BATCH, rows)}) "
                "INSERT INTO item SELECT x, 'item ' || x, x / 7.0, hex(randomblob(40)) FROM c"
            )
        say(f"{rows} rows are there")
        for number in range(passes):
            update(connection, rows)
            say(f"pass {number + 1} of {passes} is done")


def update(connection: psycopg.Connection[Any], rows: int) -> None:
    """Update the first `count` rows."""
    for start in range(0, rows, BATCH):
        upto = min(start + BATCH, rows)
        connection.execute(f"UPDATE item SET price = price * 1.01, note = hex(randomblob(40)) WHERE id > {start} AND id <= {upto}")


@contextlib.contextmanager
def extra_node(uri: str, directory: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another node with an empty directory."""
    arguments = ["node", "--metadata", uri, "--node-id", name, "--directory", str(directory / name), "--snapshot-log-bytes", "0"]
    process = subprocess.Popen([sys.executable, "-m", "triplicate", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        end(process)


async def caught_up(client: Client, node: str, position: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        info = await database_info(client, NAME)
        if any(one.node_id == node and one.position >= position for one in info.nodes):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{node} is not at {position} within {WAIT_S:.0f} s")
        await asyncio.sleep(0.05)


def new_copy(uri: str, directory: Path, name: str) -> dict[str, float]:
    """Time from the start of a node with an empty disk until its copy is complete, and its peak memory."""
    position = with_client(uri, end_of)
    begun = time.perf_counter()
    with extra_node(uri, directory, name) as process, Peak(process.pid) as peak:
        with_client(uri, lambda client: caught_up(client, name, position))
        seconds = time.perf_counter() - begun
    figures = {"seconds": round(seconds, 2), "peak_rss_mib": peak.bytes >> 20}
    say(f"new copy, {name}: {figures}")
    return figures


def restart(cluster: LocalCluster, *, kill: bool) -> dict[str, float]:
    """Time from the start of a node with a copy until it answers a query and accepts a write."""
    port = cluster.folder.member(NODE).port
    stopped_s = stop(cluster, NODE, kill=kill)
    begun = time.perf_counter()
    cluster.launch(NODE)
    with Peak(cluster.running[NODE].process.pid) as peak:
        insist(port, "SELECT name FROM item WHERE id = 1")
        answered_s = time.perf_counter() - begun
        insist(port, "INSERT INTO single(v) VALUES ('restarted')")
        written_s = time.perf_counter() - begun
    figures = {"stop_s": stopped_s, "until_a_query_s": answered_s, "until_a_write_s": written_s, "peak_rss_mib": peak.bytes >> 20}
    say(f"restart, {'after SIGKILL' if kill else 'in order'}: {figures}")
    return {name: round(value, 2) for name, value in figures.items()}


def insist(port: int, statement: str) -> None:
    """Run a statement as soon as the node accepts it."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            with database_connection(port, NAME) as connection:
                connection.execute(statement)
            return
        except psycopg.Error as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the node does not take {statement!r} within {WAIT_S:.0f} s: {error}") from error
            time.sleep(POLL_S)


async def end_of(client: Client) -> int:
    return await Logs(client).end_offset((await database_info(client, NAME)).log)


async def log_bytes(client: Client) -> int:
    logs = Logs(client)
    log = (await database_info(client, NAME)).log
    # Only whole segments are deleted, so more is kept than lies beyond the first offset.
    return await logs.snapshots(log).size_since(0)


async def snapshot(client: Client, database: str = NAME) -> Snapshot:
    """Request a snapshot at the end of a database's log, and wait until it is listed."""
    logs = Logs(client)
    log = (await database_info(client, database)).log
    door, position = logs.snapshots(log), await logs.end_offset(log)
    listed = await door.want(position)
    async with asyncio.timeout(WAIT_S):
        while not listed.good or listed.good[-1].position < position:
            await asyncio.sleep(0.02)
            listed = await door.read()
    return listed.good[-1]


def make(uri: str, port: int, pid: int) -> tuple[Snapshot, dict[str, Any], list[float]]:
    """Make one snapshot while a client writes; return the durations of its writes."""
    begun = time.perf_counter()
    with Peak(pid) as peak, Writer(port, NAME) as writer:
        made: Snapshot = with_client(uri, snapshot)
    figures = {"seconds": round(time.perf_counter() - begun, 2), "more_rss_mib": (peak.bytes - peak.first) >> 20}
    return made, {**figures, "writes": summary(writer.latencies)}, writer.latencies


def alternate(uri: str, port: int, pid: int, seconds: float) -> tuple[Snapshot, dict[str, Any]]:
    """Single writes of one client: alone, beside a snapshot, alone, beside another, alone."""
    alone, beside, snapshots = [single_writes(port, NAME, seconds)], [], []
    for _ in range(2):
        made, figures, latencies = make(uri, port, pid)
        snapshots.append(figures)
        beside.append(latencies)
        alone.append(single_writes(port, NAME, seconds))
        say(f"a snapshot with writes beside it: {figures}; then writes alone: {summary(alone[-1])}")
    together = {
        "alone": summary([one for window in alone for one in window]),
        "beside_a_snapshot": summary([one for window in beside for one in window]),
    }
    return made, {"writes": {**together, "windows_alone": [summary(one) for one in alone]}, "snapshots": snapshots}


def file_sizes(directory: Path) -> dict[str, int]:
    """Size of the database's file and its write-ahead log, in MiB."""
    path = database_file(directory, NAME)
    return {one.name: one.stat().st_size >> 20 for one in sorted(path.parent.iterdir()) if one.name.startswith(path.name)}


def truncated(uri: str, before: int) -> int:
    """The log's size after its truncation."""
    deadline = time.monotonic() + WAIT_S
    while (after := with_client(uri, log_bytes)) >= before:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the log is not truncated within {WAIT_S:.0f} s")
        time.sleep(0.1)
    return after


def measure(cluster: LocalCluster, directory: Path, given: argparse.Namespace) -> dict[str, Any]:
    uri, member = cluster.folder.metadata_uri, cluster.folder.member(NODE)
    figures: dict[str, Any] = {"rows": given.rows, "passes": given.passes, "load_average_before": load_average()}
    with_client(uri, lambda client: create_database(client, NAME, LogSettings(roll_size_bytes=ROLL_BYTES)))
    while not with_client(uri, lambda client: database_info(client, NAME)).leader:
        time.sleep(0.1)
    begun = time.perf_counter()
    fill(member.port, given.rows, given.passes)
    figures["filling_s"] = round(time.perf_counter() - begun, 1)
    figures["files_mib"] = file_sizes(cluster.folder.folder_of(member) / "data")
    before = with_client(uri, log_bytes)
    say(f"the log has {before >> 20} MiB, the files {figures['files_mib']}")
    figures["new_copy_from_the_log"] = new_copy(uri, directory, "replaying")
    figures["restart_in_order"] = restart(cluster, kill=False)
    figures["restart_after_sigkill"] = restart(cluster, kill=True)
    made, beside = alternate(uri, member.port, cluster.running[NODE].process.pid, given.seconds)
    after = truncated(uri, before)
    figures |= {
        "snapshot_mib": made.size_bytes >> 20,
        "snapshot_stored_mib": made.stored_bytes >> 20,
        "log_mib": {"before": before >> 20, "after": round(after / 2**20, 1)},
        **beside,
    }
    with database_connection(member.port, NAME) as connection:
        update(connection, given.rows // BEHIND)
    behind = with_client(uri, log_bytes) - after
    figures["log_behind_the_snapshot_mib"] = round(behind / 2**20, 1)
    figures["new_copy_from_a_snapshot"] = new_copy(uri, directory, "loading")
    figures["load_average_after"] = load_average()
    return figures


def on_request(folder: ClusterFolder) -> None:
    """Configure the cluster's node to make snapshots on request only."""
    path = folder.config_of(folder.member(NODE))
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("[node]\n", f"[node]\nsnapshot_log_bytes = {ON_REQUEST_BYTES}\n", 1), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="how long a client writes alone, each of three times")
    parser.add_argument("--directory", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ts-", dir=given.directory) as folder:
        path = Path(folder)
        with local_cluster(path / "c", bookies=3, nodes=1, begin=on_request) as cluster:
            save(measure(cluster, path, given), "snapshots")


if __name__ == "__main__":
    main()
