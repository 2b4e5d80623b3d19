"""SQLite's query plans in PostgreSQL's form."""

from __future__ import annotations

import json

import apsw
import pytest

from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.translate.query_plan import Execution, PlanNode, plan_json, plan_lines, plan_tree, rows_of_plan

SCHEMA = """
create table t(id integer primary key, a int, b text); create index t_a on t(a);
create table u(id int primary key, t_id int, c text);
"""


def plan(sql: str) -> PlanNode:
    connection = apsw.Connection(":memory:")
    connection.execute(SCHEMA)
    return plan_tree(rows_of_plan(connection.execute(f"explain query plan {sql}").fetchall()), statement_of(sql))


@pytest.mark.parametrize(
    ("sql", "lines"),
    [
        ("select * from t where b = 'x' limit 3", ["Seq Scan on t", "  Filter: (b = 'x')"]),
        ("select * from t where id = 5", ["Index Scan using t_pkey on t", "  Index Cond: (rowid = ?)"]),
        ("select a from t where a = 1 and id > 2", ["Index Only Scan using t_a on t", "  Index Cond: ((a = ?) AND (rowid > ?))"]),
        (
            "select * from t join u on u.t_id = t.id where t.a > 3 order by c",
            [
                "Sort",
                "  ->  Nested Loop",
                "        ->  Seq Scan on u",
                "        ->  Index Scan using t_pkey on t",
                "              Index Cond: (rowid = ?)",
            ],
        ),
        ("select b, count(*) from t group by b order by 2", ["Sort", "  ->  GroupAggregate", "        ->  Seq Scan on t"]),
        ("select distinct b from t", ["Unique", "  ->  Seq Scan on t"]),
        ("select 1", ["Result"]),
        ("select max(c) from u", ["Seq Scan on u"]),
        (
            "select * from t where a in (select t_id from u where u.c = t.b)",
            ["Seq Scan on t", "  SubPlan 1", "    ->  Seq Scan on u"],
        ),
        (
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select * from n",
            ["CTE Scan on n", "  CTE n", "    ->  Recursive Union", "          ->  Result", "          ->  CTE Scan on n"],
        ),
        (
            "select * from t where a = 1 or id = 2",
            [
                "Bitmap Heap Scan on t",
                "  ->  BitmapOr",
                "        ->  Index Scan using t_a on t",
                "              Index Cond: (a = ?)",
                "        ->  Index Scan using t_pkey on t",
                "              Index Cond: (rowid = ?)",
            ],
        ),
        ("insert into t(a) select t_id from u", ["Insert on t", "  ->  Seq Scan on u"]),
        ("update t set a = 1 where b = 'x'", ["Update on t", "  ->  Seq Scan on t", "        Filter: (b = 'x')"]),
        (
            "delete from t where id = 3",
            ["Delete on t", "  ->  Index Scan using t_pkey on t", "        Index Cond: (rowid = ?)"],
        ),
    ],
)
def test_a_plan_has_the_form_of_postgresqls(sql: str, lines: list[str]) -> None:
    assert plan_lines(plan(sql), None) == lines


@pytest.mark.parametrize(
    "sql", ["select a from t union all select t_id from u order by 1", "values (1), (2)", "select sum(a) over () from t"]
)
def test_every_plan_has_some_form(sql: str) -> None:
    assert plan_lines(plan(sql), None)


def test_an_execution_is_shown_with_the_plan() -> None:
    lines = plan_lines(plan("select * from u left join t on t.id = u.id"), Execution(0.0015, 7, 0.00025))
    assert lines[0] == "Nested Loop Left Join (actual time=0.000..1.500 rows=7 loops=1)"
    assert lines[-2:] == ["Planning Time: 0.250 ms", "Execution Time: 1.500 ms"]


def test_a_plan_as_json() -> None:
    (found,) = json.loads(plan_json(plan("update t set a = 1 where id = 3"), Execution(0.0015, 1, 0)))
    assert found["Execution Time"] == 1.5
    assert (found["Plan"]["Node Type"], found["Plan"]["Operation"], found["Plan"]["Relation Name"]) == ("ModifyTable", "Update", "t")
    assert found["Plan"]["Plans"] == [
        {"Node Type": "Index Scan", "Index Name": "t_pkey", "Relation Name": "t", "Index Cond": "(rowid = ?)"},
    ]
