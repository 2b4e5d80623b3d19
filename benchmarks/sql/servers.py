"""The sides: database nodes before and now, PostgreSQL with a synchronous standby, and plain SQLite."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psycopg

from benchmarks import snapshots
from benchmarks.histories.cluster import LocalCluster, wait_for
from benchmarks.ledger.processes import ROOT, STOP_LIMIT_S, CaseFailed, Process, free_port
from benchmarks.node_load import with_client
from benchmarks.sql.pgbench import TABLES
from benchmarks.sql.targets import BEFORE, NOW, POSTGRES, SQLITE
from tests.differential.servers import account, find_postgresql

DATABASE = "bench"
USER = "bench"
CONNECTIONS = 2_500
"""`node.connections` of our nodes: the case with most connections opens 2,000."""
START_LIMIT_S = 60.0
COMMAND_LIMIT_S = 120.0
LEDGER_LIMIT_S = 60.0


class RunningLeader(NamedTuple):
    """The process id of the leader's node, and the ports of the other nodes that run."""

    pid: int
    others: list[int]


class LogTotals(NamedTuple):
    """Groups of transactions, bytes and records that a leader has appended to the log of its database.

    Each group is one entry. The bytes include no-ops, which are entries without records.
    """

    groups: float
    bytes: float
    records: float

    def since(self, earlier: LogTotals) -> LogTotals:
        """The difference."""
        return LogTotals(*(now - then for now, then in zip(self, earlier, strict=True)))


Server = TypeVar("Server", bound="SqlServer")


class SqlServer(ABC):
    """One side while it runs. Use it as a context manager.

    Args:
        folder: for its data; made by the caller, and deleted by it.
        environment: variables of its processes.
    """

    leader_port = 0
    follower_port = 0

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.folder = folder
        self.environment = environment

    def __enter__(self: Server) -> Server:
        try:
            self.start()
            self._make_tables()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Start the processes, and set both ports."""

    @abstractmethod
    def stop(self) -> None:
        """End the processes. Idempotent."""

    @abstractmethod
    def nodes(self) -> dict[int, int]:
        """Process id of each node by its port."""

    @abstractmethod
    def bookies(self) -> list[int]:
        """Process ids of the bookies."""

    def find_roles(self) -> None:  # noqa: B027  roles never change but on our nodes
        """Set both ports again where the leader may have changed."""

    def keep_logs(self, folder: Path) -> None:
        """Copy the logs of the processes to a folder that outlasts the data."""
        for log in (*self.folder.glob("*.log"), *self.folder.glob("*/*/log")):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, folder / "-".join(log.relative_to(self.folder).parts))

    def leader_of_cluster(self) -> RunningLeader:
        """The present leader, for a take-over."""
        raise CaseFailed(f"{self.name} has no take-over")

    def appended(self) -> LogTotals | None:
        """Totals of the leader's appends to the log; None for other servers."""
        return None

    def position(self) -> int:
        """The position of what the leader has acknowledged until now."""
        raise CaseFailed(f"{self.name} has no positions")

    def snapshot(self) -> None:
        """Have a snapshot of the database made; returns when it is listed."""
        raise CaseFailed(f"{self.name} has no snapshots")

    def append_to_ledger(self, size: int, window: int, seconds: float) -> dict[str, float]:
        """The load of `benchmarks/append.py` on this side's bookies: appends_per_s, p50_ms."""
        raise CaseFailed(f"{self.name} has no ledgers")

    def connect(self, port: int = 0) -> psycopg.Connection[Any]:
        """A connection, without a port to the leader."""
        port = port or self.leader_port
        return psycopg.connect(f"host=127.0.0.1 port={port} dbname={DATABASE} user={USER} connect_timeout=10", autocommit=True)

    def _make_tables(self) -> None:
        with self.connect() as connection:
            for statement in TABLES:
                connection.execute(statement.encode())
        wait_for(self._follower_has_rows, "the follower has the tables", START_LIMIT_S)

    def _follower_has_rows(self) -> bool:
        with self.connect(self.follower_port) as connection:
            return connection.execute("SELECT count(*) > 0 FROM accounts").fetchone() == (True,)


