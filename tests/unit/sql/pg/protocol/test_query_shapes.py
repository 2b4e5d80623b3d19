"""Simple queries that share a plan: which do, and that their answers are those of plans of their own."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.unit.sql.cluster import Cluster
from tests.unit.sql.cluster import play as play_with_nodes
from tests.unit.sql.pg.raw_client import RawClient, query
from tests.unit.sql.pg.server_rig import Served, play, run
from triplicate.sql import PostgresServer
from triplicate.sql.core.lexer import Statement
from triplicate.sql.pg.protocol import plans, prepared_statements
from triplicate.sql.pg.protocol.query_shapes import QueryShape, shape_of

COLUMNS = {
    "i2": "smallint", "i4": "integer", "i8": "bigint", "n": "numeric", "n2": "numeric(8, 2)", "f4": "real", "f8": "double precision",
    "s": "text", "v": "varchar(9)", "b": "boolean", "d": "date", "ts": "timestamp", "tz": "timestamptz", "u": "uuid",
    "j": "jsonb", "y": "bytea",
}  # fmt: skip
ROWS = [
    "1, 1, 1, 1, 1, 1, 1, '1', '1', true, '2024-01-01', '2024-01-01 10:00', '2024-01-01 10:00', null, '1', '1'",
    "7, 7, 7, 7.5, 7.25, 7.5, 7, '7', '07', false, '2024-01-02', null, null, null, '7', '7'",
    "-3, 17, 3000000000, 17.0, 17, 16.999, 1e20, '17.0', ' 17', null, null, null, null, null, '{}', ''",
    "0, 0, 0, 0, 0, 0, 0, '0', '', true, null, null, null, null, 'null', null",
    "null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null",
    "32767, 999999999, 999999999, 999999999, 999999.99, 1e9, 999999999, '999999999', 'x', false, null, null, null, null, '[]', null",
]
LISTS = ("*", "i4", "i4, s, n2", "count(*)", "max(i8), sum(n)", "i4 as x, t.s", "distinct b")


async def answer(connection: psycopg.AsyncConnection[Any], sql: str) -> object:
    try:
        cursor = await connection.execute(sql.encode())
    except psycopg.Error as error:
        return error.sqlstate, str(error)
    described = [(column.name, column.type_code, column.precision, column.scale) for column in cursor.description or ()]
    return described, await cursor.fetchall(), cursor.statusmessage


def queries() -> list[str]:
    comparisons = [
        f"{column} {operator} {constant}"
        for column, operator, constant in itertools.product(
            (*COLUMNS, "nosuch"), ("=", "<>", "<", "<=", ">", ">="), (0, 1, 7, 17, 32768, 999999999)
        )
    ]
    lists = itertools.cycle(LISTS)
    pairs = zip(comparisons, [*comparisons[101:], *comparisons[:101]], strict=True)
    return [
        *(f"select {next(lists)} from t where {one}" for one in comparisons),
        *(f"SELECT {next(lists)} FROM t as t WHERE {one} AND t.{other} ;" for one, other in itertools.islice(pairs, 0, None, 3)),
        *(f"select i4, s from t where i4 {operator} 7 order by i4 desc, s limit 2" for operator in ("=", "<", ">=")),
        "select nosuch from t where i4 = 1",
        "select i4 from nosuch where i4 = 1",
        "select i4, sum(n) from t where i4 = 1",
        "select i4 from t where true = 1",
    ]


def test_queries_of_one_shape_are_answered_as_by_plans_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(served: Served) -> None:
        async with await served.psycopg(autocommit=True) as connection:
            await connection.execute(f"create table t({', '.join(f'{name} {declared}' for name, declared in COLUMNS.items())})")
            for row in ROWS:
                await connection.execute(f"insert into t values ({row})".encode())
            asked = queries()
            shaped = [await answer(connection, sql) for sql in asked]
            monkeypatch.setattr(prepared_statements, "shape_of", lambda _sql: None)
            for sql, found in zip(asked, shaped, strict=True):
                assert found == await answer(connection, sql), sql
            assert all(shape_of(sql) is not None for sql in asked)
            answered = [one for one in shaped if isinstance(one, tuple) and len(one) == 3]
            assert len(answered) > len(asked) / 3, "most comparisons of integers have an answer"

    run(body)


def test_queries_of_one_shape_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    original = plans._plan

    async def plan(session: Any, statement: Statement, *arguments: Any, **options: Any) -> plans.StatementPlan:
        planned.append(statement.sql)
        return await original(session, statement, *arguments, **options)

    monkeypatch.setattr(plans, "_plan", plan)

    async def body(client: RawClient, served: Served) -> None:
        await client.send(query("create table t(a int primary key)"))
        await client.send(query("insert into t values (1), (2), (3)"))
        planned.clear()
        for number in range(1, 4):
            answers = await client.send(query(f"select a from t where a = {number};"))
            assert answers[1:] == [f"D {number}", "C SELECT 1", "Z I"]
        assert planned == ["select a from t where a = $1"]

    play(body)


def test_a_wrong_query_fails_its_transaction_by_its_own_error(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.leader()
        server = await PostgresServer.open(cluster.stage.host, cluster.nodes["n1"].databases, ("127.0.0.1", 0))
        host, port = server.address
        dsn = f"host={host} port={port} dbname=db user=me"
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            await connection.execute(b"create table t(a int)")
            for statement in (b"begin", b"insert into t values (1)"):
                await connection.execute(statement)
            with pytest.raises(psycopg.errors.UndefinedColumn, match="nosuch"):
                await connection.execute(b"select a from t where nosuch = 1")
            await connection.execute(b"rollback")
        await server.stop()

    play_with_nodes(tmp_path, scene)


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        ("select a from t where id = 17", ("select a from t where id = $1", (17,))),
        (" SELECT a, b FROM s.t x WHERE x.id>=17 AND\n b <> 0 ; ", (" SELECT a, b FROM s.t x WHERE x.id>=$1 AND\n b <> $2 ; ", (17, 0))),
        ("select 1 from t where a = 2 order by b limit 3", ("select 1 from t where a = $1 order by b limit 3", (2,))),
    ],
)
def test_integers_that_are_compared_become_parameters(sql: str, shape: tuple[str, tuple[int, ...]]) -> None:
    assert shape_of(sql) == QueryShape(*shape)


@pytest.mark.parametrize(
    "sql",
    [
        "select a from t",
        "select a from t where id = 1234567890",
        "select a from t where id = -1",
        "select a from t where id = 017",
        "select a from t where id = 1.5",
        "select a from t where id = 1e3",
        "select a from t where id = 1::text",
        "select a from t where id = 1 + 1",
        "select a from t where id = 1 or id = 2",
        "select a from t where id = '1'",
        "select a from t where id = $1",
        "select a from t where id = 1; drop table t",
        "select a from t where id = 1 -- x",
        "select a from t where id = 1 order by 1",
        "select a from t where id = 1 group by a",
        "select a from t where id = 1 for update",
        "select a from t where id = 1 union select 2",
        "select a from t where 1 = id",
        "select a from t where a || b = 1",
        "select (select a from u where c = 1) from t where id = 2",
        "select 'x' from t where id = 1",
        "select a from t, u where id = 1",
        "select a from t join u on b = 1 where id = 2",
        "update t set a = 1 where id = 1",
        f"select {'a' * 1000} from t where id = 1",
    ],
)
def test_other_queries_keep_their_constants(sql: str) -> None:
    assert shape_of(sql) is None
