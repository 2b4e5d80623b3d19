"""A table rebuilt from its change feed equals the table, whatever happens to its rows, its columns and its name."""

from __future__ import annotations

import random
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.spark.feed_stand import Mirror, Row, Shop, Stream, own_columns, same, shop, struct_of
from triplicate.errors import ConfigError, OffsetTruncated, SchemaChanged

NAMES = ("t", "u", "V")
COLUMNS = ("a", "b", "c", "D")
TABLES = (
    "create table {name}(id integer primary key, a text, b integer)",
    "create table {name}(a text, b integer)",
    "create table {name}(a text primary key, b integer default 5, c real)",
    "create table {name}(a text, b integer, c text, primary key(b, a)) without rowid",
    "create table {name}(id integer primary key, a text, g text as (a || '!') virtual, b integer)",
    "create table {name}(a text collate nocase primary key, g text as (a || '!') stored, b integer unique)",
    "create table {name}(id integer primary key autoincrement, a text references {other} on delete cascade on update cascade, b integer)",
    "create table {name} as select * from {other}",
    "create table if not exists {name}(id integer primary key, D text)",
)
ADDED = (
    "",
    " text default 'new'",
    " integer not null default 7",
    " real default 3",
    " text default 8",
    " integer default (-(2))",
    " default null",
)
VALUES = ("null", "'x'", "'y'", "'Y'", "1", "2", "17")


def value(chance: random.Random, declared: str) -> str:
    if chance.random() < 0.15:
        return "null"
    if "INT" in declared.upper():
        return str(chance.randrange(1, 6))
    if "REAL" in declared.upper():
        return str(chance.randrange(1, 9) / 2)
    return chance.choice(("'x'", "'y'", "'X'", "'z'"))


def schema_change(chance: random.Random, db: Shop) -> str:
    """Mostly to a table and columns that there are."""
    tables = db.tables()
    name, other = chance.choice(NAMES), chance.choice(tables or list(NAMES))
    if not tables or chance.random() < 0.3:
        return chance.choice(TABLES).format(name=name, other=other)
    names = [column for column, _ in db.columns(other).columns]
    column, new = chance.choice(names), chance.choice(COLUMNS)
    return chance.choice(
        [
            f"drop table {other}",
            f"alter table {other} rename to {name}",
            f"alter table {other} rename column {column} to {new}",
            f"alter table {other} rename {column} to {new}",
            f"alter table {other} add column {new}{chance.choice(ADDED)}",
            f"alter table main.{other} add {new}{chance.choice(ADDED)}",
            f"alter table {other} drop column {column}",
            f"alter table {other} set (change_images = {chance.choice(['full', 'keys'])})",
            f"create index i{chance.randrange(99)} on {other}({column})",
            "analyze",
        ]
    )


def row_change(chance: random.Random, db: Shop) -> str:
    tables = db.tables()
    if not tables:
        return schema_change(chance, db)
    table = chance.choice(tables)
    columns = db.columns(table).columns
    listed = ", ".join(name for name, _ in columns)
    values = ", ".join(value(chance, declared) for _, declared in columns)
    (column, declared), (other, kind) = chance.choice(columns), chance.choice(columns)
    return chance.choice(
        [
            f"insert or ignore into {table}({listed}) values({values})",
            f"insert or replace into {table}({listed}) values({values})",
            f"insert into {table}({listed}) values({values}) on conflict do update set {other} = excluded.{other}",
            f"update or ignore {table} set {column} = {value(chance, declared)} where {other} is {value(chance, kind)}",
            f"update or replace {table} set {column} = {value(chance, declared)}, {other} = {value(chance, kind)}",
            f"update {table} set {column} = {column} + 10",
            f"delete from {table} where {column} is {value(chance, declared)}",
        ]
    )


