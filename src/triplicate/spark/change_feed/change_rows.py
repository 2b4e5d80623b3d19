"""Converts a database's log entries to rows of a table's change feed, column by column."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from triplicate.errors import ConfigError, SchemaChanged
from triplicate.spark.change_feed.lineage import ColumnDifference, ColumnEra, Lineage
from triplicate.spark.change_feed.schema_history import batch_header, transactions
from triplicate.spark.cluster.arrow import BATCH_BYTES, BATCH_ROWS, EntryRange
from triplicate.spark.cluster.column_values import column_of
from triplicate.spark.cluster.table_content import ContentPart, stored_value
from triplicate.sql import RowKind, RowRun, SchemaChange, TableDropped, fold, table_change

INSERT, PREIMAGE, POSTIMAGE, DELETE = "insert", "update_preimage", "update_postimage", "delete"
DROP_TABLE = "drop_table"
CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp", "_seq")
OTHER_COLUMNS = ("_rowid", "_schema_change")
"""Columns of the feed that exist only if needed or requested."""

CONTENT_ROWS = 512
"""Rows of a table's content that are converted at once."""

_Image = Sequence[Sequence[Any]]
_Plan = tuple[tuple[str, str, int, Any], ...]
"""For each column of the feed: its name, that of a column of the change or '', its place in a row or -1, its value without a place."""
_NO_ROWS: _Image = ()


@dataclass(frozen=True, slots=True)
class Content:
    """A part of a table's content, in the feed the inserts of one version.

    Args:
        names: the table's columns that are read. version, time_us: of the last transaction in the content.
        schema_version: that of the table's columns.
    """

    part: ContentPart
    names: tuple[str, ...]
    version: int
    time_us: int
    schema_version: int