class Nodes(SqlServer):
    """Three database nodes and three bookies as processes, with their metadata in the embedded store.

    Args:
        source: the ``src`` folder of the state of the code.
    """

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str], source: Path) -> None:
        more = {"PYTHONPATH": str(source), "TRIPLICATE_NODE_CONNECTIONS": str(CONNECTIONS)}
        super().__init__(name, folder, {**environment, **more})
        self._source = source
        self._cluster: LocalCluster | None = None
        self._started: dict[str, Process] = {}
        """By name: nodes that were started beside those of `triplicate up`."""

    @property
    def cluster(self) -> LocalCluster:
        if self._cluster is None:
            raise CaseFailed(f"the cluster of {self.name} does not run")
        return self._cluster

    def start(self) -> None:
        self._cluster = LocalCluster(self.folder / "c", bookies=3, nodes=3, environment=self.environment, restart=False)
        self.cluster.command("database", "create", DATABASE)
        self.find_roles()

    def find_roles(self) -> None:
        leader = wait_for(lambda: self.cluster.leader(DATABASE), "a node leads", START_LIMIT_S)
        self.leader_port = self.cluster.ports[leader]
        running = self._running()
        self.follower_port = next((port for name, port in self.cluster.ports.items() if name != leader and name in running), 0)

    def _running(self) -> dict[str, int]:
        """Process ids by name."""
        return {**self.cluster.processes(), **{name: process.pid for name, process in self._started.items()}}

    def stop(self) -> None:
        for process in self._started.values():
            process.kill()
        self._started.clear()
        if self._cluster is not None:
            cluster, self._cluster = self._cluster, None
            cluster.__exit__(None, None, None)

    def nodes(self) -> dict[int, int]:
        return {self.cluster.ports[name]: pid for name, pid in self._running().items() if name in self.cluster.ports}

    def bookies(self) -> list[int]:
        return [pid for name, pid in self.cluster.processes().items() if name in self.cluster.bookies]

    def leader_of_cluster(self) -> RunningLeader:
        leader = wait_for(lambda: self.cluster.leader(DATABASE), "a node leads", START_LIMIT_S)
        running = self._running()
        return RunningLeader(running[leader], [port for name, port in self.cluster.ports.items() if name in running and name != leader])

    def name_at(self, port: int) -> str:
        """The node at a port."""
        return next(name for name, at in self.cluster.ports.items() if at == port)

    def kill_node(self, name: str) -> None:
        """SIGKILL to a node; returns when it has ended."""
        started = self._started.pop(name, None)
        if started is not None:
            started.kill()
            return
        self.cluster.send(name, signal.SIGKILL)
        wait_for(lambda: name not in self.cluster.processes(), f"{name} has ended", START_LIMIT_S)

    def start_node(self, name: str, port: int | None = None) -> int:
        """Start a node without waiting: one of the cluster's again, or with a port a new one that has no files. Returns its process id."""
        own = ["--config", str(self.folder / "c" / name / "node.toml")]
        new = ["--metadata", self.cluster.uri, "--node-id", name, "--directory", str(self.folder / name), "--port", str(port)]
        command = [sys.executable, "-m", "triplicate.cli.main", "node", *(own if port is None else new)]
        self._started[name] = Process(name, command, self.folder / f"{name}.log", environment=self.environment)
        return self._started[name].pid

    def position(self) -> int:
        with self.connect() as connection:
            (found,) = connection.execute("SELECT triplicate_position()").fetchone() or (0,)
        return int(found)

    def snapshot(self) -> None:
        with_client(self.cluster.uri, lambda client: snapshots.snapshot(client, DATABASE))

    def appended(self) -> LogTotals:
        name = self.name_at(self.leader_port)
        text = urllib.request.urlopen(self.cluster.metrics[name], timeout=10).read().decode()
        with self.connect() as connection:
            (groups,) = connection.execute("SELECT batch FROM triplicate_state").fetchone() or (0,)
        return LogTotals(groups, *(metric_sum(text, f"triplicate_log_{kind}_appended_total") for kind in ("bytes", "records")))

    def append_to_ledger(self, size: int, window: int, seconds: float) -> dict[str, float]:
        command = [
            sys.executable,
            str(ROOT / "benchmarks" / "append.py"),
            "--client",
            self.cluster.uri,
            str(size),
            str(window),
            str(seconds),
        ]
        client = Process("ledger client", command, self.folder / "ledger.log", stdout=subprocess.PIPE, environment=self.environment)
        try:
            answer, _ = client.popen.communicate(timeout=LEDGER_LIMIT_S)
        finally:
            client.kill()
        if client.popen.returncode:
            raise CaseFailed(f"appends to a ledger: {client.last_words()}")
        figures: dict[str, float] = json.loads(answer)
        return figures


