from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from triplicate.errors import ConfigError, NoSuchStore
from triplicate.kv import ALL_KEYS
from triplicate.testing import DatabaseOfTest, KeyValueOfTest, SharedCluster

TESTS = """
import sys

LOADED_EARLY = [name for name in ("triplicate.sql", "triplicate.embedded", "triplicate.kv") if name in sys.modules]


def test_a_log(triplicate_log):
    assert LOADED_EARLY == []
    with triplicate_log.logs.writer(triplicate_log.name, owner="test") as writer:
        writer.append(b"x")


def test_a_database(triplicate_database):
    triplicate_database.execute("create table t(a)")


def test_a_store(triplicate_key_value):
    triplicate_key_value.put(b"a", b"1")


def test_another_store(triplicate_key_value):
    assert triplicate_key_value.get(b"a").value is None


def test_another_database(triplicate_database, triplicate_cluster):
    triplicate_database.execute("create table t(a)")
    assert triplicate_database.execute("select * from t").rows == []
    assert [name for name in triplicate_cluster.logs.names() if not name.startswith("database.")] == []
"""


def test_the_plugin_brings_fixtures_and_loads_little(tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text(TESTS, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-W",
        "error",
        "-p",
        "no:cacheprovider",
        "-p",
        "triplicate.testing.plugin",
        str(tmp_path),
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, "5 passed" in run.stdout) == (0, True), run.stdout + run.stderr


def test_the_package_has_no_entry_point_of_pytest() -> None:
    """With one, pytest rewrites the assertions of every module of the package, in the runs of those too who do not use the fixtures."""
    project = (Path(__file__).resolve().parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    assert "pytest11" not in project


def test_a_database_is_reached_by_postgresqls_protocol_and_by_db_api(triplicate_database: DatabaseOfTest) -> None:
    import psycopg

    triplicate_database.execute("create table t(a integer)")
    with psycopg.connect(triplicate_database.dsn(user="app")) as client:
        client.execute("insert into t values (%s)", (1,))
    connection = triplicate_database.connect()
    assert connection.execute("select a from t").fetchall() == [(1,)]
    assert triplicate_database.address is not None
    port = triplicate_database.address[1]
    assert connection.dsn() == f"host=127.0.0.1 port={port} dbname={triplicate_database.name} target_session_attrs=read-write"
    connection.close()


def test_a_store_is_reached_by_clients_of_redis_and_by_its_methods(triplicate_key_value: KeyValueOfTest) -> None:
    import redis

    with redis.Redis.from_url(triplicate_key_value.url()) as client:
        client.set("a", "1")
        client.incr("n")
    assert (triplicate_key_value.get(b"a").value, triplicate_key_value.get(b"b").value) == (b"1", None)
    assert triplicate_key_value.run(lambda store: store.count(ALL_KEYS)).number == 2
    assert triplicate_key_value.delete(b"a", b"n", b"b")[0] == 2


def test_a_cluster_without_a_port_has_stores_that_nobody_connects_to() -> None:
    with SharedCluster() as cluster:
        first, second = cluster.new_key_value(), cluster.new_key_value()
        first.put(b"a", b"1")
        assert (first.get(b"a").value, second.get(b"a").value) == (b"1", None)
        with pytest.raises(ConfigError, match="without a port"):
            first.url()
        first.drop()
        with pytest.raises(NoSuchStore):
            first.drop()


def test_a_cluster_may_have_several_bookies() -> None:
    with SharedCluster(bookies=3) as cluster:
        log = cluster.new_log()
        head = cluster.logs.head(log.name)
        assert head.settings.write_quorum == 3
        with log.logs.writer(log.name, owner="test") as writer:
            assert writer.append(b"x") >= 0
