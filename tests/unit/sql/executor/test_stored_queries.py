"""Views and triggers that SQLite cannot compute: refused on the leader, applied by followers, and without harm to anything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.rowlog_workload import Pair
from tests.unit.sql.definition_rig import refused, same, send
from triplicate.sql.executor.stored_queries import stored_queries


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    made.script("create table t(id integer primary key autoincrement, x text, b int, g text generated always as (x))")
    made.script("create table log(x text)")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("query", "state"),
    [
        ("select nosuch(1) as n", "42883"),
        ("select length(x, 2) from t", "42883"),
        ("select pg_current_xact_id()", "0A000"),
        ("select id from nosuch", "42P01"),
        ("select nosuch from t", "42703"),
        ("select max(id) filter (where x > nosuch(b)) from t", "42883"),
    ],
)
def test_a_view_that_sqlite_cannot_compute_is_refused(pair: Pair, query: str, state: str) -> None:
    failure = refused(pair, f"create view w as {query}")
    assert (failure.sqlstate, failure.message.startswith('view "w" cannot be computed: ')) == (state, True)
    assert stored_queries(pair.reader) == frozenset()
    send(pair, "create view w as select id, max(x) as top from t", "create view if not exists w as select nosuch(1)")
    same(pair)


@pytest.mark.parametrize(
    ("trigger", "state"),
    [
        ("after insert on t begin update t set x = nosuch() where id = new.id; end", "42883"),
        ("before update of x on t begin insert into log values (nosuch(new.x)); end", "42883"),
        ("after delete on t when nosuch(old.id) begin delete from log; end", "42883"),
        ("after insert on t begin insert into nosuch values (1); end", "42P01"),
        ("after insert on t begin insert into log(nosuch) values (1); end", "42703"),
        ("instead of insert on v begin insert into log values (pg_current_xact_id()); end", "0A000"),
    ],
)
def test_a_trigger_that_sqlite_cannot_compute_is_refused(pair: Pair, trigger: str, state: str) -> None:
    send(pair, "create view v as select id from t")
    failure = refused(pair, f"create trigger g {trigger}")
    assert (failure.sqlstate, failure.message.startswith('trigger "g" cannot be computed: ')) == (state, True)
    send(pair, "create trigger g after insert on t begin insert into log values (new.x); end", "insert into t(x) values ('a')")
    send(pair, "create trigger h instead of insert on v begin insert into t(id) values (new.id); end", "insert into v values (7)")
    assert send(pair, "delete from log returning x") == [("a",), (None,)]
    same(pair)


def test_a_trigger_is_not_blamed_for_what_failed_before_it(pair: Pair) -> None:
    """A script may make the table of a foreign key after the trigger of the one that refers to it."""
    send(pair, "create table child(p int references parent(id))", "create trigger g after insert on child begin delete from log; end")
    send(pair, "create table parent(id int primary key)", "insert into parent values (1)", "insert into child values (1)")
    same(pair)


def test_a_follower_applies_what_a_leader_has_accepted(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.sql.executor.schema_statements.refuse_uncomputable", lambda *_: None)
    send(pair, "create view w as select nosuch() as n", "create trigger g after delete on t begin select nosuch(); end")
    same(pair)
    monkeypatch.undo()
    send(pair, "create view v as select id from t", "insert into t(x) values ('a')", "drop table log")
    same(pair)


@pytest.mark.parametrize(
    "change",
    ["alter table log rename to m", "alter table log rename column x to y", "alter table log drop column z", "alter table t rename to m"],
)
def test_a_follower_changes_tables_beside_views_that_call_functions(pair: Pair, change: str) -> None:
    """ALTER TABLE resolves the columns of all views: those of a view over another with the functions of the other."""
    send(pair, "alter table log add column z int", "create view v as select triplicate_numeric_divide(b, 3) as q, upper(x) as x from t")
    send(pair, "create view w as select q, x from v", "create view y as select triplicate_substr(x, 1, 1) as x from w")
    send(pair, "create trigger tg after insert on t begin insert into t(b) select triplicate_md5(q) from w limit 0; end")
    send(pair, change)
    same(pair)


def test_a_change_of_a_table_names_the_view_that_hinders_it(pair: Pair) -> None:
    send(pair, "create table old(id int)", "create view w as select id from old")
    pair.script("drop table old")
    failure = refused(pair, "alter table log rename to log2")
    assert (failure.sqlstate, "view w" in failure.message) == ("2BP01", True)
    assert "Drop this one first" in (failure.hint or "")
    send(pair, "drop view w", "alter table log rename to log2")
    same(pair)
