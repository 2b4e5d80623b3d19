"""A table rebuilt from its change feed equals the table, after any changes of its rows, columns and name."""

from __future__ import annotations

import random
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.spark.feed_stand import Mirror, PartOfEventsApplied, Row, Shop, Stream, own_columns, same, shop, struct_of
from triplicate.errors import ConfigError, OffsetTruncated, SchemaChanged
from triplicate.sql.core.lexer import quote

NAMES = ("t", "u", "V", "virtual", "w x", "é", "n\u00a0m")
COLUMNS = ("a", "b", "c", "D", "to", "x y", "\u2003é")
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
    "CREATE /* * / */ TABLE main.{name}(id any, a text, primary key(a)) -- strict\n strict, without rowid",
    "create\ttable\n{name}(id integer primary key, b any, a text) strict",
    "create table {name}(id integer primary key on conflict replace, a text unique on conflict replace, b integer)",
    "create table {name}(id integer primary key, a integer references {other} on delete set null on update set default, b text)",
    "create table {name} as select random() as a, 1 as b, x'00' as c",
    "create table {name}(a text collate nocase, b real, primary key(a desc, b)) without rowid",
    "create table {name}(id integer primary key desc, a text)",
    "create view {name} as select 1 as a",
    "create virtual table {name} using fts5(a)",
)
ADDED = (
    "",
    " text default 'new'",
    " integer not null default 7",
    " real default 3",
    " text default 8",
    " integer default (-(2))",
    " default null",
    " real default 1e-3",
    " real not null default - .5E+1 check (1 > 0)",
    " any default '007'",
    " text default x'61'",
    " text default (random())",
    " text default current_timestamp",
    " text as ('g') virtual",
    " integer constraint n check (1) default +5 collate nocase",
    " references t(id) on delete set default",
)


def quoted(name: str) -> str:
    """A table's or column's name in SQL, quoted where needed, sometimes with another case of letters."""
    return name.upper() if name in ("t", "u", "a", "b") and len(name) == 1 else quote(name)


def value(chance: random.Random, declared: str) -> str:
    if chance.random() < 0.15:
        return "null"
    if "INT" in declared.upper():
        return str(chance.randrange(1, 6))
    if "REAL" in declared.upper():
        return str(chance.randrange(1, 9) / 2)
    return chance.choice(("'x'", "'y'", "'X'", "'z'"))


def schema_change(chance: random.Random, db: Shop) -> list[str]:
    """Mostly on an existing table and columns."""
    tables = db.tables()
    name, other = chance.choice(NAMES), chance.choice(tables or list(NAMES))
    if not tables or chance.random() < 0.3:
        return [chance.choice(TABLES).format(name=quoted(name), other=quoted(other))]
    names = [column for column, _ in db.columns(other).columns]
    columns = [quoted(chance.choice(names)), quoted(chance.choice(names))]
    column, new, name, other, third = columns[0], quoted(chance.choice(COLUMNS)), quoted(name), quoted(other), quoted(chance.choice(tables))
    swap = [f"alter table {other} rename {column} to swapped", f"alter table {other} rename {columns[1]} to {column}"]
    tables_swap = [f"alter table {other} rename to swapped", f"alter table {third} rename to {other}"]
    again = chance.choice(TABLES).format(name=other, other=third)
    return chance.choice(
        [
            [f"drop table {other}"],
            [f"drop table {other}", again],
            [f"drop table if exists {name}"],
            [f"drop view if exists {name}"],
            [f"alter table {other} rename to {name}"],
            [*tables_swap, f"alter table swapped rename to {third}"],
            [f"alter table {other} rename column {column} to {new}"],
            [f"alter table {other} rename {column} to {new}"],
            [*swap, f"alter table {other} rename swapped to {columns[1]}"],
            [f"alter table {other} add column {new}{chance.choice(ADDED)}"],
            [f"alter table main.{other} add {new}{chance.choice(ADDED)}"],
            [f"alter table {other} drop column {column}"],
            [f"alter table {other} drop {column}", f"alter table {other} add {column}{chance.choice(ADDED)}"],
            [f"alter table {other} set (change_images = {chance.choice(['full', 'keys'])})"],
            [f"alter table {other} alter column {column} type {chance.choice(['text', 'integer', 'real'])}"],
            [f"alter table {other} alter column {column} set not null"],
            [f"alter table {other} add foreign key ({column}) references {third}(id)"],
            [f"alter table {other} add constraint k check ({column} is null or 1)"],
            [f"create index i{chance.randrange(99)} on {other}({column})"],
            [f"create trigger g{chance.randrange(9)} after insert on {other} begin delete from {third} where {column} = new.{column}; end"],
            [f"create trigger g{chance.randrange(9)} update on {other} begin update {third} set {column} = null; end"],
            ["analyze"],
        ]
    )


