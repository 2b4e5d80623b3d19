"""The change feed of tables that are changed, dropped, made again and renamed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.spark.feed_stand import Mirror, Row, Shop, Stream, own_columns, same, shop, struct_of
from tests.unit.sql.cluster import Cluster, play
from triplicate.blocking.database_facade import BlockingDatabases
from triplicate.errors import (
    ArgumentError,
    ConfigError,
    EnvironmentFault,
    FormatError,
    LogReplaced,
    NoSuchLog,
    OffsetTruncated,
    SchemaChanged,
)
from triplicate.spark.change_feed import change_source
from triplicate.spark.cluster import connections, database_tables
from triplicate.sql import database_info, drop_database, rename_database

OWN = "`id` LONG, `name` STRING, _change_type STRING, _commit_version LONG, _seq INT"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with shop(tmp_path, monkeypatch) as made:
        yield made


def kinds(rows: list[Row], *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in ("_change_type", *columns)) for row in rows]


def rebuilt_equals(db: Shop, table: str) -> None:
    columns = own_columns(struct_of(db.source(table).schema()))
    mirror = Mirror()
    mirror.apply(db.batch(table), columns, db.key(table))
    assert same(mirror.rows, db.rows(table, columns)), (mirror.rows, db.rows(table, columns))


def test_a_table_made_again_under_a_name_has_only_its_own_rows(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A'), (2, 'B')", "drop table t")
    db.must("create table t(id text primary key, other text)", "insert into t values('k', 'o')")
    assert kinds(db.batch("t"), "id", "other") == [("insert", "k", "o")]
    rebuilt_equals(db, "T")


def test_values_of_a_renamed_column_are_under_its_present_name(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A')")
    db.must("alter table t rename column name to title", "insert into t values(2, 'B')")
    assert kinds(db.batch("t"), "id", "title") == [("insert", 1, "A"), ("insert", 2, "B")]


def test_columns_that_exchange_their_names_keep_their_values(db: Shop) -> None:
    db.must("create table t(id integer primary key, a text, b text)", "insert into t values(1, 'A', 'B')")
    db.must(
        "alter table t rename a to c", "alter table t rename b to a", "alter table t rename c to b", "insert into t values(2, 'X', 'Y')"
    )
    rebuilt_equals(db, "t")
    assert kinds(db.batch("t"), "b", "a") == [("insert", "A", "B"), ("insert", "X", "Y")]


def test_rows_of_before_have_the_default_of_an_added_column(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1), (2)", "alter table t add column qty integer default 7")
    db.must("insert into t values(3, 8)", "update t set qty = 9 where id = 2", "alter table t rename qty to amount")
    rows = db.batch("t")
    assert kinds(rows, "id", "amount") == [("insert", 1, 7), ("insert", 2, 7), ("insert", 3, 8), ("update_postimage", 2, 9)]
    rebuilt_equals(db, "t")


def test_a_column_dropped_and_made_again_is_another_one(db: Shop) -> None:
    db.must("create table t(id integer primary key, x text)", "insert into t values(1, 'old')", "alter table t drop column x")
    db.must("insert into t values(2)", "alter table t add column x text", "insert into t values(3, 'new')")
    assert kinds(db.batch("t"), "id", "x") == [("insert", 1, None), ("insert", 2, None), ("insert", 3, "new")]


def test_a_renamed_table_has_its_history_and_its_old_name_none(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)", "alter table t rename to u", "insert into u values(2)")
    assert kinds(db.batch("u"), "id") == [("insert", 1), ("insert", 2)]
    with pytest.raises(SchemaChanged, match="'t' was renamed to 'u' at version 2"):
        db.batch("t", struct_of(OWN.replace("`name` STRING, ", "")))
    db.must("create table t(id integer primary key)", "insert into t values(10)")
    assert kinds(db.batch("t"), "id") == [("insert", 10)]


def test_a_change_within_the_transaction_of_the_rows_counts_from_there_on(db: Shop) -> None:
    db.transaction(
        "create table t(id integer primary key, a text)",
        "insert into t values(1, 'A')",
        "alter table t rename a to b",
        "insert into t values(2, 'B')",
        "drop table t",
        "create table t(id integer primary key, b text)",
        "insert into t values(3, 'C')",
        "alter table t add c integer default 5",
    )
    assert kinds(db.batch("t"), "id", "b", "c") == [("insert", 3, "C", 5)]


def test_a_dropped_table_is_an_error_or_an_event(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A')", "drop table t")
    own = struct_of(OWN)
    with pytest.raises(SchemaChanged, match=r"'t' was dropped at version 2.*schemaEvents=deliver"):
        db.batch("t", own)
    assert kinds(db.batch("t", own, endingversion="1"), "id") == [("insert", 1)]
    assert kinds(db.batch("t", own, schemaevents="deliver"), "id") == [("insert", 1), ("drop_table", None)]


def test_a_row_whose_key_moves_is_deleted_where_it_was(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A'), (5, 'B')")
    db.must("update t set id = id + 1")
    assert kinds(db.batch("t", startingversion="2"), "id", "name", "_seq") == [
        ("delete", 1, None, 0),
        ("insert", 2, "A", 1),
        ("delete", 5, None, 2),
        ("insert", 6, "B", 3),
    ]
    db.must("create table w(k text primary key, v text) without rowid", "insert into w values('a', 'A'), ('b', 'B'), ('c', 'C')")
    db.must("update w set k = case k when 'b' then 'z' else k end, v = v || '!'")
    assert sorted(kinds(db.batch("w", startingversion="5"), "k", "v"), key=str) == [
        ("delete", "b", None),
        ("insert", "z", "B!"),
        ("update_postimage", "a", "A!"),
        ("update_postimage", "c", "C!"),
    ]
    rebuilt_equals(db, "t")
    rebuilt_equals(db, "w")


def test_rows_without_a_whole_number_as_key_are_known_by_their_rowid(db: Shop) -> None:
    db.must("create table t(a text, b text)", "insert into t values('x', 'x'), ('x', 'x')", "delete from t where rowid = 1")
    db.must(
        "create table k(k text primary key, v text, g as (k || v))",
        "insert into k values(null, 'A'), (null, 'B')",
        "delete from k where v = 'A'",
    )
    assert kinds(db.batch("t"), "_rowid", "a") == [("insert", 1, "x"), ("insert", 2, "x"), ("delete", 1, None)]
    rebuilt_equals(db, "t")
    rebuilt_equals(db, "k")
    assert "_rowid" not in struct_of(OWN).names


def test_a_column_that_does_not_exist_any_more_is_named(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A')", "alter table t rename name to title")
    with pytest.raises(SchemaChanged, match="no column 'name' any more: it was renamed to 'title' at version 2"):
        db.batch("t", struct_of(OWN))
    db.must("alter table t drop column title")
    with pytest.raises(SchemaChanged, match="no column 'title' any more: it was dropped at version 3"):
        db.batch("t", struct_of(OWN.replace("name", "title")))
    with pytest.raises(ConfigError, match="no column 'foo'"):
        db.batch("t", struct_of(OWN.replace("name", "foo")))
    with pytest.raises(ConfigError, match="has no table 'nothing', and never had one"):
        db.batch("nothing", struct_of(OWN))


def test_views_and_virtual_tables_have_no_feed(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "create view v as select * from t", "create virtual table f using fts5(x)")
    for name, what in (("v", "is a view, which"), ("f", "is a virtual table, which"), ("f_data", "belongs to a virtual table")):
        with pytest.raises(ConfigError, match=what):
            db.batch(name)
    with pytest.raises(ConfigError, match="is a virtual table"):
        db.batch("f", struct_of(OWN))


def test_a_running_stream_ends_at_a_change_of_its_columns_and_goes_on_when_started_again(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A')")
    stream = Stream(db, "t")
    assert kinds(stream.trigger(), "id") == [("insert", 1)]
    db.must("create table other(x)", "create index i on t(name)", "analyze", "insert into t values(2, 'B')")
    assert kinds(stream.trigger(), "id") == [("insert", 2)], "nothing that concerns the table"
    db.must("alter table t add column note text", "insert into t values(3, 'C', 'n')")
    for _ in range(2):
        with pytest.raises(SchemaChanged, match=r"column 'note' was added at version 6.*start it again"):
            stream.trigger()
    stream.start()
    assert kinds(stream.trigger(), "id", "note") == [("insert", 3, "n")]
    db.must("alter table t rename column name to title", "insert into t values(4, 'D', 'm')")
    with pytest.raises(SchemaChanged, match="column 'name' was renamed to 'title'"):
        stream.trigger()
    stream.start()
    with pytest.raises(SchemaChanged, match=r"column 'name' is 'title' now. Set option schemaEvents=deliver"):
        stream.trigger()
    stream.given = {"schemaevents": "deliver"}
    stream.start()
    assert kinds(stream.trigger(), "id", "title", "_schema_change") == [
        ("rename_column", None, None, '{"change": "rename_column", "column": "name", "new_name": "title", "schema_versions": [5, 6]}'),
        ("insert", 4, "D", None),
    ]


def test_rows_that_were_delivered_before_get_the_default_of_a_new_column_by_an_event(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)")
    stream = Stream(db, "t")
    stream.trigger()
    db.must("insert into t values(2)", "alter table t add column qty integer not null default 7", "insert into t values(3, 8)")
    stream.start()
    with pytest.raises(SchemaChanged, match="column 'qty' was added, with 7 in all rows"):
        stream.trigger(1)
    stream.given = {"schemaevents": "deliver"}
    stream.start()
    assert kinds(stream.trigger(1), "id", "qty", "_seq") == [("add_column", None, 7, -1), ("insert", 2, 7, 0)]
    assert stream.trigger(1) == []
    assert kinds(stream.trigger(1), "id", "qty") == [("insert", 3, 8)]
    fresh = Stream(db, "t")
    assert [row for _ in range(5) for row in kinds(fresh.trigger(1), "id", "qty")] == [("insert", 1, 7), ("insert", 2, 7), ("insert", 3, 8)]
    with pytest.raises(SchemaChanged, match="with 7 in all rows"):
        db.batch("t", startingversion="2")


def test_a_stream_does_not_go_on_with_another_table(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)")
    stream = Stream(db, "t")
    stream.trigger()
    db.must(
        "alter table t rename to old", "insert into old values(2)", "create table t(id integer primary key)", "insert into t values(10)"
    )
    with pytest.raises(SchemaChanged, match="'t' was renamed to 'old' at version 2: start the query again with option table=old"):
        stream.trigger()
    stream.start()
    with pytest.raises(SchemaChanged, match="is another one: it was created later"):
        stream.trigger()
    stream.table = "old"
    stream.start()
    assert kinds(stream.trigger(), "id") == [("insert", 2)]
    stream.table = "t"
    db.must("insert into t values(11)")
    stream.start()
    with pytest.raises(SchemaChanged, match="'t' is another one: it was created later"):
        stream.trigger()


def test_a_running_stream_of_a_dropped_database_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(cluster: Cluster) -> None:
        admin, loop = cluster.client("admin"), asyncio.get_running_loop()
        caller: Any = SimpleNamespace(call=lambda task: asyncio.run_coroutine_threadsafe(task, loop).result())
        reached = SimpleNamespace(databases=lambda: BlockingDatabases(caller, admin))
        monkeypatch.setattr(connections, "client", lambda _uri: reached)
        log = (await database_info(admin, "db")).log
        await rename_database(admin, "db", "newer")
        await asyncio.to_thread(database_tables.check_kept, "memory:", "db", log)
        await drop_database(admin, "newer")
        with pytest.raises(NoSuchLog, match=r"database 'db' was dropped.*undelete"):
            await asyncio.to_thread(database_tables.check_kept, "memory:", "db", log)

    play(tmp_path / "cluster", scene, nodes=1)
    with shop(tmp_path, monkeypatch) as db:
        db.must("create table t(id integer primary key)")
        stream = Stream(db, "t")
        stream.trigger()
        monkeypatch.setattr(change_source, "DROPPED_INTERVAL_S", 0.0)
        asked: list[tuple[object, ...]] = []
        monkeypatch.setattr(database_tables, "check_kept", lambda *given: asked.append(given))
        stream.trigger()
        assert asked == [("memory:", "shop", "shop-log")]


def test_a_stream_of_a_dropped_table_ends(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)")
    stream, events = Stream(db, "t"), Stream(db, "t", schemaevents="deliver")
    stream.trigger(), events.trigger()
    db.must("drop table t")
    with pytest.raises(SchemaChanged, match="'t' was dropped at version 2"):
        stream.trigger()
    assert kinds(events.trigger(), "id") == [("drop_table", None)]
    db.must("create table t(id integer primary key)")
    with pytest.raises(SchemaChanged, match="another table was created under this name"):
        events.trigger()
    events.start()
    with pytest.raises(SchemaChanged, match="is another one"):
        events.trigger()


def test_a_stream_with_columns_of_its_own_does_not_mind_others(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text, x text)", "insert into t values(1, 'A', 'x')")
    stream = Stream(db, "t", struct_of(OWN))
    stream.trigger()
    db.must(
        "alter table t add y text default 'y'",
        "alter table t rename x to z",
        "alter table t drop column z",
        "insert into t values(2, 'B', 'y')",
    )
    assert kinds(stream.trigger(), "id") == [("insert", 2)]
    stream.start()
    db.must("insert into t values(3, 'C', 'y')")
    assert kinds(stream.trigger(), "id") == [("insert", 3)]


def test_a_checkpoint_of_an_earlier_release_is_read(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)", "insert into t values(2)")
    stream = Stream(db, "t")
    stream.checkpoint = {"logs": {"shop-log": 2}, "v": 1}
    assert kinds(stream.trigger(), "id") == [("insert", 2)]
    assert stream.checkpoint == {"logs": {"shop-log": 3}, "named": 1, "schema": 1, "table": "t", "types": "declared", "v": 2}
    again = Stream(db, "t")
    again.checkpoint = {"logs": {"shop-log": 2}, "v": 1}
    db.must("drop table t", "create table t(id integer primary key)")
    with pytest.raises(SchemaChanged, match="is another one"):
        again.trigger()
    for bad in ({"logs": {"shop-log": 2}, "v": 3}, {"logs": {"other": 2}, "v": 1}, {"logs": {"shop-log": "2"}, "v": 2}):
        again.checkpoint = dict(bad)
        with pytest.raises(FormatError):
            again.trigger()


def test_a_log_that_was_truncated_does_not_hold_all_rows_of_an_older_table(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A')", "alter table t rename name to title")
    db.must("insert into t values(2, 'B')", "create table u(id integer primary key)", "insert into u values(1)")
    db.first = 3
    with pytest.raises(OffsetTruncated, match="begins at version 3, and table 't' is older"):
        db.batch("t")
    with pytest.raises(OffsetTruncated, match="is older"):
        Stream(db, "t").trigger()
    assert kinds(db.batch("t", startingversion="earliest"), "id", "title") == [("insert", 2, "B")]
    assert kinds(db.batch("u"), "id") == [("insert", 1)]
    db.first = 2
    assert kinds(db.batch("t", startingversion="earliest"), "id", "title") == [("insert", 2, "B")]
    with pytest.raises(SchemaChanged, match="'name' is 'title' now"):
        db.batch("t", startingversion="2")
    with pytest.raises(ArgumentError, match="ends at version 6; startingVersion says 99"):
        db.batch("t", startingversion="99")


def test_a_log_of_which_nothing_is_left_does_not_feed_an_empty_table(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)")
    db.first = 2
    with pytest.raises(OffsetTruncated, match="begins at version 2, and table 't' is older"):
        db.batch("t")
    with pytest.raises(OffsetTruncated, match="is older"):
        Stream(db, "t").trigger()


def test_a_stream_that_began_with_a_copy_does_not_go_on_with_another_table(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "create table u(id integer primary key)", "insert into t values(1)")
    stream = Stream(db, "t", startingversion="3")
    assert stream.trigger() == []
    db.must("insert into u values(1)")
    stream.table = "u"
    stream.start()
    with pytest.raises(SchemaChanged, match=r"named 't'.*another one"):
        stream.trigger()
    stream.table = "t"
    db.must("alter table t rename to v", "insert into v values(2)")
    stream.table = "v"
    stream.start()
    assert kinds(stream.trigger(), "id") == [("insert", 2)]


def test_a_first_batch_that_was_planned_for_another_table_is_not_read(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "create table u(id integer primary key)", "insert into t values(1)")
    stream = Stream(db, "t")
    assert stream.plan() != []
    stream.table = "u"
    db.must("alter table t rename to v", "insert into u values(2)")
    for _ in range(2):
        stream.start()
        with pytest.raises(SchemaChanged, match=r"is to read rows of the table that was named 't'.*'u' is another one"):
            stream.trigger()
    stream.table = "v"
    stream.start()
    assert kinds(stream.trigger(), "id") == [("insert", 1)]


def test_a_stream_whose_place_is_where_the_log_begins_goes_on(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)")
    stream = Stream(db, "t")
    stream.trigger()
    db.must("insert into t values(2)")
    db.first = 2
    stream.start()
    assert kinds(stream.trigger(), "id") == [("insert", 2)]


def test_columns_of_a_node_that_lags_are_not_used_for_newer_rows(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A')")
    db.lagging["t"] = db.columns("t")
    db.must("alter table t rename name to title", "insert into t values(2, 'B')")
    with pytest.raises(SchemaChanged, match=r"renamed to 'title' at version 2. This query has the former columns"):
        db.batch("t")
    with pytest.raises(SchemaChanged, match="renamed to 'title' at version 2"):
        db.batch("t", startingversion="3")
    del db.lagging["t"]
    stream = Stream(db, "t")
    stream.trigger()
    db.must("insert into t values(3, 'C')")
    db.lagging["t"] = db.columns("t")
    object.__setattr__(db.lagging["t"], "schema_version", 1)
    stream.start()
    with pytest.raises(SchemaChanged, match="it lags"):
        stream.trigger()


def test_a_log_that_lags_behind_the_node_is_waited_for(db: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_source, "BEHIND_S", 0.0)
    db.must("create table t(id integer primary key)", "insert into t values(1)")
    db.lagging["t"] = db.columns("t")
    object.__setattr__(db.lagging["t"], "schema_version", 2)
    with pytest.raises(EnvironmentFault, match="cannot be read up to schema version 2"):
        db.batch("t")


def test_few_entries_are_read_to_find_the_schema_changes(db: Shop) -> None:
    db.must("create table t(id integer primary key, a text)")
    for number in range(300):
        db.must(f"insert into t(id, a) values({number}, 'x')")
        if number in (100, 200):
            db.must(f"alter table t add column c{number} integer default {number}")
    db.reads = 0
    source = db.source("t")
    reader = source.reader(struct_of(source.schema()))
    assert len(reader.partitions()) > 90
    assert db.reads < 40


def test_a_table_named_virtual_has_the_rows_with_which_it_was_created(db: Shop) -> None:
    db.must("create table virtual as select cast('x' as text) as id, hex(randomblob(8)) as chance")
    rebuilt_equals(db, "virtual")
    assert len(db.batch("virtual")) == 1


def test_events_come_once_where_a_batch_is_read_by_the_query_after(db: Shop) -> None:
    db.must("create table t(id integer primary key, a text, b text)", "insert into t values(1, 'A', 'B')")
    stream = Stream(db, "t", schemaevents="deliver")
    stream.trigger()
    db.must(
        "insert into t values(2, 'A', 'B')", "alter table t rename a to c", "alter table t rename b to a", "alter table t rename c to b"
    )
    db.must("alter table t add column d integer default 7", "insert into t values(3, 'B', 'A', 8)")
    with pytest.raises(SchemaChanged, match="column 'a' was renamed"):
        stream.trigger()
    stream.start()
    events = ["rename_column", "rename_column", "add_column"]
    assert [row["_change_type"] for row in stream.trigger()] == [*events, "insert", "insert"]
    db.must("insert into t values(4, 'B', 'A', 9)")
    assert [row["_change_type"] for row in stream.trigger()] == ["insert"]
    again = Stream(db, "t", schemaevents="deliver")
    again.checkpoint = {"logs": {"shop-log": 8}, "named": 1, "schema": 1, "table": "t", "v": 2}
    assert [row["_change_type"] for row in again.trigger()] == ["insert"], "the batch that ends there is committed"


def test_a_renamed_table_is_followed_where_nothing_has_happened_since(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)")
    stream = Stream(db, "t")
    stream.trigger()
    db.must("alter table t rename to u", "create table t(id integer primary key)")
    with pytest.raises(SchemaChanged, match="'t' was renamed to 'u'"):
        stream.trigger()
    stream.table = "u"
    stream.start()
    assert stream.trigger() == []
    assert (stream.checkpoint or {})["logs"] == {"shop-log": 4}
    for _ in range(2):
        assert stream.trigger() == []
        stream.start()
    stream.table = "t"
    stream.start()
    db.must("insert into t values(5)")
    with pytest.raises(SchemaChanged, match="'t' is another one"):
        stream.trigger()


def test_a_checkpoint_beyond_the_end_of_the_log_ends_the_query(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)")
    for version in (3, 99):
        stream = Stream(db, "t")
        stream.checkpoint = {"logs": {"shop-log": version}, "named": 1, "schema": 1, "table": "t", "v": 2}
        with pytest.raises(LogReplaced, match=f"ends at version 2, and the checkpoint is at {version}.*new checkpoint"):
            stream.trigger()
    stream = Stream(db, "t")
    stream.checkpoint = {"logs": {"shop-log": 1}, "named": 1, "schema": 1, "table": "t", "v": 2}
    stream.planned = {"logs": {"shop-log": 5}, "named": 1, "schema": 1, "table": "t", "v": 2}
    with pytest.raises(LogReplaced, match="is at 5"):
        stream.trigger()


def test_an_end_that_was_seen_late_is_asked_for_again(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1)")
    stream = Stream(db, "t")
    stream.trigger()
    stream.start()
    db.seen = 1
    assert stream.trigger() == [], "a server that is behind is no loss"
    db.seen = None
    db.must("insert into t values(2)")
    assert kinds(stream.trigger(), "id") == [("insert", 2)]


def test_a_column_of_a_users_schema_that_was_dropped_and_made_again_is_reported(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'old')")
    stream = Stream(db, "t", struct_of(OWN))
    stream.trigger()
    db.must("alter table t drop column name", "alter table t add column name text", "insert into t values(2, 'new')")
    stream.start()
    with pytest.raises(SchemaChanged, match=r"column 'name' is dropped.*schemaEvents=deliver"):
        stream.trigger()


def test_a_version_at_which_another_table_had_the_name_is_refused(db: Shop) -> None:
    db.must("create table t(id integer primary key)", "insert into t values(1), (2)", "create table u(id integer primary key)")
    db.must("insert into u values(1)", "alter table t rename to old", "alter table u rename to t", "insert into t values(3)")
    for version in ("1", "2", "4"):
        with pytest.raises(SchemaChanged, match=f"at version {version} another table had the name 't'"):
            db.batch("t", startingversion=version)
        with pytest.raises(SchemaChanged, match="another table had the name 't'"):
            Stream(db, "t", startingversion=version).trigger()
    for version in ("0", "earliest"):
        assert kinds(db.batch("t", startingversion=version), "id") == [("insert", 1), ("insert", 3)]
    assert kinds(db.batch("t", startingversion="6"), "id") == [("insert", 3)]
    db.must("drop table t", "create table t(id integer primary key)", "insert into t values(4)")
    with pytest.raises(SchemaChanged, match="at version 6 another table"):
        db.batch("t", startingversion="6")
    assert kinds(db.batch("t", startingversion="8"), "id") == [("insert", 4)]


def test_a_node_that_lags_behind_the_beginning_of_the_log_is_not_believed(db: Shop) -> None:
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A')")
    db.lagging["t"] = db.columns("t")
    db.must(
        "drop table t", "create table t(id integer primary key, name text)", "insert into t values(2, 'B')", "insert into t values(3, '')"
    )
    db.first = 4
    with pytest.raises(EnvironmentFault, match="has schema version 1, and the log does not hold all schema changes since: the node lags"):
        db.batch("t", startingversion="earliest")
    with pytest.raises(EnvironmentFault, match="the node lags"):
        db.batch("t", startingversion="5")


def test_a_column_of_any_type_has_its_default_as_a_strict_table_has_it(db: Shop) -> None:
    for options in ("strict", "strict, without rowid", "without rowid"):
        db.must(f"create table t(id integer primary key, b any) {options}", "insert into t values(1, 'x')")
        db.must("alter table t add c any default '007'", "alter table t rename to u", "insert into u values(2, 'y', '008')")
        assert [str(row["c"]) for row in db.batch("u")] == [str(row["c"]) for row in db.rows("u", ["c"])], options
        db.must("drop table u")
    db.must("create table t(id integer primary key) strict", "insert into t values(1)", "insert into t values(2)")
    db.must("alter table t add c any default '007'", "insert into t values(3, 1)")
    db.first = db.end - 3
    with pytest.raises(SchemaChanged, match=r"column 'c' was added with type ANY.*whether the table is STRICT"):
        db.batch("t", startingversion="earliest")
    db.first = db.end - 1
    assert kinds(db.batch("t", startingversion="earliest"), "id") == [("insert", 3)]


def test_an_empty_batch_that_a_query_plans_when_it_starts_hides_no_change(db: Shop) -> None:
    """PySpark 4.1 plans the last batch again, from its end to its end. A change of the columns behind it was taken for delivered."""
    db.run("create table t(id integer primary key)", "insert into t values (1)")
    stream = Stream(db, "t")
    stream.trigger()
    db.run("alter table t add b integer default 3", "insert into t values (2, 4)")
    checkpoint = stream.checkpoint
    assert checkpoint is not None
    assert stream.start().partitions(checkpoint, checkpoint) == []
    with pytest.raises(SchemaChanged, match="column 'b' was added"):
        stream.trigger()
