"""A change feed that begins with the table's content."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql.datasource import DataSourceStreamReader, WriterCommitMessage

from tests.unit.spark.feed_stand import Mirror, Row, Shop, Stream, in_order, own_columns, same, shop, struct_of
from tests.unit.spark.micro_batches import Checkpoint, Query
from triplicate.errors import ConfigError, EnvironmentFault, OffsetTruncated, SchemaChanged
from triplicate.spark.change_feed import change_source
from triplicate.spark.cluster import database_tables, table_content
from triplicate.spark.cluster.table_content import stored_value

SNAPSHOT: Any = {"startingversion": "snapshot"}
POINT = 2
"""The number of rows in each part of a snapshot here."""


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setattr(table_content, "ROWS_PER_PART", POINT)
    with shop(tmp_path, monkeypatch) as made:
        made.past = {}
        yield made


def facts(rows: list[Row], *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in ("_change_type", "_commit_version", "_seq", *columns)) for row in rows]


def filled(db: Shop) -> None:
    """Versions 0 to 5; the log begins at version 3."""
    db.must("create table t(id integer primary key, name text)", "insert into t values(1, 'A'), (20, 'B'), (300, 'C')")
    db.must("update t set name = 'b' where id = 20", "insert into t values(4000, 'D')", "delete from t where id = 1")
    db.must("insert into t values(50000, 'E')")
    db.first = 3


def test_a_stream_begins_with_the_content_and_goes_on_with_the_changes(db: Shop) -> None:
    filled(db)
    stream = Stream(db, "t", maxversionspertrigger="1", **SNAPSHOT)
    parts = stream.plan()
    assert [(part.content.part.low, part.content.part.high) for part in parts] == [(20, 4000), (4000, None)]  # type: ignore[attr-defined]
    assert facts(stream.trigger(), "id", "name") == [
        ("insert", 5, 0, 20, "b"),
        ("insert", 5, 1, 300, "C"),
        ("insert", 5, 2, 4000, "D"),
        ("insert", 5, 3, 50000, "E"),
    ]
    assert stream.checkpoint == {"logs": {"shop-log": 6}, "named": 1, "schema": 1, "table": "t", "types": "declared", "v": 2}
    assert stream.trigger() == []
    db.must("update t set name = 'e' where id = 50000", "delete from t where id = 20")
    assert facts(stream.trigger(), "id") == [("update_postimage", 6, 0, 50000)]
    stream.start()
    assert facts(stream.trigger(), "id") == [("delete", 7, 0, 20)]


def test_a_batch_is_the_content_at_its_end(db: Shop) -> None:
    filled(db)
    assert facts(db.batch("t", endingversion="3", **SNAPSHOT), "id", "name") == [
        ("insert", 3, 0, 1, "A"),
        ("insert", 3, 1, 20, "b"),
        ("insert", 3, 2, 300, "C"),
        ("insert", 3, 3, 4000, "D"),
    ]
    assert [row["id"] for row in db.batch("t", **SNAPSHOT)] == [20, 300, 4000, 50000]
    with pytest.raises(OffsetTruncated, match=r"begins at version 3, and the content of table 't' before version 3 .* new checkpoint"):
        db.batch("t", endingversion="2", **SNAPSHOT)


def test_the_content_has_the_types_and_the_stored_values_of_the_feed(db: Shop) -> None:
    db.must(
        "create table v(id integer primary key, b boolean, d date, at timestamptz, n numeric(9,2), m numeric, f real, x blob, j jsonb, s)",
        "insert into v values(1, 1, '2026-01-31', '2026-01-31 04:05:06.500000+00:00', 2.5, 3, 0.1, x'00ff', '[1]', 'it''s \\ a\ttab')",
        "insert into v(id, s) values(2, x'41'), (3, 5), (4, 2.5)",
    )
    db.must("insert into v(id, f) values(5, 9e999), (6, -9e999), (7, 3.0)")
    mine = ("_change_type", "_commit_version", "_commit_timestamp", "_seq")
    given: Any
    for given in ({}, {"columntypes": "text"}):
        content, changes = db.batch("v", **SNAPSHOT, **given), db.batch("v", None, **given)
        assert [{name: row[name] for name in row if name not in mine} for row in content] == [
            {name: row[name] for name in row if name not in mine} for row in changes
        ]
    first = db.batch("v", **SNAPSHOT)[0]
    assert (first["d"], first["n"], first["x"], first["b"]) == (dt.date(2026, 1, 31), Decimal("2.50"), b"\x00\xff", True)
    assert first["_commit_timestamp"] == db.batch("v")[-1]["_commit_timestamp"]


def test_tables_without_an_integer_key_have_their_content_too(db: Shop) -> None:
    db.must("create table t(rowid text, b text)", "insert into t values('x', 'x'), ('x', 'x'), ('y', 'z')", "delete from t where oid = 2")
    db.must("create table w(k text, l int, v text, primary key(l, k)) without rowid", "insert into w values('a', 2, 'B'), ('b', 1, 'A')")
    db.must('create table "Select ""x"""(id integer primary key, "a b" text)')
    db.must('insert into "Select ""x""" values(7, 8)', "create table empty(id integer primary key)")
    assert [(row["_rowid"], row["rowid"], row["b"], row["_seq"]) for row in db.batch("t", **SNAPSHOT)] == [
        (1, "x", "x", 0),
        (3, "y", "z", 1),
    ]
    assert [(row["l"], row["k"], row["v"]) for row in db.batch("w", **SNAPSHOT)] == [(1, "b", "A"), (2, "a", "B")]
    assert [(row["id"], row["a b"]) for row in db.batch('SELECT "X"', **SNAPSHOT)] == [(7, "8")]
    assert db.batch("empty", **SNAPSHOT) == []
    only = struct_of("_commit_version LONG, _seq INT, _change_type STRING")
    assert len(db.batch("w", only, **SNAPSHOT)) == 2
    with pytest.raises(ConfigError, match="no column 'foo'"):
        db.batch("w", struct_of("`k` STRING, `foo` STRING, _commit_version LONG, _seq INT"), **SNAPSHOT)


