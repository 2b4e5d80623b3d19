"""Random definitions as PostgreSQL's clients write them, and random rows: a follower must hold what the leader holds, bit for bit."""

from __future__ import annotations

import random
from pathlib import Path

import apsw
import pytest

from tests.property import rowlog_workload as workload
from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.ddl.definition_rewriter import rewrite_definition

SCHEMA = "create table a(id integer primary key autoincrement, v text);\ncreate table b(id int primary key, p int references a(id))"
TYPES = (
    "int",
    "numeric(6,2)",
    "real",
    "varchar(4)",
    "char(3)",
    "text",
    "boolean",
    "date",
    "timestamptz",
    "uuid",
    "jsonb",
    "bytea",
    "other",
    "",
)
CLAUSES = ("", "", "default 1", "default 1.5", "default 'x'", "default true", "default '2024-01-01'", "default now()", "default (1 + 1)",
           "not null", "not null default 7", "unique", "check (1 > 0)", "default gen_random_uuid()")  # fmt: skip
VALUES = ("null", "1", "0", "-1", "1.5", "-0.0", "'x'", "'abc'", "'éa'", "x'00ff'", "'2024-01-01'", "'2024-01-01 00:00:00+00:00'", "1e300",
          "9223372036854775807", "-9223372036854775808", "9e999", "0.1", "'1.0'", "' 7'", "'{\"a\": 1.50}'", "''")  # fmt: skip


def tables(connection: apsw.Connection) -> list[str]:
    query = (
        "select name from pragma_table_list where schema = 'main' and type = 'table'"
        " and name not like 'sqlite_%' and name not like 'triplicate_%'"
    )
    return [str(name) for (name,) in connection.execute(query)]


def columns(connection: apsw.Connection, table: str) -> list[str]:
    return [str(name) for (name,) in connection.execute("select name from pragma_table_xinfo(?) where hidden = 0", (table,))]


def definition(chance: random.Random, connection: apsw.Connection) -> str:
    known = tables(connection) or ["a"]
    table, other, new = chance.choice(known), chance.choice(known), f"t{chance.randrange(12)}"
    column = chance.choice(columns(connection, table) or ["x"])
    made = [f"c{chance.randrange(9)} {chance.choice(TYPES)} {chance.choice(CLAUSES)}" for _ in range(chance.randrange(1, 4))]
    listed = ", ".join(made)
    sql = chance.choice(
        [
            f"create table {new} (id bigserial primary key, {listed})",
            f"create table {new} (id int primary key, {listed})",
            f"create table {new} ({listed}, k text, primary key (k)) without rowid",
            f"create table {new} (id serial primary key, {listed}, g int as (id + 1) {chance.choice(['stored', 'virtual'])})",
            f"create table {new} (id serial primary key, r int references {other} on delete cascade deferrable initially deferred)",
            f'create table {new} ("q" int, "r" real) as insert into {new}("q", "r") select 7, {column} from {table}',
            f"create table if not exists {new} (q text) as insert into {new}(q) select {column} from {table}",
            f"create table {new} as select * from {table}",
            f"alter table {table} add column {made[0]}",
            f"alter table {table} add column if not exists {made[0]}",
            f"alter table {table} drop column if exists {column}",
            f"alter table {table} rename to {new}",
            f"alter table {table} rename {column} to c{chance.randrange(9)}",
            f"alter table {table} alter {column} type {chance.choice(TYPES[:-2])}",
            f"alter table {table} alter {column} drop default",
            f"alter table {table} alter {column} {chance.choice(['set', 'drop'])} not null",
            f"alter table {table} add unique ({column})",
            f"alter table {table} add primary key ({column})",
            f"alter table {table} drop constraint {table}_pkey",
            f"alter table {table} add foreign key ({column}) references {other}(id)",
            f"drop table if exists {table}, {new}",
            f"create unique index i{chance.randrange(9)} on {table} ({column}) where {column} is not null",
            f"create view v{chance.randrange(9)} as select * from {table}",
        ]
    )
    return sql if " as insert " in sql else _rewritten(sql)


def _rewritten(sql: str) -> str:
    try:
        return rewrite_definition(statement_of(sql)).text
    except SqlError:
        return "select 1"


def change(chance: random.Random, connection: apsw.Connection) -> str | None:
    known = tables(connection)
    table = chance.choice(known) if known else ""
    found = columns(connection, table) if known else []
    if not found:
        return None
    some, column = chance.sample(found, chance.randrange(1, len(found) + 1)), chance.choice(found)
    row = ", ".join(chance.choice(VALUES) for _ in some)
    conflict = chance.choice(["", "", "or ignore", "or replace"])
    return chance.choice(
        [
            f"insert {conflict} into {table}({', '.join(some)}) values ({row})",
            f"insert {conflict} into {table} default values",
            f"insert {conflict} into {table} default values",
            f"insert into {table}({', '.join(some)}) select {', '.join(some)} from {table} limit 2",
            f"update {conflict} {table} set {column} = {chance.choice(VALUES)}",
            f"delete from {table} where {column} = {chance.choice(VALUES)}",
            f"insert into {table}({column}) values ({chance.choice(VALUES)}) on conflict do update set {column} = {chance.choice(VALUES)}",
        ]
    )


@pytest.mark.parametrize("block", range(3))
def test_a_follower_holds_the_same_after_definitions_of_postgresql(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "schema_change", definition)
    monkeypatch.setattr(workload, "generic_change", change)
    for seed in range(block * 5, block * 5 + 5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        pair, chance = workload.Pair(folder), random.Random(seed)
        try:
            pair.script(SCHEMA)
            tried = sum(workload.transaction(pair, chance, schema_changes=True) for _ in range(40))
        finally:
            pair.close()
        leader, follower = (workload.contents(path) for path in pair.paths)
        assert {name for name in leader.keys() | follower.keys() if leader.get(name) != follower.get(name)} == set()
        assert tried > 40
