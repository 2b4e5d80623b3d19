"""A function that has another result at each call is called once for each row of the query that calls it."""

from __future__ import annotations

import pytest

from tests.unit.sql.pg.raw_client import RawClient, query
from tests.unit.sql.pg.server_rig import Served, play

SUBQUERIES = [
    "(select gen_random_uuid() as u)",
    "(select gen_random_uuid()::text as u, a from t)",
    "(select random() as u from t where a > 1)",
    "(select random() as u from t order by a limit 2)",
    "(select random() as u from t fetch first 2 rows only)",
    "(values (random()), (random()))",
    "(select random() as u union all select random())",
    "(select (select random()) as u)",
    "(select u from (select random() + 1 as u from t) inside)",
    "(select upper(hex(randomblob(8))) as u)",
    "(with x as (select random() as u) select u from x)",
]
USES = [
    "select count(*) from {} s{} where u = u and u in (select u)",
    "select count(*) from (select u as a, u as b from {} s{}) x where a = b",
    "select count(*) from (select s.u as a, s.u as b from t join {} s{} on s.u = s.u) x where a = b",
    "with s{1} as {0} select count(*) from (select u as a, u as b from s) x where a = b",
    "with s{1} as not materialized {0} select count(*) from s one join s two on one.u = two.u where one.u = two.u",
    "with s{1} as materialized {0} select count(*) from s one join s two using (u)",
]
SCHEMA = "create table t (a int); insert into t values (1), (2), (3); create table pairs (x text, y text)"


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("rows", SUBQUERIES)
def test_all_uses_of_a_column_have_the_same_value(rows: str, use: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(SCHEMA))
        columns = "(u)" if rows.startswith("(values") else "(u, a)" if ", a from" in rows and "with" not in rows else ""
        await client.send(query(f"create view expected as select count(*) as n from {rows} s"))
        expected = (await client.send(query(f"select count(*) * {3 if 't join' in use else 1} from {rows} s")))[1]
        assert (await client.send(query(use.format(rows, columns))))[1] == expected
        answers = await client.send(query(f"insert into pairs select u, u from {rows} s{columns}; select count(*) from pairs where x <> y"))
        assert answers[-3:] == ["D 0", "C SELECT 1", "Z I"]

    play(body)


def test_a_view_computes_a_row_once_and_another_one_each_time() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(SCHEMA))
        await client.send(query("create view v as select a, gen_random_uuid() as u from t"))
        assert (await client.send(query("select count(*) from (select u as one, u as two from v) x where one = two")))[1] == "D 3"
        assert (await client.send(query("select count(distinct u) from v")))[1] == "D 3"
        assert (await client.send(query("select count(*) from v one join v two using (u)")))[1] == "D 0"

    play(body)


def test_a_subquery_without_such_a_function_is_merged_as_before() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(SCHEMA))
        plan = await client.send(query("explain select u from (select a + 1 as u from t) s where u > 2"))
        assert not any("Subquery" in line or "CTE" in line for line in plan), plan

    play(body)