def test_a_planned_snapshot_is_read_as_of_its_position_in_the_present_columns(db: Shop) -> None:
    filled(db)
    stream = Stream(db, "t", schemaevents="deliver", **SNAPSHOT)
    stream.plan()
    db.must("alter table t rename column name to title", "alter table t add column n integer default 7", "delete from t")
    stream.start()
    rows = stream.trigger()
    assert [(row["id"], row["title"], row["n"]) for row in rows] == [(20, "b", 7), (300, "C", 7), (4000, "D", 7), (50000, "E", 7)]
    mirror = Mirror()
    columns = own_columns(struct_of(stream.ddl))
    mirror.apply(rows, columns, ["id"])
    mirror.apply(stream.trigger(), columns, ["id"])
    assert mirror.rows == []


def test_a_planned_snapshot_of_another_table_is_not_read(db: Shop) -> None:
    filled(db)
    stream = Stream(db, "t", **SNAPSHOT)
    stream.plan()
    db.must("drop table t", "create table t(id integer primary key)")
    stream.start()
    with pytest.raises(SchemaChanged, match="'t' is another one: it was created later"):
        stream.trigger()


def test_a_snapshot_that_is_not_kept_any_more_asks_for_a_new_checkpoint(db: Shop) -> None:
    filled(db)
    stream = Stream(db, "t", **SNAPSHOT)
    stream.plan()
    db.must("insert into t(id) values(6)")
    db.past = {}
    with pytest.raises(OffsetTruncated, match=r"position 6 cannot be read any more: begin with a new checkpoint"):
        stream.trigger()
    db.first = 6
    with pytest.raises(OffsetTruncated, match=r"before version 6 was not read yet: begin with a new checkpoint"):
        stream.trigger()


def test_columns_of_a_node_that_lags_are_not_taken_for_those_of_the_content(db: Shop) -> None:
    filled(db)
    db.lagging["t"] = db.columns("t")
    db.must("alter table t add column n integer default 7")
    with pytest.raises(SchemaChanged, match=r"column 'n' was added at version 6.*start it again"):
        Stream(db, "t", **SNAPSHOT).trigger()
    db.must("create table u(id integer primary key)")
    db.lagging["u"] = db.columns("u")
    db.must("drop table u")
    with pytest.raises(SchemaChanged, match="'u' was dropped at version 8"):
        Stream(db, "u", **SNAPSHOT).trigger()


def test_the_content_needs_nothing_of_the_log_before_it(db: Shop) -> None:
    """The default of such a column in earlier rows depends on the table's creation; the content has none of these rows."""
    filled(db)
    db.must("alter table t add column x any default '007'")
    db.first = 6
    assert [row["x"] for row in db.batch("t", **SNAPSHOT)] == ["7"] * 4
    assert len(Stream(db, "t", **SNAPSHOT).trigger()) == 4


def test_a_stream_of_another_table_is_refused_where_nothing_of_the_log_is_left(db: Shop) -> None:
    filled(db)
    db.must("create table u(id integer primary key)")
    stream = Stream(db, "t", **SNAPSHOT)
    stream.trigger()
    db.first = db.end
    stream.table = "u"
    stream.start()
    with pytest.raises(SchemaChanged, match="has read rows of table 't', and the query requests 'u': use a new checkpoint"):
        stream.trigger()


