"""A statement that needs more memory than SQLite may have fails alone, on a reader and on the writer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.unit.sql.cluster import Cluster, play, run, state_of
from triplicate.sql.storage import memory_limit

MIB = 1024 * 1024
LONG = "||".join(["replace(hex(zeroblob(4000000)), '0', 'x')"] * 20)
"""SQLite has its parts together, 8 to 64 MB each."""

CONNECTION = """
import apsw
from triplicate.sql import reserve_small_blocks
from triplicate.sql.executor.transaction_functions import TransactionContext
from triplicate.sql.storage.sqlite_file import open_reader
{first}
connection = open_reader(":memory:")
TransactionContext().register(connection)
rows = "with recursive r(v) as (select 1 union all select v + 1 from r limit 5000)"
connection.execute(rows + " select group_concat(quote(v) || ',' || quote(v)) from r").fetchall()
print(connection.status(apsw.SQLITE_DBSTATUS_LOOKASIDE_MISS_FULL)[1])
"""
"""Prints how many blocks the statement has asked of the C library, because the connection had none left."""


@pytest.fixture(autouse=True)
def no_limit_behind() -> Iterator[None]:
    yield
    apsw.hard_heap_limit(0)
    apsw.soft_heap_limit(0)


def test_a_statement_that_needs_too_much_memory_fails_alone(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        session, other = await database.session(), await database.session()
        await run(session, "create table t(a integer primary key, v text)")
        memory_limit.limit_memory(apsw.memory_used() + 96 * MIB)  # Earlier tests may have left connections.
        for statement in (f"select length({LONG})", f"insert into t(v) values ({LONG})", f"update t set v = {LONG}"):
            await run(other, "insert into t(v) values ('short')")
            assert await state_of(run(session, statement)) == "53200"
        await run(session, "begin")
        await run(session, "insert into t(v) values ('undone')")
        assert await state_of(run(session, f"insert into t(v) values ({LONG})")) == "53200"
        await run(session, "rollback")
        assert await run(other, "select v, count(*) from t group by v") == [("short", 3)]
        assert database.is_leader

    play(tmp_path, scene)


def test_the_limit_follows_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory_limit.limit_memory(10 * MIB) == 10 * MIB
    monkeypatch.setattr(memory_limit, "memory_of_machine", lambda: 64 * 1024 * MIB)
    assert memory_limit.limit_memory(0) == 8 * 1024 * MIB == apsw.hard_heap_limit(-1)
    monkeypatch.setattr(memory_limit, "memory_of_machine", lambda: 512 * MIB)
    assert memory_limit.limit_memory(0) == 256 * MIB


def test_a_container_has_less_than_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "less").write_text("1048576\n")
    monkeypatch.setattr(memory_limit, "_CONTAINER", (str(tmp_path / "max"), str(tmp_path / "absent")))
    assert memory_limit.memory_of_machine() > 64 * MIB
    monkeypatch.setattr(memory_limit, "_CONTAINER", (str(tmp_path / "max"), str(tmp_path / "less")))
    assert memory_limit.memory_of_machine() == MIB


def misses(first: str) -> int:
    program = CONNECTION.format(first=first)
    return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60).stdout)


def test_a_connection_of_a_server_has_small_blocks_left_beside_its_functions() -> None:
    assert misses("") > 5000
    assert misses("reserve_small_blocks()") < 50


def test_small_blocks_are_not_reserved_under_an_open_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with apsw.Connection(":memory:") as connection:
        monkeypatch.setattr(apsw, "shutdown", lambda: pytest.fail("SQLite is shut down under an open connection"))
        memory_limit.reserve_small_blocks()
        assert connection.execute("select 1").get == 1
