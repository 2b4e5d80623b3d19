"""Definitions that SQLite cannot change: an empty table is made again, one that holds rows is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster, play, run, state_of
from triplicate.errors import SqlError
from triplicate.sql.executor.redefinitions import Redefinition, UniqueIndex, parse_redefinition, redefined

CREATED = 'CREATE TABLE t ("a" varchar(30) NOT NULL UNIQUE, b int DEFAULT (1 + 1) NOT NULL, c text DEFAULT -1, CHECK (b > 0))'
CHANGED = [
    (
        "ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY (b) REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED",
        CREATED[:-1] + ", CONSTRAINT k FOREIGN KEY (b) REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED)",
    ),
    ("ALTER TABLE t ALTER COLUMN a TYPE varchar(150)", CREATED.replace("varchar(30)", "varchar(150)")),
    ("ALTER TABLE t ALTER a SET DATA TYPE timestamp with time zone", CREATED.replace("varchar(30)", "timestamp with time zone")),
    ("ALTER TABLE t ALTER COLUMN b DROP DEFAULT", CREATED.replace(" DEFAULT (1 + 1)", "")),
    ("ALTER TABLE t ALTER COLUMN c DROP DEFAULT", CREATED.replace(" DEFAULT -1", "")),
]


@pytest.mark.parametrize(("sql", "text"), CHANGED)
def test_the_new_definition(sql: str, text: str) -> None:
    change = parse_redefinition(sql)
    assert isinstance(change, Redefinition)
    assert redefined(CREATED, change) == text


def test_a_unique_constraint_is_an_index() -> None:
    named = parse_redefinition('ALTER TABLE "T" ADD CONSTRAINT "k u" UNIQUE ("a", b)')
    assert named == UniqueIndex('CREATE UNIQUE INDEX "k u" ON "T" ("a", b)')
    assert parse_redefinition("ALTER TABLE t ADD UNIQUE (a, b)") == UniqueIndex('CREATE UNIQUE INDEX "t_a_b_key" ON "t" (a, b)')


PLAIN = [
    "ALTER TABLE t ADD COLUMN a INT",
    "ALTER TABLE t ALTER COLUMN a DROP NOT NULL",
    "ALTER TABLE t ADD CONSTRAINT k CHECK (a > 0)",
    "DROP TABLE t",
]


@pytest.mark.parametrize("sql", PLAIN)
def test_what_sqlite_runs_by_itself_is_left_to_it(sql: str) -> None:
    assert parse_redefinition(sql) is None


def test_an_empty_table_is_made_again_with_its_indexes_triggers_and_children(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        for sql in (
            "create table p(id integer primary key)",
            "create table t(id integer primary key, p_id int not null, name varchar(30) not null)",
            "create table child(t_id int references t(id))",
            "create index by_name on t(name)",
            "create table seen(name text)",
            "create trigger note after insert on t begin insert into seen values(new.name); end",
            "alter table t add constraint t_p foreign key (p_id) references p (id) deferrable initially deferred",
            "alter table t alter column name type varchar(150)",
            "alter table t add constraint once unique (p_id, name)",
            "insert into p values(1)",
            "insert into t values(1, 1, 'first')",
            "insert into child values(1)",
        ):
            await run(session, sql)
        assert await run(session, "select name from seen") == [("first",)]
        indexes = "select name from pragma_index_list('t') order by 1"
        assert await run(session, indexes) == [("by_name",), ("once",)]
        assert await state_of(run(session, "insert into t values(2, 9, 'other')")) == "23503"
        assert await state_of(run(session, "insert into t values(2, 1, 'first')")) == "23505"
        assert await state_of(run(session, "insert into child values(7)")) == "23503"
        assert (await session.prepare("select name from t")).columns[0].declared_type == "varchar(150)"
        assert await state_of(run(session, "alter table t alter column name type text")) == "0A000"
        assert await run(session, "select * from t") == [(1, 1, "first")]
        assert await state_of(run(session, "alter table absent add foreign key (a) references p(id)")) == "42P01"
        assert await state_of(run(session, "alter table p alter column id type text")) == "0A000"
        assert await state_of(run(session, "alter table child alter column absent type text")) == "0A000", "it holds a row"

    play(tmp_path, scene)


def test_a_failure_keeps_the_table(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a int)")
        await run(session, "create index by_a on t(a)")
        for sql in ("alter table t alter column b type text", "alter table t add foreign key (b) references p(id)"):
            assert await state_of(run(session, sql)) is not None
        assert await run(session, "select name from sqlite_schema where tbl_name = 't' order by 1") == [("by_a",), ("t",)]

    play(tmp_path, scene)


def test_a_type_that_a_view_keeps_stays(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a int, b int)")
        await run(session, 'create view v("c") as /* types 1 | bigint */ select a * 2 as c from t')
        assert await state_of(run(session, "alter table t alter column a type text")) == "0A000"
        await run(session, "alter table t alter column b type text")
        await run(session, "drop view v")
        await run(session, "alter table t alter column a type text")

    play(tmp_path, scene)


@pytest.mark.parametrize(
    "default", ["x'00ff'", "X'00'", ".5", "-.5", "1e-05", "+1.5E+3", "- 1", "0x1f", "'it''s'", "NULL", "CURRENT_TIMESTAMP", "(1 + (2))"]
)
@pytest.mark.parametrize("rest", ["", " NOT NULL", " CHECK (a <> 1)"])
def test_a_default_is_taken_away_whole(default: str, rest: str) -> None:
    change = parse_redefinition("ALTER TABLE t ALTER a DROP DEFAULT")
    assert isinstance(change, Redefinition)
    assert redefined(f"CREATE TABLE t (a blob DEFAULT {default}{rest}, b int)", change) == f"CREATE TABLE t (a blob{rest}, b int)"


@pytest.mark.parametrize("key", ["PRIMARY KEY (a)", 'CONSTRAINT "k" PRIMARY KEY ("A")'])
def test_the_type_of_a_primary_key_stays(key: str) -> None:
    change = parse_redefinition("ALTER TABLE t ALTER a TYPE bigint")
    assert isinstance(change, Redefinition)
    with pytest.raises(SqlError) as caught:
        redefined(f"CREATE TABLE t (a INTEGER, b int, {key})", change)
    assert caught.value.sqlstate == "0A000"
    assert redefined("CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b))", change).startswith(
        "CREATE TABLE t (a bigint NOT"
    )
