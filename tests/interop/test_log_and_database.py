"""The log and the database on Apache's bookies and ZooKeeper: the demonstration in short, without Spark.

Flights go into a log, and from the log into the database. Meanwhile a bookie of Apache's and the database's leader are killed. Log and
database must hold the rows that pandas reads from the original file, and all copies must agree.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.interop.bookies import LOGS, ApacheBookie, BookieProcess, Cluster, free_port
from tests.interop.scenes import bookie_of, restart
from tests.interop.stand import Stand
from tests.process.running import command, environment
from tests.waiting import wait_until
from triplicate import Client
from triplicate.log import Logs
from triplicate.sql import create_database, database_file, database_info
from triplicate_demo import audit
from triplicate_demo.dataset import FLIGHT_COLUMNS, FLIGHT_KEY, LATE_MINUTES, Dataset, read_flights, unpack
from triplicate_demo.flight_loader import FlightLoader
from triplicate_demo.flow import create_schema_when_ready

FLIGHTS = 12_000
BATCHES = 12
KILL_BOOKIE_AT = 3
KILL_LEADER_AT = 6
RESTART_AT = 9
"""Numbers of the batches during which the kill happens."""
DATABASE = "flights"
LOG = "flights"
NODES = 2
LIMIT_S = 60.0
COLUMNS = [name for name, _ in FLIGHT_COLUMNS]


class Node:
    """One database node as a process."""

    def __init__(self, name: str, uri: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.port = free_port()
        self._uri = uri
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = {
            "--node-id": self.name,
            "--directory": self.folder,
            "--host": "127.0.0.1",
            "--port": self.port,
            "--metadata": self._uri,
        }
        arguments = command("node", *[str(part) for option in options.items() for part in option])
        with (LOGS / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(arguments, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._serves, LIMIT_S, f"{self.name} serves")

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (LOGS / f"{self.name}.log").read_text()[-3000:]
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def nodes_of(stand: Stand, cluster: Cluster) -> Iterator[list[Node]]:
    folder = stand.new_folder()
    nodes = [Node(f"{cluster.name}-node-{number}", cluster.uri, folder / str(number)) for number in range(1, NODES + 1)]
    try:
        for node in nodes:
            node.start()
        yield nodes
    finally:
        for node in nodes:
            node.kill()


@pytest.fixture(scope="module")
def dataset(stand: Stand) -> Dataset:
    return unpack(stand.new_folder())


def records_of(flights: Any) -> list[str]:
    """One JSON object per flight, without missing values."""
    rows = flights[COLUMNS].astype(object).where(flights[COLUMNS].notna(), None).to_dict("records")
    return [json.dumps({name: value for name, value in row.items() if value is not None}) for row in rows]


def keys_of(flights: Any) -> list[bytes]:
    return ["|".join(str(part) for part in key).encode() for key in zip(*(flights[name] for name in FLIGHT_KEY), strict=True)]


async def ingest(client: Client, values: Sequence[str], keys: Sequence[bytes]) -> None:
    logs = Logs(client)
    await logs.create(LOG)
    writer = await logs.writer(LOG, owner="ingest")
    size = FLIGHTS // BATCHES
    for first in range(0, FLIGHTS, size):
        part = slice(first, first + size)
        assert await writer.append_many([value.encode() for value in values[part]], keys=keys[part]) == range(first, first + size)
    await writer.close()


async def read_back(client: Client) -> tuple[list[str], list[bytes]]:
    """Values and keys of the whole log, read by its reader."""
    values: list[str] = []
    keys: list[bytes] = []
    async with await Logs(client).reader(LOG, 0) as reader:
        end = await reader.end_offset()
        while reader.position < end:
            entry = await reader.next_entry(timeout_s=LIMIT_S)
            assert entry is not None
            if not entry.is_control:
                values += [bytes(value or b"").decode() for value in entry.values]
                keys += [bytes(key or b"") for key in entry.keys or ()]
    return values, keys


class ScheduledKills:
    """Kills a bookie and the leader while a transaction is open."""

    def __init__(self, stand: Stand, cluster: Cluster, nodes: Sequence[Node], database_log: str) -> None:
        self._stand = stand
        self._cluster = cluster
        self._nodes = nodes
        self.database_log = database_log
        self._due: dict[int, Callable[[int], None]] = {
            KILL_BOOKIE_AT: self._kill_bookie,
            KILL_LEADER_AT: self._kill_leader,
            RESTART_AT: self._restart,
        }
        self.bookie: BookieProcess | None = None
        self.node: Node | None = None

    def kill_if_due(self, batch: int, leader_port: int) -> None:
        """Kill once at each chosen batch, although a batch may be repeated."""
        strike = self._due.pop(batch, None)
        if strike is not None:
            strike(leader_port)

    def _kill_bookie(self, _: int) -> None:
        _, ensemble = self._stand.run(audit.database_log_state(self._stand.our_client(self._cluster, "v2"), self.database_log))
        members = [bookie_of(self._cluster, bookie_id) for bookie_id in ensemble]
        self.bookie = next(bookie for bookie in members if isinstance(bookie, ApacheBookie))
        self.bookie.kill()

    def _kill_leader(self, leader_port: int) -> None:
        self.node = next(node for node in self._nodes if node.port == leader_port)
        self.node.kill()

    def _restart(self, _: int) -> None:
        assert self.node is not None
        self.node.start()


@pytest.mark.parametrize("bookies", ["apache", "mixed"])
def test_flights_survive_in_log_and_database(stand: Stand, dataset: Dataset, bookies: str) -> None:
    cluster = stand.cluster(bookies)
    spare = stand.add_bookie(cluster, "apache") if len(cluster.bookies) == 3 else None
    client = stand.our_client(cluster, "v2")
    flights = read_flights(dataset).head(FLIGHTS)
    values, keys = records_of(flights), keys_of(flights)
    stand.run(ingest(client, values, keys))
    stand.run(create_database(client, DATABASE))
    database_log = stand.run(database_info(client, DATABASE)).log
    try:
        with nodes_of(stand, cluster) as nodes:
            kills = ScheduledKills(stand, cluster, nodes, database_log)
            load(stand, cluster, nodes, kills)
            assert kills.bookie is not None
            assert kills.node is not None
            assert stand.run(read_back(client)) == (values, keys)
            check_database(nodes, flights)
            check_copies(stand, cluster, kills.bookie, database_log)
    finally:
        for bookie in cluster.bookies:
            if bookie.process is None:
                restart(stand, cluster, bookie)
        if spare is not None:
            stand.remove_bookie(cluster, spare)
        stand.wait_writable(cluster)


def dsn_of(nodes: Sequence[Node]) -> str:
    hosts, ports = ",".join("127.0.0.1" for _ in nodes), ",".join(str(node.port) for node in nodes)
    return f"host={hosts} port={ports} dbname={DATABASE} user=demo target_session_attrs=read-write"


def load(stand: Stand, cluster: Cluster, nodes: Sequence[Node], kills: ScheduledKills) -> None:
    """Copy the log into the database, batch by batch. Every acknowledged batch is in the database's log once, in order."""
    client = stand.our_client(cluster, "v2")
    create_schema_when_ready(dsn_of(nodes))
    values, _ = stand.run(read_back(client))
    loader = FlightLoader(dsn_of(nodes), stand.new_folder() / "acknowledged.jsonl", kills.kill_if_due)
    size = FLIGHTS // BATCHES
    try:
        for batch in range(BATCHES):
            loader.load(batch, values[batch * size : (batch + 1) * size])
    finally:
        loader.close()
    assert loader.report.reconnects >= 1
    logged = stand.run(audit.logged_transactions(client, kills.database_log))
    assert audit.missing_transactions(loader.report.acknowledged, logged) == []
    epoch, _ = stand.run(audit.database_log_state(client, kills.database_log))
    assert epoch >= 2


