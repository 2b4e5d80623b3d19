"""ADD PRIMARY KEY and ADD FOREIGN KEY to tables, with and without rows, and what holds for a key that was added."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.property.rowlog_workload import Pair
from tests.unit.sql.cluster import Cluster, play, run, state_of
from tests.unit.sql.definition_rig import refused, same, send
from triplicate.errors import SqlError
from triplicate.sql import ChangeType, changes
from triplicate.sql.catalogue import register_functions, register_tables
from triplicate.sql.core.added_references import added_reference
from triplicate.sql.core.primary_keys import is_key_index, key_index
from triplicate.sql.core.schema_changes import table_change
from triplicate.sql.storage.sqlite_schema import key_index_of, key_of

ROWS = "insert into t values(1, 'a', 0), (2, 'b', 0)"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    made.script("create table counted(id integer primary key autoincrement)")
    send(made, "create table t(id integer, name text, n int)")
    yield made
    made.close()


def asked(pair: Pair, sql: str) -> list[Any]:
    """The answer of the catalogue over the follower's copy."""
    connection = apsw.Connection(pair.paths[1])
    try:
        register_functions(connection, register_tables(connection))
        return connection.execute(sql).fetchall()
    finally:
        connection.close(True)


def texts(pair: Pair, table: str = "t") -> list[str]:
    query = "select sql from sqlite_schema where tbl_name = ? and sql is not null order by type desc, name"
    return [str(sql) for (sql,) in pair.follower.execute(query, (table,))]


def test_a_table_with_rows_gets_a_key_that_the_catalogue_shows(pair: Pair) -> None:
    send(pair, ROWS, "ALTER TABLE ONLY public.t ADD PRIMARY KEY (id, name)")
    assert texts(pair) == [
        "CREATE TABLE t(id integer NOT NULL, name text NOT NULL, n int)",
        'CREATE UNIQUE INDEX "t_pkey" /* primary key */ ON "t" ("id", "name")',
    ]
    constraints = "select conname, contype, conkey, pg_get_constraintdef(oid), conindid = to_regclass('t_pkey') from pg_constraint"
    assert asked(pair, f"{constraints} where conrelid = to_regclass('t')") == [("t_pkey", "p", "{1,2}", "PRIMARY KEY (id, name)", 1)]
    indexes = "select indisprimary, indisunique, indkey from pg_index where indrelid = to_regclass('t')"
    assert asked(pair, indexes) == [(1, 1, "1 2")]
    columns = "select attname, attnotnull, attidentity from pg_attribute where attrelid = to_regclass('t') order by attnum"
    assert asked(pair, columns) == [("id", 1, ""), ("name", 1, ""), ("n", 0, "")]
    assert key_of(pair.follower, "T") == ["id", "name"]
    assert refused(pair, "insert into t values(1, 'a', 5)").sqlstate == "23505"
    assert refused(pair, "insert into t(name) values('c')").sqlstate == "23502"
    send(pair, "insert into t values(1, 'a', 7) on conflict (id, name) do update set n = excluded.n")
    assert pair.follower.execute("select * from t").fetchall() == [(1, "a", 7), (2, "b", 0)]
    same(pair)


def test_the_key_outlives_renames_and_new_rows(pair: Pair) -> None:
    send(pair, ROWS, "alter table t add constraint k primary key (id)", "alter table t rename column id to number")
    send(pair, "alter table t rename to u", "insert into u values(3, 'c', 1)", "update u set number = 30 where number = 3")
    assert key_of(pair.follower, "u") == ["number"]
    assert asked(pair, "select conname from pg_constraint where contype = 'p' and conrelid = to_regclass('u')") == [("k",)]
    send(pair, "create table t(id int, name text)", "insert into t values(1, 'a')", "alter table t add primary key (id)")
    send(pair, "create table v(id int)", "create index v_pkey on t(name)", "insert into v values(1)", "alter table v add primary key (id)")
    assert [key_index_of(pair.follower, table) for table in ("t", "v")] == [("t_pkey", ("id",)), ("v_pkey1", ("id",))]
    same(pair)