def test_pyspark_4_1_asks_for_the_end_first_and_gets_the_content_once(db: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names no position of the stream, and plans the last batch again, from its end to its end, when a query starts."""
    monkeypatch.setattr(change_source, "HAS_LIMITS", False)
    filled(db)
    reader = Stream(db, "t", **SNAPSHOT).start()
    content = reader.latestOffset()
    db.must("insert into t(id) values(6)")
    later = Stream(db, "t", **SNAPSHOT).start()
    rows = in_order([batch for part in later.partitions(later.initialOffset(), content) for batch in later.read(part)])
    assert [row["id"] for row in rows] == [20, 300, 4000, 50000]
    again = Stream(db, "t", **SNAPSHOT).start()
    assert list(again.partitions(content, content)) == []
    changes = [batch for part in again.partitions(content, again.latestOffset()) for batch in again.read(part)]
    assert [row["id"] for row in in_order(changes)] == [6]


@dataclass
class Tasks:
    """A sink that keeps what was committed, each batch once."""

    batches: dict[int, list[Row]] = field(default_factory=dict)


@dataclass
class Rows(WriterCommitMessage):
    rows: list[Row]


KEPT = Tasks()


class Sink:
    """The writer of a stream; its copies in tasks have nothing of it."""

    def write(self, batches: Iterator[Any]) -> Rows:
        return Rows([row for batch in batches for row in batch.to_pylist()])

    def commit(self, messages: list[Rows], batch: int) -> None:
        rows = [row for message in messages for row in message.rows]
        assert KEPT.batches.setdefault(batch, rows) == rows, "a batch that is done again has the same rows"

    def abort(self, messages: list[Rows], batch: int) -> None:
        raise AssertionError(f"batch {batch} was aborted")


@dataclass
class FeedQuery(Query):
    db: Shop | None = None

    def reader(self) -> DataSourceStreamReader:
        assert self.db is not None
        source = self.db.source("t", maxversionspertrigger="2", **SNAPSHOT)
        return source.streamReader(struct_of(source.schema()))

    def writer(self) -> Sink:
        return Sink()


def test_a_driver_that_is_killed_at_any_step_loses_and_doubles_nothing(db: Shop) -> None:
    """At each step one driver ends, and rows change before the next one starts."""
    filled(db)
    steps: list[str] = []
    for step in count():
        KEPT.batches.clear()
        query = FeedQuery({}, {}, Checkpoint(), db=db)
        driver: Any = query.driver()
        steps = list(islice(driver, step))
        if len(steps) < step:
            break
        driver.close()
        db.must("delete from t where id > 50000", f"insert into t values(60000, '{step}')", "update t set name = name || '!' where id = 20")
        db.must("insert into t values(70000, 'F')", "delete from t where id = 70000", "insert into t values(80000, 'G')")
        for _ in query.driver():
            pass
        mirror = Mirror()
        for batch in sorted(KEPT.batches):
            mirror.apply(sorted(KEPT.batches[batch], key=itemgetter("_commit_version", "_seq")), ["id", "name"], ["id"])
        assert same(mirror.rows, db.rows("t", ["id", "name"])), steps
        assert set(KEPT.batches) == query.checkpoint.commits
    assert [step for step in steps if step.startswith("commit file")] == ["commit file of batch 0"]
    assert len([step for step in steps if step.startswith("task")]) == 3


def test_literals_are_read_as_the_values_that_they_stand_for() -> None:
    assert [stored_value(text) for text in ("NULL", "-7", "2.5", "-9.0e+999", "'it''s'", "''", "X'00FF'", "X''")] == [
        None,
        -7,
        2.5,
        float("-inf"),
        "it's",
        "",
        b"\x00\xff",
        b"",
    ]


class Node:
    """A connection to a node that refuses the past with these states, and then gives it."""

    def __init__(self, *states: str) -> None:
        self.states = list(states)
        self.closed = False

    def execute(self, statement: str) -> None:
        assert statement == "SET triplicate.as_of = 'position 7'"
        if self.states:
            raise type(f"State{self.states[0]}", (psycopg.OperationalError,), {"sqlstate": self.states.pop(0)})("refused")

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True


def at_position(monkeypatch: pytest.MonkeyPatch, first: str = "", **nodes: Node) -> str:
    monkeypatch.setattr(database_tables, "node_connections", lambda *_: {name: lambda node=node: node for name, node in nodes.items()})
    with table_content.past_connection("memory:", "shop", "position 7", first) as (address, _):
        return address


def test_the_node_that_has_the_copy_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {"a": Node(), "b": Node("55P03", "55P03")}
    assert at_position(monkeypatch, "b", **nodes) == "b", "it is asked again until its copy is ready"
    assert nodes["b"].closed
    assert at_position(monkeypatch, "gone", **nodes) == "a"


def test_a_node_that_cannot_give_the_past_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert at_position(monkeypatch, a=Node("53400"), b=Node("55000"), c=Node()) == "c"
    with pytest.raises(OffsetTruncated, match=r"position 7 cannot be read \(refused\); a stream"):
        at_position(monkeypatch, a=Node("55000"), b=Node("55000"))
    with pytest.raises(EnvironmentFault, match="no node of database 'shop' has given its content"):
        at_position(monkeypatch, a=Node("55000"), b=Node("0A000"))
    with pytest.raises(EnvironmentFault, match="none runs"):
        at_position(monkeypatch)


def test_an_error_while_the_content_is_read_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node()
    monkeypatch.setattr(database_tables, "node_connections", lambda *_: {"a:1": lambda: node})
    with (
        pytest.raises(EnvironmentFault, match="node a:1 of database 'shop': no right"),
        table_content.past_connection("memory:", "shop", "position 7"),
    ):
        raise psycopg.OperationalError("no right")
    assert node.closed