class Postgres(SqlServer):
    """PostgreSQL and one synchronous standby. Commits wait until the standby has flushed them (``synchronous_commit=on``)."""

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(name, folder, {**environment, "LC_ALL": "C", "TZ": "UTC"})
        self.programs = postgres_programs()
        self._servers: list[PostgresProcess] = []
        self.leader_port, self.follower_port = free_port(), free_port()

    def start(self) -> None:
        self._run("initdb", "-D", str(self.folder / "primary"), "-U", USER, "-A", "trust", "--locale=C", "-E", "UTF8", "--no-sync")
        self._serve("primary", self.leader_port, "synchronous_standby_names=standby", "synchronous_commit=on")
        place = f"host=127.0.0.1 port={self.leader_port} user={USER}"
        wait_for(lambda: self._answer("SELECT true"), "PostgreSQL serves", START_LIMIT_S)
        self._run("pg_basebackup", "-D", str(self.folder / "standby"), "-d", place, "-X", "stream", "-c", "fast", "--no-sync")
        (self.folder / "standby" / "standby.signal").touch()
        self._serve("standby", self.follower_port, f"primary_conninfo={place} application_name=standby", "hot_standby=on")
        wait_for(
            lambda: self._answer("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"),
            "the standby follows",
            START_LIMIT_S,
        )
        with psycopg.connect(f"{place} dbname=postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}".encode())

    def _answer(self, question: str) -> bool:
        with psycopg.connect(f"host=127.0.0.1 port={self.leader_port} user={USER} dbname=postgres", autocommit=True) as connection:
            return connection.execute(question.encode()).fetchone() == (True,)

    def _serve(self, name: str, port: int, *settings: str) -> None:
        command = [str(self.programs / "postgres"), "-D", str(self.folder / name), "-p", str(port)]
        for setting in ("listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300", *settings):
            command += ["-c", setting]
        self._servers.append(PostgresProcess(name, command, self.folder / f"{name}.log", environment=self.environment, account=account()))

    def _run(self, program: str, *arguments: str) -> None:
        process = PostgresProcess(
            program,
            [str(self.programs / program), *arguments],
            self.folder / f"{program}.log",
            environment=self.environment,
            account=account(),
        )
        try:
            code = process.popen.wait(COMMAND_LIMIT_S)
        finally:
            process.kill()
        if code:
            raise CaseFailed(f"{program}: {process.last_words()}")

    def stop(self) -> None:
        for server in reversed(self._servers):
            server.stop()
        self._servers.clear()

    def nodes(self) -> dict[int, int]:
        return {}

    def bookies(self) -> list[int]:
        return []


class PostgresProcess(Process):
    """A program of PostgreSQL's, which does not run as root."""

    def stop(self) -> None:
        """End it at once but in order (fast shutdown); by SIGQUIT if that takes too long. PostgreSQL never needs SIGKILL."""
        for number in (signal.SIGINT, signal.SIGQUIT):
            if self.is_running:
                self.popen.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.popen.wait(STOP_LIMIT_S)
        self.kill()


def postgres_programs() -> Path:
    """The folder of PostgreSQL's programs, pgbench among them.

    Raises:
        CaseFailed: it is not installed.
    """
    programs = find_postgresql()
    if programs is None or not (programs / "pgbench").exists():
        raise CaseFailed("PostgreSQL's server and pgbench are missing (Debian: apt-get install postgresql)")
    return programs


class PlainSqlite(SqlServer):
    """SQLite without a server: the program `plain_sqlite` runs the cases itself."""

    def _make_tables(self) -> None:
        """The program makes its own."""

    def start(self) -> None:
        """Nothing runs between cases."""

    def stop(self) -> None:
        """Nothing runs between cases."""

    def nodes(self) -> dict[int, int]:
        return {}

    def bookies(self) -> list[int]:
        return []


def metric_sum(text: str, name: str) -> float:
    """The sum of a metric over its labels, from Prometheus' text format."""
    lines = (line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{")))
    return sum(float(line.rpartition(" ")[2]) for line in lines)


@contextlib.contextmanager
def data_folder(base: Path) -> Any:
    """A new folder for the data of a side that PostgreSQL's user may enter, deleted in the end.

    Below `base` if any user may pass through the folders above it, else in the system's folder for temporary files.
    """
    base.mkdir(parents=True, exist_ok=True)
    is_open = all(path.stat().st_mode & 0o001 for path in (base, *base.resolve().parents))
    folder = Path(tempfile.mkdtemp(prefix="side-", dir=base if is_open else None))
    user = account()
    if user:
        shutil.chown(folder, user["user"], user["group"])
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def checked_out(commit: str, folder: Path) -> Path:
    """The sources of a commit, in a separate folder.

    Raises:
        CaseFailed: git does not have the commit.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise CaseFailed(f"the code of {commit} cannot be read: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def make_server(side: str, folder: Path, environment: Mapping[str, str], sources: Mapping[str, Path]) -> SqlServer:
    """The side of a name."""
    if side == POSTGRES:
        return Postgres(side, folder, environment)
    if side == SQLITE:
        return PlainSqlite(side, folder, environment)
    return Nodes(side, folder, environment, sources[side])


__all__ = ["BEFORE", "NOW", "Nodes", "Postgres", "SqlServer", "checked_out", "data_folder", "make_server", "postgres_programs"]
