"""A parameter whose type the client declares is converted to the type of its column, as PostgreSQL casts on assignment."""

from __future__ import annotations

import pytest

from tests.unit.sql.pg.raw_client import SYNC, RawClient, bind, execute, parse, query
from tests.unit.sql.pg.server_rig import Served, play
from triplicate.sql.pg.values import types

SCHEMA = """create table t (id int primary key, s text, v varchar(40), x bigint, n numeric, m numeric(9,2), d date, ts timestamp,
    tz timestamptz, j jsonb, b bool, f double precision);
insert into t (id, b, f, tz) values (1, true, 1.0, '2024-01-02 03:04:05+00')"""
CASES = [
    ("s", types.BOOL, b"t", "true"),
    ("v", types.BOOL, b"f", "false"),
    ("s", types.FLOAT8, b"1.0", "1"),
    ("s", types.FLOAT8, b"1e20", "1e+20"),
    ("s", types.TIMESTAMPTZ, b"2024-01-02 03:04:05+00", "2024-01-02 03:04:05+00"),
    ("s", types.INT4, b"7", "7"),
    ("d", types.TIMESTAMP, b"2024-01-02 03:04:05", "2024-01-02"),
    ("d", types.TIMESTAMPTZ, b"2024-01-02 23:04:05+00", "2024-01-02"),
    ("ts", types.DATE, b"2024-01-02", "2024-01-02 00:00:00"),
    ("tz", types.TIMESTAMP, b"2024-01-02 03:04:05", "2024-01-02 03:04:05+00"),
    ("x", types.FLOAT8, b"2.5", "2"),
    ("x", types.FLOAT8, b"3.5", "4"),
    ("x", types.NUMERIC, b"2.5", "3"),
    ("n", types.FLOAT8, b"0.30000000000000004", "0.3"),
    ("m", types.FLOAT8, b"2.675", "2.68"),
    ("j", types.JSON, b'{"bb":1,"a":2}', '{"a": 2, "bb": 1}'),
]


@pytest.mark.parametrize(("column", "oid", "sent", "stored"), CASES)
@pytest.mark.parametrize("statement", ["update t set {0} = $1 where id = 1", "insert into t (id, {0}) values (2, $1)"])
def test_a_declared_parameter_is_cast_to_its_column(column: str, oid: int, sent: bytes, stored: str, statement: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(SCHEMA))
        answers = await client.send(parse(statement.format(column), oids=[oid]), bind(sent), execute(), SYNC)
        assert answers[-1] == "Z I"
        assert not any(answer.startswith("E") for answer in answers)
        assert (await client.send(query(f"select {column} from t order by id desc limit 1")))[1] == f"D {stored}"

    play(body)


def test_columns_that_are_set_together_are_cast_each() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(SCHEMA))
        await client.send(query("update t set (s, v, n) = (select b, f, f + 0.1 + 0.2 - 1.0 from t where id = 1)"))
        assert (await client.send(query("select s, v, n from t")))[1] == "D true,1,0.3"
        await client.send(query("update t set (s, v) = (select tz, b from t union all select tz, b from t limit 1)"))
        assert (await client.send(query("select s, v from t")))[1] == "D 2024-01-02 03:04:05+00,true"

    play(body)


def test_a_list_comes_back_as_an_array() -> None:
    async def body(client: RawClient, _: Served) -> None:
        answers = await client.send(parse("select $1", oids=[1007]), bind(b"{1,NULL,3}"), execute(), SYNC)
        assert answers[2] == "D {1,NULL,3}"

    play(body)