@pytest.mark.parametrize(
    ("rows", "sql", "sqlstate", "message", "detail"),
    [
        ("insert into t values(null, 'a', 1)", "(name, id)", "23502", 'column "id" of table "t" contains null values', None),
        ("insert into t values(1, 'a', 1), (1, 'b', 1)", "(id)", "23505", 'could not create unique index "t_pkey"',
         "Key (id)=(1) is duplicated."),
        ("insert into t values(1, 'a', 1), (1, 'a', 2)", "(name, id)", "23505", 'could not create unique index "t_pkey"',
         "Key (name, id)=(a, 1) is duplicated."),
        (ROWS, "(id, other)", "42703", 'column "other" named in key does not exist', None),
        (ROWS, "(id, ID)", "42701", 'column "id" appears twice in primary key constraint', None),
        (ROWS, "(id desc)", "42601", 'syntax error at or near "desc"', None),
        (ROWS, "(lower(name))", "42601", 'syntax error at or near "("', None),
        (ROWS, "()", "42601", 'syntax error at or near ")"', None),
        (ROWS, "(id) where id > 0", "42601", 'syntax error at or near "where"', None),
        (ROWS, "(id) include (n)", "0A000", "INCLUDE of a key is not supported", None),
        (ROWS, "using index i", "0A000", "ALTER TABLE … ADD PRIMARY KEY USING INDEX is not supported", None),
    ],
)  # fmt: skip
def test_a_key_that_cannot_be_is_refused_and_nothing_of_it_stays(
    pair: Pair, rows: str, sql: str, sqlstate: str, message: str, detail: str | None
) -> None:
    send(pair, rows)
    before = texts(pair)
    failure = refused(pair, f"alter table t add primary key {sql}")
    assert (failure.sqlstate, failure.message, failure.detail) == (sqlstate, message, detail)
    assert texts(pair) == before
    send(pair, "insert into t values(null, null, null)")
    same(pair)


@pytest.mark.parametrize("rows", [ROWS, "delete from t"])
@pytest.mark.parametrize("columns", ["(id)", "(name)", "(n, name)"])
def test_a_table_has_one_primary_key(pair: Pair, rows: str, columns: str) -> None:
    send(pair, rows, "alter table t add primary key (id)" if columns == "(id)" else f"alter table t add constraint k primary key {columns}")
    for another in ("(n)", "(id)"):
        assert refused(pair, f"alter table t add primary key {another}").message == 'multiple primary keys for table "t" are not allowed'
    assert refused(pair, "alter table counted add primary key (id)").sqlstate == "42P16"
    assert refused(pair, "alter table absent add primary key (id)").sqlstate == "42P01"
    send(pair, "create table u(a int)")
    assert refused(pair, "alter table u add constraint t primary key (a)").sqlstate == "42P07"
    same(pair)


def test_an_empty_table_is_made_again_with_its_key(pair: Pair) -> None:
    send(pair, "create index by_n on t(n)", "alter table t add constraint k primary key (name, n)")
    assert texts(pair) == [
        'CREATE TABLE t(id integer, name text NOT NULL, n int NOT NULL, CONSTRAINT "k" PRIMARY KEY ("name", "n"))',
        "CREATE INDEX by_n on t(n)",
    ]
    assert refused(pair, "insert into t(id, n) values(1, 1)").sqlstate == "23502"
    send(pair, "insert into t values(1, 'a', 0) on conflict (name, n) do nothing")
    same(pair)


def test_an_added_key_of_one_integer_column_does_not_number_rows(pair: Pair) -> None:
    send(pair, "alter table t add primary key (id)")
    assert refused(pair, "insert into t(name) values('a')").sqlstate == "23502"
    assert refused(pair, "insert into t values(null, 'a', 1)").sqlstate == "23502"
    send(pair, "insert into t values(7, 'a', 1)")
    assert asked(pair, "select attidentity from pg_attribute where attrelid = to_regclass('t') and attname = 'id'") == [("",)]
    assert asked(pair, "select count(*) from pg_attrdef where adrelid = to_regclass('t')") == [(0,)]
    same(pair)


