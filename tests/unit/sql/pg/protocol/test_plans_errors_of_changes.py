"""A change of constants in a simple query is not examined before it runs: its errors are those of the extended protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from tests.unit.sql.cluster import Cluster
from triplicate.sql import PostgresServer

LIMIT_S = 60.0
STATEMENTS = (
    "insert into t values (1, 'again')",
    "insert into t values (7, 'a', 3)",
    "insert into t(id, nothing) values (7, 'a')",
    "insert into missing values (1)",
    "insert into t values (7, 'text' || (select missing from t))",
    "insert into t values ('seven', 1)",
    "update t set name = upper(missing) where id = 1",
    "update t set name = nosuch('ä', id)  where id = 1",
    "delete from t where missing = 'é'",
    "delete from t where nosuch(id) = 1",
    "insert into triplicate_state values (1)",
    "update sqlite_schema set sql = ''",
    "insert into v values (1)",
    "insert into t select load_extension('x'), 'a'",
    "update t set name = name::text || 'a' where nosuch(id) = 1",
    "delete from t where id::text = '1' and missing = 'x'",
    "insert into t values ('a'::text || 1, nosuch(2))",
    "update t set name = 'x'::text, id = total(1)",
    "insert into t values (1::int, abs(1, 2, 3))",
)


def test_a_change_fails_in_a_simple_query_as_in_the_extended_protocol(tmp_path: Path) -> None:
    async def fields(connection: psycopg.AsyncConnection[object], sql: str, *, is_extended: bool) -> tuple[object, ...]:
        with pytest.raises(psycopg.Error) as caught:
            await connection.execute(sql.encode(), binary=is_extended)
        diagnostics = caught.value.diag
        return diagnostics.sqlstate, diagnostics.message_primary, diagnostics.statement_position, diagnostics.message_hint

    async def body() -> None:
        cluster = Cluster(tmp_path)
        await cluster.create()
        node = await cluster.start("n1")
        server = await PostgresServer.open(cluster.stage.host, node.databases, ("127.0.0.1", 0))
        try:
            await cluster.leader()
            host, port = server.address
            dsn = f"host={host} port={port} dbname=db user=me"
            async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
                await connection.execute("create table t(id integer primary key, name text)")
                await connection.execute("create view v as select id from t")
                await connection.execute(b"insert into t values (1, 'one')")
                for sql in STATEMENTS:
                    # For results in the binary format psycopg sends Parse and its kin, else a simple query.
                    simple = await fields(connection, sql, is_extended=False)
                    assert simple == await fields(connection, sql, is_extended=True), sql
                found = await (await connection.execute("select * from t")).fetchall()
                assert found == [(1, "one")]
        finally:
            await server.stop()
            await cluster.stop()

    asyncio.run(asyncio.wait_for(body(), LIMIT_S))
