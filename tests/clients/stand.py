"""Shared helpers of this folder: one cluster of real processes, and connections to its databases with each client."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import psutil
import psycopg

from tests.waiting import LIMIT_S, wait_until
from triplicate.cli import LocalCluster, run_loop
from triplicate.client import Client, connect
from triplicate.sql import DatabaseInfo, create_database, database_info

Result = TypeVar("Result")

READY_S = 30.0
"""Limit of a take-over on a busy machine, in seconds; it includes the ten seconds until a silent session expires."""
PSQL_S = 60.0


class Stand:
    """The cluster, and its databases by name."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.uri = cluster.folder.metadata_uri
        self.ports = {member.name: member.port for member in cluster.folder.members if member.kind == "node"}

    def with_client(self, body: Callable[[Client], Awaitable[Result]]) -> Result:
        async def main() -> Result:
            async with connect(self.uri) as client:
                return await body(client)

        return run_loop(main())

    def create(self, name: str) -> Db:
        """Make a database and wait until a node leads it."""
        self.with_client(lambda client: create_database(client, name))
        database = Db(self, name)
        database.writable().close()
        return database

    # The processes.

    def pid(self, member: str) -> int:
        return self.cluster.running[member].process.pid

    def kill(self, member: str) -> None:
        self.cluster.kill(member)

    def start(self, member: str) -> dict[str, Any]:
        """Restart a killed process; return its output up to its readiness."""
        self.cluster.start(member)
        return self.cluster.running[member].facts

    @contextlib.contextmanager
    def stopped(self, *members: str) -> Iterator[None]:
        """Stop processes (SIGSTOP), as on a suspended machine."""
        pids = [self.pid(member) for member in members]
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            # The signal is asynchronous: a thread on another processor continues for a moment.
            wait_until(lambda: all(psutil.Process(pid).status() == psutil.STATUS_STOPPED for pid in pids), LIMIT_S, "they stand still")
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


class Db:
    """One database."""

    def __init__(self, stand: Stand, name: str) -> None:
        self.stand = stand
        self.name = name

    def dsn(self, attributes: str = "read-write", *, nodes: list[str] | None = None) -> str:
        """A libpq connection string with these nodes, or all nodes if none is given."""
        ports = [self.stand.ports[name] for name in nodes or list(self.stand.ports)]
        hosts = ",".join("127.0.0.1" for _ in ports)
        listed = ",".join(str(port) for port in ports)
        return f"host={hosts} port={listed} dbname={self.name} user=tester connect_timeout=3 target_session_attrs={attributes}"

    def info(self) -> DatabaseInfo:
        return self.stand.with_client(lambda client: database_info(client, self.name))

    # psycopg.

    def connect(self, attributes: str = "read-write", **options: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn(attributes), **{"autocommit": True, **options})

    def connect_to(self, node: str, **options: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn("any", nodes=[node]), **{"autocommit": True, **options})

    async def connect_async(self, **options: Any) -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(self.dsn(), **{"autocommit": True, **options})

    def writable(self, timeout_s: float = READY_S) -> psycopg.Connection[Any]:
        """A connection to the leader; waits for one."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return self.connect()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, f"no node leads {self.name} after {timeout_s} s"
                time.sleep(0.05)

    # asyncpg.

    def addresses(self) -> dict[str, Any]:
        ports = list(self.stand.ports.values())
        return {"host": ["127.0.0.1"] * len(ports), "port": ports, "database": self.name, "user": "tester"}

    async def asyncpg(self, attributes: str = "read-write", **options: Any) -> Any:
        return await asyncpg.connect(**self.addresses(), target_session_attrs=attributes, **{"timeout": 10, **options})

    # psql.

    def psql(self, *arguments: str, text: str = "", attributes: str = "read-write") -> subprocess.CompletedProcess[str]:
        """Run psql: plain output, one row a line, columns separated by ``|``."""
        command = ["psql", self.dsn(attributes), "-X", "-q", "-A", "-t", *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=PSQL_S, check=False)

    # Nodes.

    def leader(self) -> str:
        """The node that accepts writes now."""
        with self.writable() as connection:
            port = connection.info.port
        return next(name for name, known in self.stand.ports.items() if known == port)

    def followers(self) -> list[str]:
        leader = self.leader()
        return [name for name in self.stand.ports if name != leader]

    def wait_for_position(self, node: str, leader: psycopg.Connection[Any]) -> None:
        """Wait until a node's own copy has everything that the leader has now."""
        row = leader.execute("SELECT triplicate_position()").fetchone()
        assert row is not None
        self.wait_for_value(node, f"SELECT triplicate_position() >= {row[0]}", True)

    def wait_for_value(self, node: str, query: str, value: object, timeout_s: float = READY_S) -> None:
        """Wait until a node's own copy gives this answer to a query."""

        def answers() -> bool:
            try:
                with self.connect_to(node) as connection:
                    row = connection.execute(query.encode()).fetchone()
            except psycopg.Error:
                return False  # The node is not up yet, or has not applied the table yet.
            return row is not None and row[0] == value

        wait_until(answers, timeout_s, f"{node} answers {query} with {value!r}")


def unique(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:8]}"


def count_rows(connection: psycopg.Connection[Any], table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def run(body: Coroutine[Any, Any, Result], timeout_s: float = 60.0) -> Result:
    """Run a coroutine with a limit."""
    import asyncio

    return asyncio.run(asyncio.wait_for(body, timeout_s))


def sqlstate_of(action: Callable[[], object]) -> str | None:
    """The SQLSTATE that psycopg raises for an action; fails if the action succeeds."""
    try:
        action()
    except psycopg.Error as error:
        return error.sqlstate
    raise AssertionError("it was not refused")


READERS = 8


def set_limits(folder: Path) -> None:
    """Shorter time-outs for stopped bookies, so that tests of lost answers stay short; few readers, so that a leaked one shows."""
    for config in folder.glob("node-*/node.toml"):
        text = config.read_text().replace("[node]\n", f"[node]\nreader_connections = {READERS}\n")
        config.write_text(text + "\n[client]\nadd_timeout_s = 2.0\n\n[log_client]\nrepair_timeout_s = 4.0\n")