def test_a_users_unique_index_is_no_primary_key(pair: Pair) -> None:
    send(pair, "alter table t alter id set not null", "create unique index t_pkey on t(id)")
    assert key_of(pair.follower, "t") == []
    assert asked(pair, "select indisprimary from pg_index where indrelid = to_regclass('t')") == [(0,)]
    send(pair, "create unique index a /* primary key */ on t(lower(name))", "create unique index b /* primary key */ on t(id) where id > 1")
    send(pair, "create unique index c /* primary key */ on t(n)", "create index d /* primary key */ on t(id)", "drop index t_pkey")
    send(pair, "create unique index e on t(id) /* primary key */", "create unique index f /* primary  key */ on t(id)")
    assert key_of(pair.follower, "t") == []
    assert asked(pair, "select count(*) from pg_constraint where conrelid = to_regclass('t')") == [(0,)]
    send(pair, "create table u(a int primary key, b int not null)", "create unique index g /* primary key */ on u(b)")
    assert key_of(pair.follower, "u") == ["a"]
    same(pair)


def test_the_mark_is_at_one_place() -> None:
    assert is_key_index(key_index('a "b', "t", ["x", "y z"]))
    assert not is_key_index("CREATE UNIQUE INDEX a ON t (x) /* primary key */")
    assert not is_key_index("CREATE UNIQUE INDEX a -- /* primary key */\n ON t (x)")
    assert not is_key_index("CREATE INDEX a /* primary key */ ON t (x)")
    assert not is_key_index("")


@pytest.mark.parametrize(("relation", "sqlstate"), [("f", "0A000"), ("v", "42809"), ("triplicate_state", "42501"), ("f_content", "42809")])
def test_only_ordinary_tables_get_keys(pair: Pair, relation: str, sqlstate: str) -> None:
    pair.script("create virtual table f using fts5(a)")
    send(pair, "insert into f values('alpha')", "create view v as select id from t")
    for sql in (f"alter table {relation} add primary key (id)", f"alter table {relation} add foreign key (id) references t(id)"):
        assert refused(pair, sql).sqlstate == sqlstate
    same(pair)


def test_what_the_key_needs_cannot_be_taken_away(pair: Pair) -> None:
    send(pair, ROWS, "alter table t add primary key (id)")
    for sql, sqlstate in (
        ("alter table t alter column id drop not null", "42P16"),
        ("alter table t alter ID drop not null", "42P16"),
        ("drop index t_pkey", "2BP01"),
        ('drop index if exists "T_pkey"', "2BP01"),
        ("alter table t drop column id", "2BP01"),
    ):
        assert refused(pair, sql).sqlstate == sqlstate
    assert key_of(pair.follower, "t") == ["id"]
    send(pair, "alter table t drop constraint t_pkey", "insert into t values(1, 'again', 0)", "alter table t alter id drop not null")
    assert refused(pair, "alter table t drop constraint t_pkey").sqlstate == "42704"
    assert refused(pair, "alter table absent drop constraint k").sqlstate == "42P01"
    assert key_of(pair.follower, "t") == []
    same(pair)


def test_the_index_of_a_constraint_cannot_be_dropped(pair: Pair) -> None:
    send(
        pair,
        "create table k(id integer primary key, a int unique, b int)",
        "create table w(b text primary key, c int, constraint once unique (c))",
    )
    send(pair, "create unique index kb on k(b)")
    for name in ("k_pkey", "k_a_key", "w_pkey", "once"):
        for sql in (f"drop index {name} restrict", f"drop index kb, {name}", f"drop index if exists {name} restrict"):
            failure = refused(pair, sql)
            assert (failure.sqlstate, name in failure.message) == ("2BP01", True)
    assert refused(pair, "drop index t_pkey restrict").sqlstate == "42704"
    send(pair, "drop index if exists t_pkey restrict", "drop index kb restrict")
    same(pair)