class ChangeBatches:
    """Collects a table's changes and returns them in record batches.

    Args:
        lineage: the table's history. Its columns are the names of `row_columns(schema)`.
        schema: the requested columns, including those of the change.
        deliver: whether a drop of the table is a row of the feed instead of an error.
    """

    def __init__(self, lineage: Lineage, schema: pa.Schema, *, deliver: bool = False) -> None:
        self._lineage = lineage
        self._deliver = deliver
        self._schema = schema
        self._columns: dict[str, list[Any]] = {field.name: [] for field in schema}
        self._rows = 0
        self._size_bytes = 0
        self._versions: list[tuple[int, int]] = []
        """Row after the last, and version, of each run of rows. A schema may leave the column of the version out."""
        self._plans: dict[tuple[int, int], _Plan] = {}

    def add(self, part: EntryRange) -> Iterator[pa.RecordBatch]:
        """Add the transactions `low` to `high` of one entry.

        Raises:
            ConfigError: no database wrote it, a value does not fit its column's type, or there is no such column.
            SchemaChanged: the table was changed so that this query cannot continue. FormatError: the entry's format is unknown here.
        """
        header = batch_header(part)
        self._plans.clear()
        version = header.schema_version_before
        changes_schema = header.schema_version_after != version
        table = self._lineage.at(version).table
        if not changes_schema and not any(fold(shape.name) == table for shape in header.tables):
            return
        # Schema versions are counted from the entry's first transaction, whichever transaction is requested first.
        for slot, size, transaction in transactions(part, header, 0 if changes_schema else part.low, part.high):
            wanted = slot >= part.low
            rows_before, sequence = self._rows, 0
            place = part.first_offset + slot, part.view.header.wall_time_us
            for operation in transaction.operations:
                if isinstance(operation, SchemaChange):
                    version += 1
                    if wanted:
                        sequence += self._schema_change(operation.sql, version, place, sequence)
                elif wanted and isinstance(operation, RowRun):
                    sequence = self._run(operation, version, place, sequence)
            if self._rows > rows_before:
                self._size_bytes += size
            if self._rows >= BATCH_ROWS or self._size_bytes >= BATCH_BYTES:
                yield from self.finish()

    def content(self, content: Content, rows: Iterable[Sequence[str]]) -> Iterator[pa.RecordBatch]:
        """Add rows of the table's content, each the literals of `names` and then the rowid if there is one.

        Raises:
            ConfigError: a value does not fit its column's type, or there is no such column.
        """
        part, waiting, sequence = content.part, iter(rows), content.part.first_row
        plan = self._plan(part.table, content.names, self._lineage.at(content.schema_version))
        while chunk := list(islice(waiting, CONTENT_ROWS)):
            image = [list(map(stored_value, column)) for column in zip(*chunk, strict=True)]
            own = _change_values(INSERT, content.version, content.time_us, range(sequence, sequence + len(chunk)), len(chunk))
            if part.rowid:
                own["_rowid"] = image.pop()
            self._append(plan, image, own, len(chunk), True)
            sequence += len(chunk)
            self._size_bytes += sum(map(len, chain.from_iterable(chunk)))
            if self._rows >= BATCH_ROWS or self._size_bytes >= BATCH_BYTES:
                yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Return the remaining rows."""
        if not self._rows:
            return
        arrays = [self._array(field) for field in self._schema]
        self._columns = {field.name: [] for field in self._schema}
        self._rows = self._size_bytes = 0
        self._versions.clear()
        yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def carry(self, carried: Sequence[ColumnDifference], version: int, schema_versions: tuple[int, int]) -> None:
        """Add a row for each column change that a consumer with older columns must apply before the batch at `version`.

        Args:
            schema_versions: the version of the older columns, and the version of the newer ones.
        """
        for sequence, difference in enumerate(carried, start=-len(carried)):
            new_name = {} if difference.new_name is None else {"new_name": difference.new_name}
            facts = {"change": difference.kind, "column": difference.column, **new_name, "schema_versions": schema_versions}
            values = {fold(difference.column): (difference.value,)} if difference.value is not None else {}
            self._event(
                {**values, **_change_values(difference.kind, version, None, (sequence,), 1), "_schema_change": (json.dumps(facts),)}
            )

    def _schema_change(self, sql: str, version: int, place: tuple[int, int], sequence: int) -> int:
        """Process a schema change that leads to a version; returns the number of rows added."""
        change = table_change(sql)
        before = self._lineage.at(version - 1).table
        if isinstance(change, TableDropped) and fold(change.table) == before:
            if not self._deliver:
                raise SchemaChanged(
                    f"triplicate-changes: table {change.table!r} was dropped at version {place[0]}, and with it all its rows, without a "
                    f"change of each. Set option schemaEvents=deliver for a row of type {DROP_TABLE}, or read up to the version before"
                )
            facts = json.dumps({"change": DROP_TABLE, "table": change.table})
            self._event({**_change_values(DROP_TABLE, *place, (sequence,), 1), "_schema_change": (facts,)})
            return 1
        if change is not None and version > self._lineage.anchor:
            self._lineage.check_newer(change, place[0])
        return 0

    def _run(self, run: RowRun, version: int, place: tuple[int, int], sequence: int) -> int:
        """Add a run's rows if they belong to the table; returns the position of the next row in the transaction."""
        era = self._lineage.at(version)
        # Both live while the entry is read, so their identities are a cheap key.
        key = id(run.table), id(era)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(run.table.name, run.table.columns, era) if fold(run.table.name) == era.table else ()
        if not plan:
            return sequence
        for low, high, moved in _stretches(_moves(run), run.count):
            count = high - low
            # A row's two images share its position. A row whose key changes is deleted under the old key and inserted under the new one.
            for step, (kind, image, rowids, whole) in enumerate(_images(run, moved)):
                first = sequence + step if moved else sequence
                own = _change_values(kind, *place, range(first, first + count), count)
                if rowids is not None:
                    own["_rowid"] = rowids if count == run.count else rowids[low:high]
                self._append(plan, image if count == run.count else [part[low:high] for part in image], own, count, whole)
            sequence += 2 if moved else count
        return sequence

    def _plan(self, table: str, columns: Sequence[str], era: ColumnEra) -> _Plan:
        """The position of each column of the feed in rows of a table with these columns."""
        index = {fold(name): position for position, name in enumerate(columns)}
        sources = dict(zip(map(fold, self._lineage.columns), era.sources, strict=True))
        plan: list[tuple[str, str, int, Any]] = []
        for name in self._columns:
            source = sources.get(fold(name))
            if source is None:
                plan.append((name, fold(name), -1, None))
            elif source.column is None:
                plan.append((name, "", -1, source.default))
            elif fold(source.column) in index:
                plan.append((name, "", index[fold(source.column)], None))
            else:
                raise ConfigError(f"triplicate-changes: table {table!r} has no column {name!r}; it has {', '.join(map(repr, columns))}")
        return tuple(plan)

    def _append(self, plan: _Plan, image: _Image, change_values: dict[str, Sequence[Any]], count: int, whole: bool) -> None:
        columns = self._columns
        for name, of_change, position, default in plan:
            if position >= 0:
                columns[name].extend(image[position])
            elif of_change in change_values:
                columns[name].extend(change_values[of_change])
            else:
                # In an image of only the key, a column that is not logged is null, even if it has a default.
                columns[name].extend((default if whole else None,) * count)
        self._count(change_values, count)

    def _event(self, values: dict[str, Sequence[Any]]) -> None:
        for name, column in self._columns.items():
            column.extend(values.get(fold(name), (None,)))
        self._count(values, 1)

    def _count(self, values: dict[str, Sequence[Any]], count: int) -> None:
        self._rows += count
        self._versions.append((self._rows, values["_commit_version"][0]))

    def _array(self, field: pa.Field) -> pa.Array:
        values = self._columns[field.name]
        if pa.types.is_timestamp(field.type) and field.name.lower() in CHANGE_COLUMNS:
            return pa.array(values, pa.int64()).cast(pa.timestamp("us", tz="UTC")).cast(field.type)
        return column_of(field.type, values, partial(self._misfit, field))

    def _misfit(self, field: pa.Field, row: int, value: Any) -> ConfigError:
        version = self._versions[bisect_right(self._versions, row, key=itemgetter(0))][1]
        return ConfigError(
            f"triplicate-changes: table {self._lineage.table!r}: column {field.name!r} holds {value!r:.60} at version {version}, which is "
            f"not of type {field.type}; give a schema of your own in which the column is a string, or binary where it is not text"
        )


