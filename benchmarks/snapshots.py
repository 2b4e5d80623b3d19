"""A new copy of a database from a snapshot beside one from the whole log, and what making the snapshot costs those who write.

Usage: python benchmarks/snapshots.py [--rows N] [--passes N] [--directory DIR]

A cluster of three bookies and one node is started in DIR (a temporary folder unless given), a database of N rows of some 150 bytes is made,
and every row is updated in each of the passes, so that the log is longer than the database. Prints figures as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg

from benchmarks.driving import percentile
from triplicate.cli import LocalCluster, local_cluster, run_loop
from triplicate.client import Client, connect
from triplicate.log import Logs, LogSettings, Snapshot
from triplicate.sql import create_database, database_info

NAME = "bench"
BATCH = 20_000
ROLL_BYTES = 16 << 20
WAIT_S = 900.0
BASE_S = 10.0


class Peak:
    """The greatest resident memory of a process while this is open."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.first = self._process.memory_info().rss
        self.bytes = self.first
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            with contextlib.suppress(psutil.NoSuchProcess):
                self.bytes = max(self.bytes, self._process.memory_info().rss)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


class Writer:
    """One client that inserts single rows as fast as they are acknowledged, in a thread."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.latencies: list[float] = []

    def _write(self) -> None:
        with psycopg.connect(host="127.0.0.1", port=self._port, dbname=NAME, user="bench", autocommit=True) as connection:
            while not self._ended.is_set():
                begun = time.perf_counter()
                connection.execute("INSERT INTO single(v) VALUES (%s)", ("x" * 100,))
                self.latencies.append(time.perf_counter() - begun)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def figures(self) -> dict[str, float]:
        ordered = sorted(self.latencies)
        milliseconds = {f"p{share * 100:g}_ms": round(percentile(ordered, share) * 1000, 2) for share in (0.5, 0.99)}
        return {"writes": len(ordered), **milliseconds, "longest_ms": round(ordered[-1] * 1000, 2)}


def with_client(uri: str, body: Any) -> Any:
    async def main() -> Any:
        async with connect(uri) as client:
            return await body(client)

    return run_loop(main())


def fill(port: int, rows: int, passes: int) -> None:
    with psycopg.connect(host="127.0.0.1", port=port, dbname=NAME, user="bench", autocommit=True) as connection:
        connection.execute("CREATE TABLE single(id INTEGER PRIMARY KEY, v TEXT)")
        connection.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, note TEXT)")
        connection.execute("CREATE INDEX item_name ON item(name)")
        for start in range(0, rows, BATCH):
            connection.execute(
                f"WITH RECURSIVE c(x) AS (VALUES({start + 1}) UNION ALL SELECT x + 1 FROM c WHERE x < {min(start + BATCH, rows)}) "
                "INSERT INTO item SELECT x, 'item ' || x, x / 7.0, hex(randomblob(40)) FROM c"
            )
        for _ in range(passes):
            for start in range(0, rows, BATCH):
                connection.execute(
                    f"UPDATE item SET price = price * 1.01, note = hex(randomblob(40)) WHERE id > {start} AND id <= {start + BATCH}"
                )


@contextlib.contextmanager
def extra_node(uri: str, directory: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another node with an empty directory."""
    arguments = ["node", "--metadata", uri, "--node-id", name, "--directory", str(directory / name), "--snapshot-log-bytes", "0"]
    with subprocess.Popen([sys.executable, "-m", "triplicate", *arguments], stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


async def caught_up(client: Client, node: str, position: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        info = await database_info(client, NAME)
        if any(one.node_id == node and one.position >= position for one in info.nodes):
            return
        assert time.monotonic() < deadline, f"{node} is not at {position} within {WAIT_S} s"
        await asyncio.sleep(0.05)


def new_copy(uri: str, directory: Path, name: str) -> dict[str, float]:
    """How long a node with an empty disk takes from its start until it has everything, and with how much memory."""
    position = with_client(uri, end_of)
    begun = time.perf_counter()
    with extra_node(uri, directory, name) as process, Peak(process.pid) as peak:
        with_client(uri, lambda client: caught_up(client, name, position))
        seconds = time.perf_counter() - begun
    return {"seconds": round(seconds, 2), "peak_rss_mib": peak.bytes >> 20}


async def end_of(client: Client) -> int:
    return await Logs(client).end_offset((await database_info(client, NAME)).log)


async def log_bytes(client: Client) -> int:
    logs = Logs(client)
    log = (await database_info(client, NAME)).log
    # Whole segments go, so what is beyond the first offset is less than what is kept.
    return await logs.snapshots(log).size_since(0)


async def snapshot(client: Client) -> Snapshot:
    logs = Logs(client)
    log = (await database_info(client, NAME)).log
    door, position = logs.snapshots(log), await logs.end_offset(log)
    listed = await door.want(position)
    async with asyncio.timeout(WAIT_S):
        while not listed.good or listed.good[-1].position < position:
            await asyncio.sleep(0.02)
            listed = await door.read()
    return listed.good[-1]


def make(uri: str, port: int, pid: int) -> tuple[Snapshot, dict[str, float]]:
    """One snapshot while a client writes."""
    begun = time.perf_counter()
    with Peak(pid) as peak, Writer(port) as writer:
        made: Snapshot = with_client(uri, snapshot)
    figures = {"seconds": round(time.perf_counter() - begun, 2), "more_rss_mib": (peak.bytes - peak.first) >> 20, **writer.figures()}
    return made, figures


def measure(cluster: LocalCluster, directory: Path, rows: int, passes: int) -> dict[str, Any]:
    uri = cluster.folder.metadata_uri
    (node,) = (member for member in cluster.folder.members if member.kind == "node")
    pid = cluster.running[node.name].process.pid
    with_client(uri, lambda client: create_database(client, NAME, LogSettings(roll_size_bytes=ROLL_BYTES)))
    while not with_client(uri, lambda client: database_info(client, NAME)).leader:
        time.sleep(0.1)
    fill(node.port, rows, passes)
    with Writer(node.port) as quiet:
        time.sleep(BASE_S)
    before = with_client(uri, log_bytes)
    replayed = new_copy(uri, directory, "replaying")
    _, first = make(uri, node.port, pid)
    made, second = make(uri, node.port, pid)
    while (after := with_client(uri, log_bytes)) >= before:
        time.sleep(0.1)
    return {
        "rows": rows,
        "database_mib": made.size_bytes >> 20,
        "snapshot_stored_mib": made.stored_bytes >> 20,
        "log_mib": {"before": before >> 20, "after": round(after / 2**20, 1)},
        "writes_without_a_snapshot": quiet.figures(),
        "writes_while_one_is_made": [first, second],
        "new_copy_from_the_log": replayed,
        "new_copy_from_a_snapshot": new_copy(uri, directory, "loading"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=700_000)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--directory", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ts-", dir=given.directory) as folder:
        path = Path(folder)
        with local_cluster(path / "c", bookies=3, nodes=1) as cluster:
            print(json.dumps(measure(cluster, path, given.rows, given.passes), indent=2))


if __name__ == "__main__":
    main()
