"""Change feeds of a database whose log is made by the real writer, read through the source's own classes without a JVM and a cluster."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import apsw
import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from triplicate.errors import ConfigError, OffsetTruncated, SqlError
from triplicate.log import OffsetRange, decode_entry
from triplicate.log.core.compression import Compressor
from triplicate.log.core.payload_encoder import columns_of, encode_columns
from triplicate.spark.change_feed.change_source import ChangesDataSource, ChangesStreamReader
from triplicate.spark.cluster import access, database_tables, table_content
from triplicate.spark.cluster.arrow import EntryRange
from triplicate.spark.cluster.database_tables import TableColumns
from triplicate.spark.cluster.progress import LogState
from triplicate.sql import fold
from triplicate.sql.executor.authorizer import Authorizer
from triplicate.sql.executor.statement_batches import AutocommitRequest, PendingBatch
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage.sqlite_file import open_reader, open_store

Row = dict[str, Any]
_TYPES: dict[str, Callable[..., DataType]] = {
    "DATE": DateType,
    "DECIMAL": DecimalType,
    "TIMESTAMP_NTZ": TimestampNTZType,
    "LONG": LongType,
    "STRING": StringType,
    "DOUBLE": DoubleType,
    "BOOLEAN": BooleanType,
    "BINARY": BinaryType,
    "TIMESTAMP_LTZ": TimestampType,
    "INT": IntegerType,
}
_COLUMN = re.compile(r"(?:`((?:[^`]|``)*)`|(\w+)) (\w+(?:\(\d+,\d+\))?)( NOT NULL)?(?: COMMENT '([^']*)')?(?:, |$)")


def struct_of(ddl: str) -> StructType:
    """The columns in the DDL that a source gives to Spark, which alone can read all DDL."""
    fields = []
    for quoted, plain, kind, required, comment in _COLUMN.findall(ddl):
        metadata = {"comment": comment} if comment else {}
        digits = map(int, re.findall(r"\d+", kind))
        fields.append(StructField(quoted.replace("``", "`") or plain, _TYPES[kind.partition("(")[0]](*digits), not required, metadata))
    return StructType(fields)


class Shop:
    """A database on the leader's side, and its log; the sources find both.

    Attributes:
        entries: of the log, in order. first: the first offset that was not truncated. seen: the end that a metadata server shows which is
            behind. lagging: the columns that a lagging node has. wall_us: the time at which entries are written, in µs since the epoch.
        past: the database at each position at which an entry ends, if it is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "leader.db")
        open_store(self.path, b"d" * 16)
        self.wall_us = 1_764_000_000_000_000
        self.writer = WriterConnection(self.path, TransactionIds(1), wall_us=lambda: self.wall_us)
        self.reader = open_reader(self.path)
        self.gate = Authorizer(self.reader)
        self.entries: list[EntryRange] = []
        self.first = 0
        self.seen: int | None = None
        self.reads = 0
        self.lagging: dict[str, TableColumns] = {}
        self.past: dict[int, bytes] | None = None

    def close(self) -> None:
        self.writer.close()
        self.reader.close(True)

    @property
    def end(self) -> int:
        return self.writer.position

    def run(self, *statements: str) -> list[SqlError | None]:
        """Each statement a transaction of its own, all of them one entry of the log; what became of each."""
        requests = []
        self.reader.execute("select 1 from sqlite_schema limit 1").fetchall()  # SQLite reads a changed schema when a statement runs.
        for statement in statements:
            try:
                requests.append(AutocommitRequest(self.gate.examine(statement), ()))
            except SqlError as error:
                if len(statements) == 1:
                    return [error]
                # It needs the statements before it, which are not there yet.
                return [one for part in statements for one in self.run(part)]
        pending = self.writer.run_batch(requests)
        self._commit(pending)
        return [answer.error for answer in pending.answers]

    def must(self, *statements: str) -> None:
        for statement in statements:
            for error in self.run(statement):
                if error is not None:
                    raise error

    def transaction(self, *statements: str) -> None:
        """All statements one transaction; those that fail are left out."""
        self.writer.begin()
        for statement in statements:
            try:
                word, _, name = statement.rpartition(" ")
                if word in ("savepoint", "rollback to", "release"):
                    {"savepoint": self.writer.savepoint, "rollback to": self.writer.rollback_to, "release": self.writer.release}[word](name)
                else:
                    self.writer.run(self.writer.authorizer.examine(statement), ())
            except SqlError:
                continue
        try:
            pending = self.writer.finish((), "")
        except SqlError:
            self.writer.rollback()
            return
        self._commit(pending)

    def _commit(self, pending: PendingBatch) -> None:
        first, parts = self.end, pending.parts
        batches = [(pending.preamble, pending.records)] if parts is None else [parts.read(index) for index in range(parts.count)]
        self.writer.commit(pending, first + pending.count)
        for preamble, records in batches if pending.count else ():
            payload = encode_columns(columns_of(records), Compressor("none"), preamble=preamble).payload(0, self.wall_us)
            self.entries.append(EntryRange(decode_entry(payload), first, 0, len(records), 1, len(self.entries)))
            first += len(records)
        if self.past is not None and pending.count:
            content = bytearray(self.reader.serialize("main"))
            content[18:20] = b"\1\1"  # Without a write-ahead log.
            self.past[self.end] = bytes(content)

    def tables(self) -> list[str]:
        """Those that have a feed."""
        rows = self.reader.execute("select name from pragma_table_list where schema = 'main' and type = 'table'")
        return sorted(str(name) for (name,) in rows if not str(name).startswith(("sqlite_", "triplicate_")))

    def columns(self, table: str) -> TableColumns:
        """As a node answers."""
        if table.lower() in self.lagging:
            return self.lagging[table.lower()]
        rows = self.reader.execute(database_tables._COLUMNS.replace("%s", "?"), (table,)).fetchall()
        if not rows:
            raise ConfigError(f"no table {table!r}")
        return database_tables.read_columns(table, rows)

    def rows(self, table: str, columns: Sequence[str]) -> list[Row]:
        """The rows of the table, in these columns."""
        listed = ", ".join("rowid" if name == "_rowid" else f'"{name}"' for name in columns)
        return [dict(zip(columns, row, strict=True)) for row in self.reader.execute(f'select {listed} from "{table}"')]

    def key(self, table: str) -> list[str]:
        """The columns by which the rows of a table's feed are known."""
        if self.columns(table).known_by_rowid:
            return ["_rowid"]
        return [str(name) for (name,) in self.reader.execute("select name from pragma_table_info(?) where pk > 0 order by pk", (table,))]

    # The interface that the sources use.

    def bounds(self, _log: str) -> tuple[int, int]:
        return self.first, self.end if self.seen is None else self.seen

    def offset_at(self, _log: str, time: datetime, _end: int) -> int | None:
        wanted = round(time.timestamp() * 1e6)
        later = (max(self.first, entry.first_offset) for entry in self.entries if entry.view.header.wall_time_us >= wanted)
        return next(later, None)

    def limit_bytes(self, begins: dict[str, int], ends: dict[str, int], max_bytes: int) -> dict[str, int]:
        """Every transaction has one byte here."""
        return {log: min(end, begins[log] + max_bytes) for log, end in ends.items()}

    def synced_state(self, _log: str, _reached: int) -> LogState:
        return LogState("id", self.first, self.end)

    @contextmanager
    def parts(self, log: str, start: int, end: int) -> Iterator[Any]:
        def entries(low: int, high: int) -> Iterator[EntryRange]:
            assert start <= low < high <= end
            return self.entries_of(OffsetRange(1, 0, low, high, log=log))

        yield SimpleNamespace(entries=entries)

    def plan(self, log: str, start: int, end: int, most: int) -> list[OffsetRange]:
        assert self.first <= start <= end <= self.end
        return [OffsetRange(1, 0, low, min(end, low + most), log=log) for low in range(start, end, most)]

    def entries_of(self, part: OffsetRange) -> Iterator[EntryRange]:
        self.reads += 1
        for entry in self.entries:
            low, high = max(part.first_offset, entry.first_offset), min(part.end_offset, entry.first_offset + entry.high)
            if low < high:
                yield EntryRange(entry.view, entry.first_offset, low - entry.first_offset, high - entry.first_offset, 1, entry.entry_id)

    @contextmanager
    def past_connection(self, _uri: str, _database: str, point: str, _node: str = "") -> Iterator[tuple[str, Any]]:
        """A node that holds the database as it was, as psycopg shows it."""
        position = int(point.removeprefix("position "))
        if self.past is None or position not in self.past:
            raise OffsetTruncated(f"position {position} cannot be read any more: begin with a new checkpoint")
        held = apsw.Connection(":memory:")
        held.deserialize("main", self.past[position])

        def execute(statement: str, given: Sequence[Any] = ()) -> Any:
            rows = list(held.execute(statement.replace("%s", "?"), tuple(given)))
            return SimpleNamespace(fetchall=lambda: rows)

        @contextmanager
        def copy(statement: str) -> Iterator[Any]:
            query = statement.removeprefix("COPY (").removesuffix(") TO STDOUT")
            yield SimpleNamespace(rows=lambda: (tuple(map(str, row)) for row in held.execute(query)))

        yield "node:1", SimpleNamespace(execute=execute, cursor=lambda: SimpleNamespace(copy=copy))

    # Queries.

    def source(self, table: str, **given: str) -> ChangesDataSource:
        return ChangesDataSource({"metadataserviceuri": "memory:", "database": "shop", "table": table, **given})

    def batch(self, table: str, schema: StructType | None = None, **given: str) -> list[Row]:
        """A batch query's rows in order."""
        source = self.source(table, **given)
        reader = source.reader(schema or struct_of(source.schema()))
        parts = reader.partitions()
        return in_order([batch for part in parts for batch in reader.read(part)])


