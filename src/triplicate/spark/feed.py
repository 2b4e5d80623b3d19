"""Which table a change feed follows from one version on, and whether a consumer can go on with it. Decided when a read is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import ConfigError, OffsetTruncated, SchemaChanged
from triplicate.spark.change_offsets import ChangesOffset
from triplicate.spark.history import EntriesOf, SchemaHistory
from triplicate.spark.lineage import Ancestry, Carried, Lineage
from triplicate.sql import TableDropped, fold


@dataclass(frozen=True, slots=True)
class Wanted:
    """A feed as a query asks for it.

    Args:
        table: the name at the anchor. columns: its columns there.
        anchor: the schema version of which these are. whole: they are all there were.
    """

    database: str
    table: str
    columns: tuple[str, ...]
    anchor: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Followed:
    """The table's history from a version on.

    `begin` is that version, and `schema` the schema's version before it. `created`: the table was created after it, so the feed from
    there on holds all of its rows.
    """

    lineage: Lineage
    begin: int
    schema: int
    created: bool


def follow(entries: EntriesOf, wanted: Wanted, first: int, begin: int, end: int) -> Followed | None:
    """Follow a table back from the anchor; None where the log does not reach to the anchor yet.

    Args:
        first, end: the bounds of the log. begin: where reading begins, before `end`.

    Raises:
        SchemaChanged: the name or a column is not there any more. ConfigError: there never was such a table.
    """
    history = SchemaHistory(entries, begin, end)
    if history.version_after < wanted.anchor:
        return None
    ancestry = Ancestry(wanted.table, wanted.columns, wanted.anchor, whole=wanted.whole)
    for located in history.backward():
        if located.version <= wanted.anchor:
            ancestry.step(located)
        if ancestry.complete:
            break
    if not begin and not ancestry.complete:
        raise ConfigError(f"triplicate-changes: database {wanted.database!r} has no table {wanted.table!r}, and never had one")
    lineage = ancestry.lineage()
    if history.version_before > wanted.anchor and first < begin:
        _check_behind(lineage, SchemaHistory(entries, first, begin))
    return Followed(lineage, begin, history.version_before, ancestry.complete)


def _check_behind(lineage: Lineage, history: SchemaHistory) -> None:
    """Changes that are newer than the query's columns and older than what it reads: the node that named the columns lags."""
    for located in history.backward():
        if located.version <= lineage.anchor:
            return
        dropped = isinstance(located.change, TableDropped) and fold(located.change.table) == lineage.eras[-1].table
        if dropped:
            raise SchemaChanged(f"triplicate-changes: table {lineage.table!r} was dropped at version {located.offset}")
        lineage.check_newer(located.change, located.offset)


def truncated(database: str, table: str, first: int) -> OffsetTruncated:
    """The complaint about a log that begins after a table's creation, where the feed was to hold all of its rows."""
    return OffsetTruncated(
        f"the log of database {database!r} begins at version {first}, and table {table!r} is older: rows that have not changed since are "
        "not in its feed. Begin with a copy of the table (in one transaction: SELECT position FROM triplicate_state, and the rows) and "
        "that position as startingVersion; startingVersion=earliest reads what the log still has"
    )


def check_consumer(followed: Followed, start: ChangesOffset) -> list[Carried]:
    """What a consumer that has read up to an offset must do to its rows before it reads on.

    Raises:
        SchemaChanged: its rows are another table's, or it has seen newer columns than this query has.
    """
    lineage = followed.lineage
    # A schema change that a running query has passed was none of its table's, so what holds at an older version holds where it stands.
    held = followed.schema if start.schema is None else max(followed.schema, start.schema)
    named = followed.schema if start.named is None else max(followed.schema, start.named)
    if start.schema is not None and start.schema > lineage.anchor:
        raise SchemaChanged(
            f"triplicate-changes: the stream has read table {lineage.table!r} with the columns of schema version {start.schema}, and the "
            f"node that was asked for its columns knows version {lineage.anchor}: it lags; start the query again"
        )
    name = fold(lineage.table) if named >= lineage.anchor else lineage.at(named).table
    if start.table is not None and name != fold(start.table):
        raise SchemaChanged(
            f"triplicate-changes: the stream has read rows of the table that was named {start.table!r} up to version {start.version}. "
            f"Table {lineage.table!r} is another one: {_origin(name)}. Use a new checkpoint for it, or the present name of the other"
        )
    return lineage.carried(held)


def check_table(start: ChangesOffset, table: str) -> None:
    """The same for a stream that has nothing to read, which has therefore seen every change: its table has the name that it had.

    Raises:
        SchemaChanged: its rows are another table's.
    """
    if start.table is not None and fold(start.table) != fold(table):
        raise SchemaChanged(
            f"triplicate-changes: the stream has read rows of table {start.table!r}, and is asked for those of {table!r}: "
            "use a new checkpoint"
        )


def _origin(name: str | None) -> str:
    return "it was created later" if name is None else f"it was named {name!r} then"


def refuse_carried(carried: Sequence[Carried], table: str, version: int) -> SchemaChanged:
    """The complaint about what no row of the usual kinds says."""
    return SchemaChanged(
        f"triplicate-changes: after version {version} table {table!r} was changed as no row of its feed says: "
        f"{'; '.join(map(_words, carried))}. Set option schemaEvents=deliver, and the feed begins with a row for each of them, or read it "
        "from the table's creation on (a stream: with a new checkpoint)"
    )


def _words(one: Carried) -> str:
    match one.kind:
        case "rename_column":
            return f"column {one.column!r} is {one.new_name!r} now"
        case "drop_column":
            return f"column {one.column!r} is dropped"
    return f"column {one.column!r} was added, with {one.value!r} in all rows"