def row_change(chance: random.Random, db: Shop) -> list[str]:
    tables = db.tables()
    if not tables:
        return schema_change(chance, db)
    table = chance.choice(tables)
    columns = [(quoted(name), declared) for name, declared in db.columns(table).columns]
    listed = ", ".join(name for name, _ in columns)
    values = ", ".join(value(chance, declared) for _, declared in columns)
    (column, declared), (other, kind) = chance.choice(columns), chance.choice(columns)
    table = quoted(table)
    return [
        chance.choice(
            [
                f"insert or ignore into {table}({listed}) values({values})",
                f"insert or replace into {table}({listed}) values({values})",
                f"insert into {table}({listed}) values({values}) on conflict do update set {other} = excluded.{other}",
                f"insert or replace into {table}({listed}) select {listed} from {table}",
                f"insert into {table} default values",
                f"update or ignore {table} set {column} = {value(chance, declared)} where {other} is {value(chance, kind)}",
                f"update or replace {table} set {column} = {value(chance, declared)}, {other} = {value(chance, kind)}",
                f"update {table} set {column} = {column} + 10",
                f"update {table} set {column} = -{column}",
                f"update or replace {table} set {column} = {other}",
                f"delete from {table} where {column} is {value(chance, declared)}",
                f"delete from {table}",
            ]
        )
    ]


class Consumer:
    """A stream that mirrors its table: it continues, restarts, or begins again with a new checkpoint where required."""

    def __init__(self, db: Shop, table: str) -> None:
        self.db = db
        self.restarts = self.beginnings = self.copies = 0
        self.columns: list[str] = []
        self.key: list[str] = []
        self.begin(table)

    def begin(self, table: str, *, copy: bool = False) -> None:
        """Begin with a new checkpoint at the table's creation, or with a copy of the table."""
        self.beginnings += 1
        self.mirror = Mirror()
        given = {}
        if copy and self.copies % 2:
            self.copies += 1
            given["startingversion"] = "snapshot"
        elif copy:
            self.copies += 1
            given["startingversion"] = str(self.db.reader.execute("select position from triplicate_state").fetchall()[0][0])
            self.mirror.rows = table_rows(self.db, table)
        self.stream = Stream(self.db, table, None, schemaevents="deliver", **given)

    def batch(self, most: int | None) -> None:
        """One micro-batch; starts a query first if none runs. Begins again if a part of the batch's events was applied before."""
        if self.stream.reader is None:
            self.restarts += 1
            self.stream.start()
            self.columns = own_columns(struct_of(self.stream.ddl))
            self.key = self.db.key(self.stream.table)
        inherited, repetitions = self.stream.inherited, self.mirror.repetitions
        try:
            changes = self.stream.trigger(most)
        except (SchemaChanged, ConfigError, OffsetTruncated):
            self.stream.reader = None
            raise
        own = self.stream.own_versions
        try:
            self.mirror.apply(changes, self.columns, self.key)
        except PartOfEventsApplied as refused:
            if not inherited or not any(refused.held < version <= refused.reached for version in own):
                raise
            self.begin(self.stream.table)
        assert inherited or self.mirror.repetitions == repetitions, "one query has planned and read the batch before"

    @property
    def position(self) -> int:
        return int(self.stream.checkpoint["logs"]["shop-log"]) if self.stream.checkpoint else 0

    def read_on(self, chance: random.Random) -> None:
        """One or two batches, sometimes after a restart of the query; it may end at a change of the table."""
        if chance.random() < 0.4:
            self.stream.reader = None
        if chance.random() < 0.2:
            # The driver dies after it has written the batch's end.
            with suppress(SchemaChanged, ConfigError, OffsetTruncated):
                self.stream.plan(chance.choice((None, 1, 3)))
            self.stream.reader = None
        with suppress(SchemaChanged, ConfigError, OffsetTruncated):
            self.batch(chance.choice((None, 1, 3)))

    def catch_up(self, table: str) -> None:
        """Read a table to its end: with the present checkpoint if it belongs to this table, otherwise with a new one."""
        if self.stream.table != table:
            self.stream.table, self.stream.reader = table, None
        for attempt in range(4):
            try:
                self.batch(None)
                while self.position < self.db.end:  # A batch planned earlier ends before later changes.
                    self.batch(None)
                return
            except SchemaChanged as error:
                if attempt:
                    self.begin(table, copy="whether the table is STRICT" in str(error))
            except OffsetTruncated:
                self.begin(table, copy=True)
        raise AssertionError("the stream does not reach the end")


