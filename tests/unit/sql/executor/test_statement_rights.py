"""The rights that statements need."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.interface import StatementKind
from triplicate.sql.executor.authorizer import Authorizer
from triplicate.sql.executor.statement_rights import StatementRights
from triplicate.sql.executor.transaction_functions import TransactionContext

SCHEMA = """
create table t(id integer primary key, v text, w integer default 3);
create table p(id integer primary key, s text unique);
create table k(id integer primary key, p integer references p(id) on delete cascade on update set null);
create table audited(a text);
create table notes(a text);
create table triplicate_roles(name text);
create view shown as select id, v from t where w > 0;
create view outer_view as with t as (select * from shown) select t.id from t;
create trigger note after insert on audited when new.a is not null begin insert into notes select s from p where id = new.a; end;
create trigger gone after update of a on audited begin delete from notes; end;
create trigger swap instead of insert on shown begin insert or replace into t(id, v) values(new.id, new.v); end;
create table parent(id integer primary key);
create table child(id integer references parent(id) on delete cascade on update set null);
create table once(id integer references parent(id) on delete set default, s text unique on conflict replace);
create trigger child_gone after delete on child begin delete from notes; end;
create trigger child_free after update on child begin insert into notes values('x'); end;
create trigger once_gone after delete on once begin delete from audited; end;
create trigger once_free after update on once begin delete from p; end;
create virtual table words using fts5(body);
create index by_v on t(v);
"""


@pytest.fixture
def rights() -> Iterator[StatementRights]:
    connection = apsw.Connection(":memory:")
    connection.execute(SCHEMA)
    connection.execute("pragma foreign_keys = on")
    found = StatementRights(connection, TransactionContext().register)
    yield found
    found.close()
    connection.close()


def shown(rights: StatementRights, sql: str, kind: StatementKind = StatementKind.READ) -> set[str]:
    """Each right as ``ACTION relation``, with the definer after ``/``."""
    return {f"{right.action.name} {right.relation}" + (f" / {right.definer}" if right.definer else "") for right in rights.of(sql, kind)}


VIEW = {"SELECT shown", "SELECT t / shown"}
CASES: list[tuple[str, set[str]]] = [
    ("select v from t where id = 1", {"SELECT t"}),
    ("select 1 from t", {"SELECT t"}),
    ("select count(*) from t", {"SELECT t"}),
    ("select t.id from t, p", {"SELECT t", "SELECT p"}),
    ("select (select max(s) from p)", {"SELECT p"}),
    ("with p as (select * from t) select * from p", {"SELECT t"}),
    ("with shown as (select * from t) select * from shown", {"SELECT t"}),
    ("explain select * from t", {"SELECT t"}),
    ("select v from shown", VIEW),
    ("select 1 from shown", VIEW),
    ("select id from outer_view", {"SELECT outer_view", "SELECT shown / outer_view", "SELECT t / shown"}),
    ("insert into t(v) values('x')", {"INSERT t"}),
    ("insert into t(v) values('x') returning id", {"INSERT t", "SELECT t"}),
    ("insert into t(v) select s from p", {"INSERT t", "SELECT p"}),
    ("insert into t(id, v) values(1, 'x') on conflict(id) do update set v = excluded.v", {"INSERT t", "UPDATE t", "SELECT t"}),
    ("insert into t(id, v) values(1, 'x') on conflict do nothing", {"INSERT t"}),
    ("insert or replace into t(id) values(1)", {"INSERT t", "DELETE t"}),
    ("replace into t(id) values(1)", {"INSERT t", "DELETE t"}),
    ("insert into t(v) values(replace('a', 'b', 'c'))", {"INSERT t"}),
    ("update t set v = 'x'", {"UPDATE t"}),
    ("update t set v = 'x' where id = 1", {"UPDATE t", "SELECT t"}),
    ("update t set w = w + 1", {"UPDATE t", "SELECT t"}),
    ("delete from t", {"DELETE t"}),
    ("delete from t where id = 1", {"DELETE t", "SELECT t"}),
    ("delete from p where id = 1", {"DELETE p", "SELECT p"}),
    ("update p set id = 3", {"UPDATE p"}),
    ("insert into k(p) values(1)", {"INSERT k"}),
    ("insert into audited values('1')", {"INSERT audited", "INSERT notes / audited", "SELECT p / audited"}),
    ("update audited set a = 'x'", {"UPDATE audited", "DELETE notes / audited"}),
    ("insert into shown values(1, 'x')", {"INSERT shown", "SELECT t / shown", "INSERT t / shown", "DELETE t / shown"}),
    ("delete from parent", {"DELETE parent", "DELETE notes / child", "DELETE p / once", "DELETE audited / once"}),
    ("update parent set id = 3", {"UPDATE parent", "INSERT notes / child"}),
    ("insert into once(s) values('x')", {"INSERT once", "DELETE audited / once"}),
    ("select body from words where words match 'a'", {"SELECT words"}),
    ("select * from words_content", {"SELECT words"}),
    ("insert into words values('a')", {"INSERT words"}),
    ("select name from sqlite_schema", set()),
    ("select relname from pg_class", set()),
    ("select name from pragma_table_info('t')", set()),
    ("select value from json_each('[1]')", set()),
    ("select name from triplicate_roles", {"SUPERUSER use triplicate_roles"}),
    ("pragma table_info(t)", set()),
]


@pytest.mark.parametrize(("sql", "expected"), CASES, ids=[("view's name" if "with shown" in sql else sql) for sql, _ in CASES])
def test_a_statement_needs_rights_for_what_it_names(rights: StatementRights, sql: str, expected: set[str]) -> None:
    assert shown(rights, sql) == expected
    assert shown(rights, sql) == expected  # The same again, also where a trigger was made for it before.


DEFINITIONS: list[tuple[str, set[str]]] = [
    ("create table n(a integer, b text)", {"CREATE "}),
    ("create table if not exists n(a) strict", {"CREATE "}),
    ("create table n as select v from t", {"CREATE ", "SELECT t"}),
    ("create table n(a) as insert into n (a) with x as (select s from p) select s from x", {"CREATE ", "SELECT p"}),
    ("create table n(a) as insert into t (v) select 'x'", {"SUPERUSER use this definition"}),
    ("create table n(a) as insert or replace into n (a) select 'x'", {"SUPERUSER use this definition"}),
    ("create view n as select * from p", {"CREATE "}),
    ("create virtual table n using fts5(a, content='t')", {"SUPERUSER create virtual tables"}),
    ("create index n on t(v)", {"OWN t"}),
    ("create unique index if not exists main.n on t(v)", {"OWN t"}),
    ("create trigger n after insert on t begin select 1; end", {"OWN t"}),
    ("alter table t add column n", {"OWN t"}),
    ('alter table main."T" rename to n', {"OWN t"}),
    ("alter table t set (change_images = full)", {"OWN t"}),
    ("drop table t", {"OWN t"}),
    ("drop table child", {"OWN child"}),
    ("drop table parent", {"OWN parent", "DELETE notes / child", "DELETE p / once", "DELETE audited / once"}),
    ("drop table if exists t, p restrict", {"OWN t", "OWN p"}),
    ("drop table none", set()),
    ("drop view shown", {"OWN shown"}),
    ("drop index by_v", {"OWN t"}),
    ("drop trigger note", {"OWN audited"}),
    ("drop table triplicate_roles", {"SUPERUSER use triplicate_roles"}),
    ("analyze", {"SUPERUSER use ANALYZE here"}),
    ("reindex t", {"SUPERUSER use REINDEX here"}),
    ("pragma user_version = 3", {"SUPERUSER use PRAGMA here"}),
]


@pytest.mark.parametrize(("sql", "expected"), DEFINITIONS, ids=[sql for sql, _ in DEFINITIONS])
def test_a_definition_needs_the_owner_or_the_right_to_create(rights: StatementRights, sql: str, expected: set[str]) -> None:
    assert shown(rights, sql, StatementKind.SCHEMA) == expected


def test_truncate_and_a_lock_need_rights_of_their_own(rights: StatementRights) -> None:
    assert {(right.action.name, right.relation) for right in rights.of_truncation("delete from t")} == {("TRUNCATE", "t")}
    assert {(right.action.name, right.relation) for right in rights.of_lock("select v from t where id = 1")} == {("UPDATE", "t")}


def test_a_statement_that_cannot_be_prepared_has_unknown_rights(rights: StatementRights) -> None:
    with pytest.raises(SqlError, match="no such table"):
        rights.of("select * from missing", StatementKind.READ)


def test_the_rights_follow_a_change_of_the_schema() -> None:
    connection = apsw.Connection(":memory:")
    connection.execute("create table a(x); create table b(x); create view v as select x from a")
    rights = StatementRights(connection, TransactionContext().register)
    assert shown(rights, "select x from v") == {"SELECT v", "SELECT a / v"}
    connection.execute("drop view v; create view v as select x from b")
    assert shown(rights, "select x from v") == {"SELECT v", "SELECT b / v"}
    rights.close()


def test_what_the_authorizer_accepts_has_rights_that_are_known() -> None:
    """Each statement that the authorizer lets run has rights, and those of a change are more than none."""
    connection = apsw.Connection(":memory:")
    connection.execute(SCHEMA)
    TransactionContext().register(connection)
    authorizer = Authorizer(connection)
    rights = StatementRights(connection, TransactionContext().register)
    for sql, _ in [*CASES, *DEFINITIONS]:
        try:
            prepared = authorizer.examine(sql)
        except SqlError:
            continue
        found = rights.of(sql, prepared.kind)
        assert found or prepared.kind is StatementKind.READ or "none" in sql, sql
    rights.close()