class Consumer:
    """A stream in a mirror of its table: it goes on, is started again, or begins again with a new checkpoint where it must."""

    def __init__(self, db: Shop, table: str) -> None:
        self.db = db
        self.restarts = self.beginnings = self.copies = 0
        self.columns: list[str] = []
        self.key: list[str] = []
        self.begin(table)

    def begin(self, table: str, *, copy: bool = False) -> None:
        """With a new checkpoint at the table's creation, or with a copy of the table."""
        self.beginnings += 1
        self.mirror = Mirror()
        given = {}
        if copy:
            self.copies += 1
            given["startingversion"] = str(self.db.reader.execute("select position from triplicate_state").fetchall()[0][0])
            self.mirror.rows = table_rows(self.db, table)
        self.stream = Stream(self.db, table, None, schemaevents="deliver", **given)

    def batch(self, most: int | None) -> None:
        """One micro-batch, by a query that is started first where none runs."""
        if self.stream.reader is None:
            self.restarts += 1
            self.stream.start()
            self.columns = own_columns(struct_of(self.stream.ddl))
            self.key = self.db.key(self.stream.table)
        try:
            changes = self.stream.trigger(most)
        except (SchemaChanged, ConfigError, OffsetTruncated):
            self.stream.reader = None
            raise
        self.mirror.apply(changes, self.columns, self.key)

    @property
    def position(self) -> int:
        return int(self.stream.checkpoint["logs"]["shop-log"]) if self.stream.checkpoint else 0

    def read_on(self, chance: random.Random) -> None:
        """A batch or two, now and then by a query that was started again; it may end at a change of the table."""
        if chance.random() < 0.4:
            self.stream.reader = None
        with suppress(SchemaChanged, ConfigError, OffsetTruncated):
            self.batch(chance.choice((None, 1, 3)))

    def catch_up(self, table: str) -> None:
        """Read all there is of a table: with the checkpoint there is where it is of this table, otherwise with a new one."""
        if self.stream.table != table:
            self.stream.table, self.stream.reader = table, None
        for attempt in range(4):
            try:
                self.batch(None)
                while self.position < self.db.end:  # What was planned before ends before what happened since.
                    self.batch(None)
                return
            except SchemaChanged:
                if attempt:
                    self.begin(table)
            except OffsetTruncated:
                self.begin(table, copy=True)
        raise AssertionError("the stream does not reach the end")


def table_rows(db: Shop, table: str) -> list[Row]:
    """What a table holds, as Spark has it: a column without a type of its own is text there."""
    schema = struct_of(db.source(table).schema())
    columns = own_columns(schema)
    text = [name for name in columns if schema[name].dataType.simpleString() == "string"]
    rows = db.rows(table, columns)
    for row in rows:
        row.update({name: str(row[name]) for name in text if row[name] is not None})
    return rows


def equal(db: Shop, mirror: Mirror, table: str) -> None:
    rows = table_rows(db, table)
    assert same(mirror.rows, rows), f"{table}: rebuilt {mirror.rows}, there are {rows}"


def play(chance: random.Random, db: Shop) -> Consumer:
    consumer = Consumer(db, chance.choice(NAMES))
    for _ in range(chance.randrange(4, 16)):
        statements = [schema_change(chance, db) if chance.random() < 0.3 else row_change(chance, db) for _ in range(chance.randrange(1, 6))]
        if chance.random() < 0.5:
            db.run(*statements)
        else:
            db.transaction(*statements)
        if chance.random() < 0.6:
            consumer.read_on(chance)
        if chance.random() < 0.05:
            db.first = chance.randrange(db.first, db.end + 1)
        tables = db.tables()
        if tables and chance.random() < 0.3:
            table = chance.choice(tables)
            consumer.catch_up(table)
            equal(db, consumer.mirror, table)
    for table in db.tables():
        mirror = Mirror()
        columns = own_columns(struct_of(db.source(table).schema()))
        with suppress(OffsetTruncated):  # The log was truncated behind the table's creation: there is no feed that could mislead.
            mirror.apply(db.batch(table), columns, db.key(table))
            equal(db, mirror, table)
    return consumer


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32 - 1))
def test_a_table_rebuilt_from_its_feed_equals_the_table(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch, shop(Path(folder), patch) as db:
        play(random.Random(seed), db)