def row_columns(names: Sequence[str]) -> list[str]:
    """The table's columns among the columns of a feed."""
    return [name for name in names if fold(name) not in (*CHANGE_COLUMNS, *OTHER_COLUMNS)]


def _change_values(kind: str, version: int, time_us: int | None, places: Sequence[int], count: int) -> dict[str, Sequence[Any]]:
    return {
        "_change_type": (kind,) * count,
        "_commit_version": (version,) * count,
        "_commit_timestamp": (time_us,) * count,
        "_seq": places,
    }


class _FeedRows(NamedTuple):
    """Rows of the feed of one kind."""

    kind: str
    image: _Image
    rowids: Sequence[int] | None
    whole: bool
    """All columns are present."""


def _images(run: RowRun, moved: bool) -> list[_FeedRows]:
    """The feed's rows for a run."""
    if run.kind is RowKind.INSERT:
        return [_FeedRows(INSERT, run.new or _NO_ROWS, run.rowids, True)]
    whole = run.old is not None
    if run.kind is RowKind.DELETE or moved:
        deleted = _FeedRows(DELETE, _key_image(run) if run.old is None else run.old, run.rowids, whole)
        return [deleted, _FeedRows(INSERT, run.new or _NO_ROWS, run.new_rowids or run.rowids, True)] if moved else [deleted]
    after = _FeedRows(POSTIMAGE, run.new or _NO_ROWS, run.new_rowids or run.rowids, True)
    return [after] if run.old is None else [_FeedRows(PREIMAGE, run.old, run.rowids, True), after]


def _moves(run: RowRun) -> list[bool]:
    """For each row of a run whether its rowid or key changes; empty if none changes."""
    pairs: list[tuple[Sequence[Any], Sequence[Any]]] = []
    if run.kind is RowKind.UPDATE and run.rowids is not None and run.new_rowids is not None:
        pairs.append((run.rowids, run.new_rowids))
    if run.kind is RowKind.UPDATE and run.keys is not None and run.new is not None:
        pairs += [(column, run.new[index]) for index, column in zip(run.table.key, run.keys, strict=True)]
    moves: list[bool] = []
    for before, after in pairs:
        differ = [type(one) is not type(other) or one != other for one, other in zip(before, after, strict=True)]
        moves = [one or other for one, other in zip(moves, differ, strict=True)] if moves else differ
    return moves if any(moves) else []


def _stretches(moves: Sequence[bool], count: int) -> Iterator[tuple[int, int, bool]]:
    """Begin, end, and whether the key changes: for runs of consecutive rows with unchanged keys, and for each row with a changed key."""
    if not moves:
        return iter(((0, count, False),))
    cuts = [0, *(index for index in range(1, len(moves)) if moves[index] or moves[index - 1]), count]
    return ((low, high, moves[low]) for low, high in pairwise(cuts))


def _key_image(run: RowRun) -> _Image:
    """Only the key of a deleted row is logged: the other columns are null."""
    image: list[Sequence[Any]] = [(None,) * run.count for _ in run.table.columns]
    if run.keys is not None:
        for index, column in zip(run.table.key, run.keys, strict=True):
            image[index] = column
    if run.table.rowid_column >= 0 and run.rowids is not None:
        image[run.table.rowid_column] = run.rowids
    return image