def test_drop_constraint_drops_unique_constraints_and_checks(pair: Pair) -> None:
    send(pair, "alter table t add unique (id, name)", "alter table t add constraint positive check (n >= 0)", "create index plain on t(n)")
    send(pair, "alter table t drop constraint t_id_name_key", "alter table t drop constraint positive restrict")
    assert texts(pair) == ["CREATE TABLE t(id integer, name text, n int)", "CREATE INDEX plain on t(n)"]
    assert refused(pair, "alter table t drop constraint plain").sqlstate == "42704"
    same(pair)


def test_a_reference_without_columns_is_to_the_added_key(pair: Pair) -> None:
    send(pair, ROWS, "alter table t add primary key (id)", "create table c(t_id int references t on delete cascade, d int)")
    send(
        pair, "create table e(t_id int)", "alter table e add foreign key (t_id) references t", "alter table c add column f int references t"
    )
    assert texts(pair, "c") == ['CREATE TABLE c(t_id int references t ("id") on delete cascade, d int, f int references t ("id"))']
    send(pair, "insert into c values(1, 0, 2), (null, 0, null)", "insert into e values(2)")
    assert refused(pair, "insert into c values(9, 0, null)").sqlstate == "23503"
    assert refused(pair, "insert into e values(9)").sqlstate == "23503"
    failure = refused(pair, "alter table t drop constraint t_pkey")
    assert (failure.sqlstate, failure.detail) == ("2BP01", 'a foreign key of table "c" depends on it')
    send(pair, "create unique index once on t(id)", "alter table t drop constraint t_pkey")
    assert refused(pair, "alter table t drop constraint once").sqlstate == "2BP01"
    send(pair, "delete from e", "delete from t where id = 1")
    assert pair.follower.execute("select t_id from c").fetchall() == [(None,)]
    same(pair)


def test_a_reference_that_waits_for_a_key_in_create_table_keeps_one_from_being_added(pair: Pair) -> None:
    send(pair, ROWS, "create table c(t_id int references t)")
    failure = refused(pair, "alter table t add primary key (id)")
    assert (failure.sqlstate, failure.hint) == ("0A000", 'Make that table again with REFERENCES "t" ("id").')
    send(pair, "drop table c", "alter table t add primary key (id)")
    same(pair)


# ADD FOREIGN KEY of a table with rows.


def test_a_table_with_rows_gets_a_foreign_key(pair: Pair) -> None:
    send(pair, ROWS, "alter table t add primary key (id)")
    pair.script("create table c(a int /* , */, b text -- it's )\n, check (c.b <> ''))")
    send(pair, "insert into c values(1, 'x'), (null, 'y')")
    send(pair, "alter table c add foreign key (a) references t", "insert into c values(2, 'z')")
    assert texts(pair, "c") == [
        'CREATE TABLE c(a int /* , */, b text -- it\'s )\n, check (c.b <> \'\'), CONSTRAINT "c_a_fkey" foreign key (a) references t ("id"))'
    ]
    assert refused(pair, "insert into c values(3, 'w')").sqlstate == "23503"
    assert refused(pair, "delete from t").sqlstate == "23503"
    assert asked(pair, "select conname, contype, confkey from pg_constraint where contype = 'f'") == [("c_a_fkey", "f", "{1}")]
    send(pair, "insert into c values(1, 'w')")
    assert pair.follower.execute("select count(*) from c").fetchall() == [(4,)]
    for path in pair.paths:
        assert apsw.Connection(path).execute("pragma integrity_check").fetchall() == [("ok",)]
    same(pair)


