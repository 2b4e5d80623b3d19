"""The metadata store stands still for longer than any session: database nodes keep serving, and recover without help afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apsw
import psutil
import psycopg
import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import Up, started
from tests.process.traffic import Traffic
from tests.waiting import wait_until

OUTAGE_S = float(os.environ.get("OUTAGE_S", "20"))
"""``OUTAGE_S=60 pytest tests/process/test_nodes_outlive_zookeeper.py`` shows the same for a minute. Sessions last 10 s."""

SESSION_S = 10.0
LONG_SESSION_S = 40.0
"""The longest session that ZooKeeper grants by default."""
AFTERWARDS_S = 30.0
"""Limit for every process to open a new session, also on a busy machine."""


@contextmanager
def zookeeper_held(up: Up) -> Iterator[None]:
    """ZooKeeper's process is stopped (SIGSTOP), and its connections stay open."""
    (java,) = psutil.Process(up.members["zookeeper"]["pid"]).children()
    java.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        java.send_signal(signal.SIGCONT)


@contextmanager
def file_locked(up: Up) -> Iterator[None]:
    """Another process locks the embedded store's file against writes."""
    connection = apsw.Connection(up.uri.removeprefix("sqlite://"))
    connection.set_busy_timeout(10_000)
    connection.execute("begin exclusive")
    try:
        yield
    finally:
        connection.execute("rollback")
        connection.close()


def dsn(up: Up, attributes: str = "read-write") -> str:
    nodes = json_at_once("database", "show", "shop", uri=up.uri)["nodes"]
    places = [one["address"].rpartition(":") for one in nodes]
    hosts, ports = ",".join(host for host, _, _ in places), ",".join(port for _, _, port in places)
    return f"host={hosts} port={ports} dbname=shop user=me target_session_attrs={attributes}"


def copies(up: Up) -> list[tuple[str, int]]:
    return [(one["role"], one["position"]) for one in json_at_once("database", "show", "shop", uri=up.uri)["nodes"]]


def made(up: Up) -> str:
    """Make a database with a table and three copies; return its connection string."""
    at_once("database", "create", "shop", uri=up.uri)
    wait_until(lambda: len(copies(up)) == 3 and "leader" in dict(copies(up)), AFTERWARDS_S, "three nodes hold the database")
    with psycopg.connect(dsn(up), autocommit=True) as connection:
        connection.execute("create table t(id integer primary key)")
    return dsn(up)


@pytest.mark.parametrize(("store", "held"), [("zk", zookeeper_held), pytest.param("sqlite", file_locked, marks=pytest.mark.deep)])
def test_databases_keep_serving_while_the_metadata_store_is_stopped(
    tmp_path: Path, store: str, held: Callable[[Up], AbstractContextManager[None]]
) -> None:
    with Up(tmp_path / "c", "--metadata", store, "--bookies", "3", "--nodes", "3") as up:
        outlive(up, held)


def outlive(up: Up, held: Callable[[Up], AbstractContextManager[None]]) -> None:
    place = made(up)
    before = up.alive()
    with Traffic(place) as traffic:
        wait_until(lambda: len(traffic.acknowledged) > 20 and len(traffic.reads) > 20, AFTERWARDS_S, "writes and reads are answered")
        with held(up):
            began_s = time.monotonic()
            while time.monotonic() < began_s + OUTAGE_S:
                assert up.alive() == before
                time.sleep(0.5)
            ended_s = time.monotonic()
        # Every session has expired by then, and every operation on the metadata has failed at least once.
        late_s = began_s + SESSION_S + 5
        assert traffic.written_between(late_s, ended_s) > 0, traffic.errors[-3:]
        assert traffic.read_between(late_s, ended_s) > 0, traffic.errors[-3:]
        after_s = time.monotonic()
        wait_until(lambda: traffic.written_between(after_s, time.monotonic()) > 20, AFTERWARDS_S, "writes are answered afterwards")
        time.sleep(SESSION_S)
        later_s = time.monotonic()
        wait_until(lambda: traffic.written_between(later_s, time.monotonic()) > 20, AFTERWARDS_S, "writes are answered later, too")
    assert up.alive() == before
    with psycopg.connect(dsn(up), autocommit=True) as connection:
        rows = {row[0] for row in connection.execute("select id from t").fetchall()}
    assert set(traffic.acknowledged) <= rows <= set(traffic.acknowledged) | traffic.unknown
    wait_until(lambda: sorted(role for role, _ in copies(up)) == ["follower", "follower", "leader"], AFTERWARDS_S, "all are registered")
    wait_until(lambda: len({position for _, position in copies(up)}) == 1, AFTERWARDS_S, "all copies are equally far")
    assert up.alive() == before


@contextmanager
def node_with_a_long_session(uri: str, folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    options = ["--node-id", name, "--directory", str(folder / name), "--port", "0", "--process-log-level", "error"]
    options += ["--metadata-session-timeout-s", str(LONG_SESSION_S)]
    with started("node", *options, uri=uri) as node:
        yield node


def test_another_node_leads_before_a_dead_leaders_session_expires(tmp_path: Path) -> None:
    with (
        Up(tmp_path / "c", "--metadata", "zk", "--bookies", "3", "--nodes", "0") as up,
        node_with_a_long_session(up.uri, tmp_path, "a") as a,
        node_with_a_long_session(up.uri, tmp_path, "b") as b,
    ):
        at_once("database", "create", "shop", uri=up.uri)
        wait_until(lambda: sorted(role for role, _ in copies(up)) == ["follower", "leader"], AFTERWARDS_S, "two nodes hold the database")
        place = dsn(up)
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute("create table t(id integer primary key)")
        with Traffic(place) as traffic:
            wait_until(lambda: len(traffic.acknowledged) > 50, AFTERWARDS_S, "writes are answered")
            first = json_at_once("database", "show", "shop", uri=up.uri)["leader"]
            {"a": a, "b": b}[first].kill()
            died_s = time.monotonic()
            wait_until(lambda: traffic.written_between(died_s + 0.1, time.monotonic()) > 0, LONG_SESSION_S, "writes are answered again")
            assert time.monotonic() < died_s + LONG_SESSION_S * 0.6
            shown = json_at_once("database", "show", "shop", uri=up.uri)
            assert shown["leader"] != first
            assert len(shown["nodes"]) == 2, "the dead node's session lives"
            with node_with_a_long_session(up.uri, tmp_path, first):
                wait_until(lambda: sorted(role for role, _ in copies(up)) == ["follower", "leader"], AFTERWARDS_S, "both serve")
        with psycopg.connect(dsn(up), autocommit=True) as connection:
            rows = {row[0] for row in connection.execute("select id from t").fetchall()}
        assert set(traffic.acknowledged) <= rows <= set(traffic.acknowledged) | traffic.unknown