def table_rows(db: Shop, table: str) -> list[Row]:
    """Contents of a table as Spark sees them: a column without a declared type is text there."""
    schema = struct_of(db.source(table).schema())
    columns = own_columns(schema)
    text = [name for name in columns if schema[name].dataType.simpleString() == "string"]
    rows = db.rows(table, columns)
    for row in rows:
        row.update({name: as_text(row[name]) for name in text if row[name] is not None})
    return rows


def as_text(one: object) -> str:
    return one.decode() if isinstance(one, bytes) else str(one)


def equal(db: Shop, mirror: Mirror, table: str) -> None:
    rows = table_rows(db, table)
    assert same(mirror.rows, rows), f"{table}: rebuilt {mirror.rows}, there are {rows}"


def play(chance: random.Random, db: Shop) -> Consumer:
    db.past = {}
    consumer = Consumer(db, chance.choice(NAMES))
    if chance.getstate()[1][0] % 3 == 0:  # Without a draw, so that seeds keep their meaning.
        consumer.stream.given["startingversion"] = "snapshot"
    for _ in range(chance.randrange(4, 16)):
        made = [schema_change(chance, db) if chance.random() < 0.3 else row_change(chance, db) for _ in range(chance.randrange(1, 6))]
        statements = [statement for part in made for statement in part]
        if chance.random() < 0.5:
            db.run(*statements)
        else:
            for name in ("savepoint s1", "rollback to s1", "release s1"):
                if chance.random() < 0.3:
                    statements.insert(chance.randrange(len(statements) + 1), name)
            db.transaction(*statements)
        if chance.random() < 0.6:
            consumer.read_on(chance)
        if chance.random() < 0.05:
            # A log that begins within or right behind the last batch does not identify that batch's table: see decision 42.
            first = chance.randrange(db.first, db.end + 1)
            db.first = first if not consumer.stream.last_start < first <= consumer.position else db.first
        tables = db.tables()
        if tables and chance.random() < 0.3:
            table = chance.choice(tables)
            consumer.catch_up(table)
            equal(db, consumer.mirror, table)
    for table in db.tables():
        mirror = Mirror()
        columns = own_columns(struct_of(db.source(table).schema()))
        # If the log was truncated behind the table's creation, a feed may be refused rather than mislead.
        with suppress(OffsetTruncated, *((SchemaChanged,) if db.first else ())):
            mirror.apply(db.batch(table), columns, db.key(table))
            equal(db, mirror, table)
        with suppress(OffsetTruncated, *((SchemaChanged,) if db.first else ())):
            content = Mirror()
            content.apply(db.batch(table, startingversion="snapshot"), columns, db.key(table))
            equal(db, content, table)
    return consumer


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32 - 1))
@example(1157181657)  # Events came a second time, and led to another version because of another table's changes.
def test_a_table_rebuilt_from_its_feed_equals_the_table(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch, shop(Path(folder), patch) as db:
        play(random.Random(seed), db)