def check_database(nodes: Sequence[Node], flights: Any) -> None:
    """Compare all rows with pandas, and the nodes' copies with each other."""
    left = flights[flights["dep_time"].notna()]
    wanted = [tuple(row[name] for name in COLUMNS) for row in left.astype(object).where(left.notna(), None).to_dict("records")]
    with psycopg.connect(dsn_of(nodes), autocommit=True, connect_timeout=3) as connection:
        order = ", ".join(FLIGHT_KEY)
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM flights ORDER BY {order}").fetchall()
        assert found == sorted(wanted, key=lambda row: tuple(row[COLUMNS.index(name)] for name in FLIGHT_KEY))
        late = connection.execute("SELECT count(*) FROM flights WHERE dep_delay > %s", (LATE_MINUTES,)).fetchone()
        assert late == (int((left["dep_delay"] > LATE_MINUTES).sum()),)
        cancelled: dict[str, int] = dict(connection.execute("SELECT carrier, flights FROM cancellations").fetchall())
    gone = flights[flights["dep_time"].isna()]
    assert cancelled == {str(carrier): int(count) for carrier, count in gone.groupby("carrier").size().items()}
    files = [database_file(node.folder, DATABASE) for node in nodes]
    complaints, _ = audit.compare_databases(files, timeout_s=LIMIT_S)
    assert complaints == []


def check_copies(stand: Stand, cluster: Cluster, killed: BookieProcess, database_log: str) -> None:
    """Read each living bookie separately: every entry of the two logs has a copy, and no two copies differ."""
    surviving = [bookie.bookie_id for bookie in cluster.bookies if bookie is not killed]
    copies = audit.CopyFindings()

    async def compare(client: Client) -> None:
        logs = Logs(client)
        for name in (LOG, database_log):
            for segment in await logs.segments(name):
                await audit.compare_ledger(client, segment.ledger_id, surviving, copies)

    stand.run(compare(stand.our_client(cluster, "v2")))
    assert copies.entries > 0
    assert copies.ensemble_changes >= 1
    assert (copies.differing, copies.without_copy, copies.details) == (0, 0, [])