class Stream:
    """A streaming query: restarted with the columns there are then, from what its checkpoint holds.

    As in Spark, a batch's end is in the checkpoint before the batch is planned. One that fails is therefore planned again up to the
    same end, which the query of then has written, by whichever query comes next. Setting `checkpoint` takes the planned end away.
    """

    def __init__(self, shop: Shop, table: str, schema: StructType | None = None, **given: str) -> None:
        self.shop, self.table, self.given, self.schema = shop, table, given, schema
        self._checkpoint: dict[str, Any] | None = None
        self.planned: dict[str, Any] | None = None
        self._planner: ChangesStreamReader | None = None
        self.inherited = False
        """Whether the last batch was planned by an earlier query than the one that read it."""
        self.own_versions: list[int] = []
        """The schema versions of the table's own changes, as known when the last batch was planned."""
        self.last_start = 0
        self.reader: ChangesStreamReader | None = None
        self.ddl = ""

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """The end of the last batch that was committed."""
        return self._checkpoint

    @checkpoint.setter
    def checkpoint(self, offset: dict[str, Any] | None) -> None:
        self._checkpoint, self.planned = offset, None

    def start(self) -> ChangesStreamReader:
        source = self.shop.source(self.table, **self.given)
        self.ddl = source.schema() if self.schema is None else ""
        self.reader = cast("ChangesStreamReader", source.streamReader(self.schema or struct_of(self.ddl)))
        return self.reader

    def trigger(self, most: int | None = None) -> list[Row]:
        """One micro-batch, where there is something to read: `most` counts for one that is not planned yet."""
        parts = self.plan(most)
        rows = in_order([batch for part in parts for batch in self.reader.read(part)]) if self.reader is not None else []
        if self.planned is not None:
            self.last_start = self._checkpoint["logs"]["shop-log"] if self._checkpoint else 0
            self.inherited = self._planner is not self.reader
            self.checkpoint = self.planned
        return rows

    def plan(self, most: int | None = None) -> list[InputPartition]:
        """The steps before tasks run, the checkpoint's new file included."""
        reader = self.reader or self.start()
        # Where the first batch begins is in no checkpoint: it is asked for again, and the batch is run even if it is empty.
        start = self._checkpoint or _stored(reader.initialOffset())
        if self.planned is None:
            limit = reader.getDefaultReadLimit() if most is None else ReadMaxRows(most)
            end = _stored(reader.latestOffset(start, limit))
            if end == self._checkpoint:
                return []
            self.planned, self._planner = end, reader
        parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions(start, self.planned)]
        self.own_versions = [era.version for part in parts[:1] for era in part.lineage.eras]
        return parts