@pytest.mark.parametrize(
    ("sql", "sqlstate", "detail"),
    [
        ("foreign key (a) references t(id)", "23503", 'Key (a)=(9) is not present in table "t".'),
        ("foreign key (b, a) references t(name, id)", "42830", None),
        ("foreign key (missing) references t(id)", "42703", None),
        ("foreign key (a) references absent(id)", "42P01", None),
        ("foreign key (a) references t(id, n)", "42830", None),
        ("foreign key (a) references t(id) nonsense", "42601", None),
    ],
)
def test_a_foreign_key_that_cannot_be_is_refused_and_nothing_of_it_stays(pair: Pair, sql: str, sqlstate: str, detail: str | None) -> None:
    send(pair, ROWS, "alter table t add primary key (id)", "create table c(a int, b text)", "insert into c values(1, 'x'), (9, 'x')")
    failure = refused(pair, f"alter table c add {sql}")
    assert (failure.sqlstate, failure.detail) == (sqlstate, detail)
    send(pair, "insert into c values(10, 'x')")
    assert texts(pair, "c") == ["CREATE TABLE c(a int, b text)"]
    same(pair)


def test_an_added_foreign_key_goes_with_its_savepoint_and_its_transaction(pair: Pair) -> None:
    send(pair, ROWS, "alter table t add primary key (id)", "create table c(a int)", "insert into c values(1)")
    writer = pair.writer
    writer.begin()
    writer.savepoint("s")
    writer.run(pair.gate.examine("alter table c add foreign key (a) references t(id)"), ())
    with pytest.raises(SqlError):
        writer.run(pair.gate.examine("insert into c values(9)"), ())
    writer.rollback_to("s")
    writer.run(pair.gate.examine("insert into c values(9)"), ())
    pair.send(writer.finish([], ""))
    assert refused(pair, "alter table c add foreign key (a) references t(id)").sqlstate == "23503"
    same(pair)


def test_readers_of_the_log_find_no_change_of_names_in_an_added_foreign_key() -> None:
    added = added_reference('ALTER TABLE "c" ADD CONSTRAINT "c_a_fkey" FOREIGN KEY (a) REFERENCES t (id)')
    assert added is not None
    assert added_reference(added.sql) == added
    assert table_change(added.sql) is None
    assert added_reference("ALTER TABLE c ADD CONSTRAINT k CHECK (a > 0)") is None


def test_followers_the_change_feed_and_a_restarted_node_have_the_added_keys(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader = await cluster.leader()
        session = await leader.session()
        for sql in (
            "create table t(id integer, name text)",
            "insert into t values(5, 'a'), (6, 'b')",
            "create table c(t_id int)",
            "insert into c values(5)",
            "alter table t add primary key (id)",
            "alter table c add foreign key (t_id) references t",
            "insert into t values(5, 'a2') on conflict (id) do update set name = excluded.name",
            "delete from t where id = 6",
        ):
            await run(session, sql)
        client = cluster.client("reader")
        feed = changes(client, "db", tables=["t"], logs=cluster.logs["reader"])
        seen = []
        async for transaction in feed:
            seen += [change for change in transaction.changes if change.type is not ChangeType.SCHEMA]
            if len(seen) == 4:
                break
        await feed.aclose()
        assert [(change.type, change.key) for change in seen] == [
            (ChangeType.INSERT, {"rowid": 1}), (ChangeType.INSERT, {"rowid": 2}),
            (ChangeType.UPDATE, {"rowid": 1}), (ChangeType.DELETE, {"rowid": 2}),
        ]  # fmt: skip
        first, other = cluster.leader_name(), next(name for name in cluster.nodes if name != cluster.leader_name())
        await cluster.caught_up(other, leader.position)
        await cluster.nodes.pop(first).stop()
        later = await cluster.leader()
        session = await later.session()
        assert (await session.special_columns("t")).key == ["id"]
        assert await state_of(run(session, "insert into t values(5, 'again')")) == "23505"
        assert await state_of(run(session, "insert into c values(6)")) == "23503"
        assert await state_of(run(session, "alter table t drop constraint t_pkey")) == "2BP01"
        await run(session, "insert into c values(5)")
        await cluster.start(first)
        again = await cluster.serving(first, later.position)
        with apsw.Connection(again.path) as connection:
            assert connection.execute("select count(*) from c").fetchall() == [(2,)]
            assert key_of(connection, "t") == ["id"]
            assert connection.execute("pragma foreign_key_list(c)").fetchall()[0][2:5] == ("t", "t_id", "id")

    play(tmp_path, scene, nodes=2)
