"""Finding the leader or a follower by standard connection strings, and a session's reported parameters."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import psycopg
import pytest

from tests.clients.stand import READY_S, Db, run
from tests.waiting import wait_until


def port_of(connection: psycopg.Connection[Any]) -> int:
    return connection.info.port


def test_read_write_finds_the_leader_whatever_the_order(shared: Db) -> None:
    leader = shared.stand.ports[shared.leader()]
    names = list(shared.stand.ports)
    for turn in range(len(names)):
        order = names[turn:] + names[:turn]
        with psycopg.connect(shared.dsn("read-write", nodes=order)) as connection:
            assert port_of(connection) == leader
        answer = subprocess.run(
            ["psql", shared.dsn("read-write", nodes=order), "-XAqt", "-c", "SHOW transaction_read_only", "-c", "\\echo :PORT"],
            capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert answer.stdout.splitlines() == ["off", str(leader)]


@pytest.mark.parametrize("attributes", ["standby", "read-only", "prefer-standby"])
def test_standby_finds_a_follower(shared: Db, attributes: str) -> None:
    leader = shared.stand.ports[shared.leader()]
    with shared.connect(attributes) as connection:
        assert port_of(connection) != leader
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
        assert connection.execute("SHOW in_hot_standby").fetchone() == ("on",)
        assert connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)
    answer = shared.psql("-c", "SHOW in_hot_standby", attributes=attributes)
    assert answer.stdout == "on\n"


@pytest.mark.parametrize("attributes", ["read-write", "primary"])
def test_the_leader_says_that_it_is_one(shared: Db, attributes: str) -> None:
    with shared.connect(attributes) as connection:
        assert connection.info.parameter_status("in_hot_standby") == "off"
        assert connection.info.parameter_status("default_transaction_read_only") == "off"
        assert connection.info.parameter_status("server_version") == "15.0"
        assert connection.info.server_version == 150000
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("off",)
        assert connection.execute("SELECT pg_is_in_recovery(), current_database()").fetchone() == (False, "shared")


def test_asyncpg_finds_leader_and_follower(shared: Db) -> None:
    async def body() -> None:
        for attributes, read_only in (("read-write", "off"), ("primary", "off"), ("standby", "on"), ("read-only", "on")):
            connection = await shared.asyncpg(attributes)
            assert await connection.fetchval("SHOW transaction_read_only") == read_only
            assert connection.get_settings().in_hot_standby == read_only
            assert connection.get_server_version()[:2] == (15, 0)
            await connection.close()

    run(body())


def test_no_leader_among_the_hosts_is_an_error(shared: Db) -> None:
    followers = shared.followers()
    with pytest.raises(psycopg.OperationalError, match=r"read-only|hot standby"):
        psycopg.connect(shared.dsn("read-write", nodes=followers))


def test_a_follower_reads_at_its_own_position(shared: Db, table: str) -> None:
    with shared.connect() as connection:
        connection.execute(f"CREATE TABLE {table} (a INTEGER)".encode())
        connection.execute(f"INSERT INTO {table} VALUES (42)".encode())
    for follower in shared.followers():
        shared.wait_for_value(follower, f"SELECT a FROM {table}", 42)
    leader = shared.leader()
    wait_until(lambda: all(node.position > 0 for node in shared.info().nodes), READY_S, "every node has reported how far it is")
    for node in shared.info().nodes:
        assert node.address == f"127.0.0.1:{shared.stand.ports[node.node_id]}"
    assert shared.info().leader == leader


def test_a_session_keeps_its_settings_until_reset(shared: Db) -> None:
    with psycopg.connect(shared.dsn() + " application_name=mine options=''", autocommit=True) as connection:
        assert connection.execute("SHOW application_name").fetchone() == ("mine",)
        connection.execute("SET application_name TO 'another'")
        assert connection.info.parameter_status("application_name") == "another"
        connection.execute("RESET application_name")
        assert connection.execute("SHOW application_name").fetchone() == ("mine",)
        connection.execute("SET TIME ZONE 'UTC'")
        rows = {name: value for name, value, _ in connection.execute("SHOW ALL").fetchall()}
        assert rows["TimeZone"] == "UTC"


def test_the_small_prompt_and_psql_open_the_same_database(shared: Db, table: str) -> None:
    command = [sys.executable, "-m", "triplicate.cli.main", "sql", "--metadata", shared.stand.uri, "shared"]
    make = [*command, "-c", f"CREATE TABLE {table} (a INTEGER)", "-c", f"INSERT INTO {table} VALUES (1), (2)"]
    assert subprocess.run(make, capture_output=True, text=True, timeout=60, check=True).returncode == 0
    small = subprocess.run(
        [*command, "--small"],
        input=f"SELECT sum(a)\n FROM {table};\nSELECT * FROM nowhere;\nSELECT 'last'",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert small.returncode == 0, small.stderr
    assert "3" in small.stdout
    assert "last" in small.stdout
    assert "42P01" in small.stderr


def test_a_position_is_handed_over_to_a_connection_to_another_node(shared: Db) -> None:
    with shared.connect("read-write", autocommit=True) as writer, shared.connect("standby", autocommit=True) as reader:
        writer.execute("CREATE TABLE IF NOT EXISTS handed(a int)")
        reader.execute("SET triplicate.read_level = 'session'")
        for number in range(1, 11):
            writer.execute("INSERT INTO handed VALUES (%s)", (number,))
            row = writer.execute("SELECT triplicate_position()").fetchone()
            assert row is not None
            reader.execute(f"SET triplicate.read_position = {row[0]}")
            assert reader.execute("SELECT count(*), triplicate_position() >= %s FROM handed", row).fetchone() == (number, True)
        reader.execute("SET triplicate.read_level = 'bounded'")
        recent = reader.execute("SELECT triplicate_read_age() BETWEEN 0 AND 10, triplicate_read_node()").fetchone()
        assert recent is not None
        assert recent[0] is True
        assert recent[1] in shared.stand.ports
        reader.execute("SET triplicate.read_level = 'linearizable'")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            reader.execute("SELECT count(*) FROM handed")
        writer.execute("DROP TABLE handed")