def _stored(offset: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def in_order(batches: Sequence[pa.RecordBatch]) -> list[Row]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["_commit_version"], row["_seq"], row["_change_type"] != "update_preimage"))


class PartOfEventsApplied(Exception):
    """Schema events begin before the columns of a mirror and lead beyond them: a new checkpoint is needed.

    Args:
        held: the schema version of the mirror's columns. reached: that to which the events lead.
    """

    def __init__(self, held: int, reached: int) -> None:
        super().__init__(f"the rows have schema version {held}; the events begin before it and lead to {reached}")
        self.held, self.reached = held, reached


class Mirror:
    """A table rebuilt from its feed by the rules of `docs/spark.md`."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.schema_version = 0
        self.repetitions = 0
        """Number of batches whose events were applied before."""

    def apply(self, changes: Sequence[Row], columns: Sequence[str], key: Sequence[str]) -> None:
        """
        Args:
            columns: the table's own of the query. key: those by which a row is known.

        Raises:
            PartOfEventsApplied: the changes begin with schema events, and some of them were applied before.
        """
        events = [change for change in changes if change["_change_type"] in ("add_column", "rename_column", "drop_column")]
        self._carry(events)
        known = {fold(name): name for name in columns}
        for place, row in enumerate(self.rows):
            self.rows[place] = dict.fromkeys(columns) | {known.get(fold(name), name): value for name, value in row.items()}
        for change in changes:
            row = {name: change[name] for name in columns}
            match change["_change_type"]:
                case "insert":
                    assert not self._find(row, key), f"{change} is there already"
                    self.rows.append(row)
                case "update_postimage":
                    (place,) = self._find(row, key)
                    self.rows[place] = row
                case "delete":
                    (place,) = self._find(row, key)
                    del self.rows[place]
                case "drop_table":
                    self.rows.clear()
                case kind:
                    assert kind == "update_preimage" or change in events

    def _carry(self, events: Sequence[Row]) -> None:
        facts = [json.loads(event["_schema_change"]) for event in events]
        if not facts:
            return
        before, after = facts[0]["schema_versions"]
        assert all(fact["schema_versions"] == [before, after] for fact in facts)
        if after <= self.schema_version:
            self.repetitions += 1
            return
        if before < self.schema_version:
            raise PartOfEventsApplied(self.schema_version, after)
        self.schema_version = after
        names = {fold(fact["column"]): fact["new_name"] for fact in facts if fact["change"] == "rename_column"}
        dropped = {fold(fact["column"]) for fact in facts if fact["change"] == "drop_column"}
        self.rows = [{names.get(fold(name), name): value for name, value in row.items() if fold(name) not in dropped} for row in self.rows]
        for event, fact in zip(events, facts, strict=True):
            if fact["change"] == "add_column":
                for row in self.rows:
                    row[fact["column"]] = next(value for name, value in event.items() if fold(name) == fold(fact["column"]))

    def _find(self, row: Row, key: Sequence[str]) -> list[int]:
        return [place for place, other in enumerate(self.rows) if all(other[name] == row[name] for name in key)]


def same(one: Sequence[Row], other: Sequence[Row]) -> bool:
    return sorted(map(repr, map(sorted, (row.items() for row in one)))) == sorted(map(repr, map(sorted, (row.items() for row in other))))


@contextmanager
def shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A database that the sources find under any URI; partitions are small."""
    made = Shop(folder)

    @contextmanager
    def logs(metadata_uri: str, ledger_password: str = "", keys_file: str = "") -> Iterator[Any]:
        yield SimpleNamespace(
            bounds=made.bounds,
            plan=made.plan,
            entries=made.entries_of,
            synced_state=made.synced_state,
            parts=made.parts,
            offset_at=made.offset_at,
            limit_bytes=made.limit_bytes,
        )

    monkeypatch.setattr(access, "logs", logs)
    monkeypatch.setattr(table_content, "past_connection", made.past_connection)

    def states() -> dict[str, LogState]:
        return {"shop-log": LogState("id", *made.bounds(""))}

    monkeypatch.setattr(access, "LogStatePoller", lambda *_: SimpleNamespace(states=states, last_states=states))
    monkeypatch.setattr(database_tables, "database_log", lambda *_: "shop-log")
    monkeypatch.setattr(database_tables, "table_columns", lambda _uri, _database, table: made.columns(table))
    monkeypatch.setattr("triplicate.spark.change_feed.change_source.RECORDS_PER_PARTITION", 3)
    monkeypatch.setattr("triplicate.spark.change_feed.schema_history.SCAN_RECORDS", 4)
    try:
        yield made
    finally:
        made.close()


def own_columns(schema: StructType) -> list[str]:
    """A table's columns in a feed's schema, the row's number among them."""
    change = ("_change_type", "_commit_version", "_commit_timestamp", "_seq", "_schema_change")
    return [name for name in schema.names if name not in change]


__all__ = ["Mirror", "PartOfEventsApplied", "Row", "Shop", "Stream", "apsw", "in_order", "own_columns", "same", "shop", "struct_of"]
