"""The table that a change feed follows from a version on, and whether a consumer can continue with it. Decided when a read is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from triplicate.errors import ConfigError, EnvironmentFault, OffsetTruncated, SchemaChanged
from triplicate.spark.change_feed.lineage import Ancestry, ColumnDifference, Lineage
from triplicate.spark.change_feed.schema_history import EntriesOf, SchemaHistory
from triplicate.spark.core.change_offsets import ChangesOffset
from triplicate.sql import TableDropped, fold


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """The feed that a query requests.

    Args:
        table: the table's name at the anchor. columns: the columns at the anchor.
        anchor: the schema version of name and columns. whole: whether these are all columns.
        known: an older schema version for which the consumer names its table; None if it names none.
        held: whether the consumer holds rows from before the beginning, of the table with this name at that time.
    """

    database: str
    table: str
    columns: tuple[str, ...]
    anchor: int
    whole: bool
    known: int | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class FollowedTable:
    """The table's history from a version on.

    `begin` is that version, and `schema` the schema version before it. `created`: whether the table was created after it, so that the feed
    holds all of its rows. `reached`: the oldest schema version covered by the lineage.
    """

    lineage: Lineage
    begin: int
    schema: int
    created: bool
    reached: int


def follow(entries: EntriesOf, request: FeedRequest, first: int, begin: int, end: int) -> FollowedTable | None:
    """Follow a table back from the anchor; None if the log does not reach the anchor yet.

    Args:
        first, end: the bounds of the log. begin: the first version to read, at most `end`.

    Raises:
        SchemaChanged: the name or a column does not exist any more, or the consumer's rows belong to another table with this name.
        ConfigError: the table never existed. EnvironmentFault: the node that returned the columns is behind the log's beginning.
    """
    if end < begin or end <= first:
        return None
    history = SchemaHistory(entries, min(begin, end - 1), end)
    schema = history.version_before if begin < end else history.version_after
    if history.version_after < request.anchor:
        return None
    ancestry = Ancestry(request.table, request.columns, request.anchor, whole=request.whole)
    for located in history.backward() if begin < end else ():
        if located.version <= request.anchor:
            ancestry.step(located)
        if ancestry.complete and not request.held:
            break
    if not begin and not ancestry.complete:
        raise ConfigError(f"triplicate-changes: database {request.database!r} has no table {request.table!r}, and never had one")
    created, reached = ancestry.complete, schema
    if request.held and ancestry.name_had_another:
        raise SchemaChanged(
            f"triplicate-changes: at version {begin} another table had the name {request.table!r}, so rows that were read of it then are "
            "not this table's. Read this table from its creation on, without startingVersion"
        )
    if request.known is not None and request.known < reached and first < begin:
        reached = _step_on(ancestry, SchemaHistory(entries, first, begin), request.known)
    lineage = ancestry.lineage()
    if schema > request.anchor:
        _check_behind(lineage, SchemaHistory(entries, first, begin) if first < begin else None)
    return FollowedTable(lineage, begin, schema, created, reached)


def _step_on(ancestry: Ancestry, history: SchemaHistory, known: int) -> int:
    """Step back before the beginning to a schema version. Returns the version reached, which is later if the log is truncated."""
    for located in history.backward():
        if located.version <= known:
            return known
        if located.version <= ancestry.anchor:
            ancestry.step(located)
        if ancestry.complete:
            return known
    return max(known, history.version_before)


def _check_behind(lineage: Lineage, history: SchemaHistory | None) -> None:
    """Check schema changes that are newer than the query's columns and older than the records it reads, as from a lagging node.

    Args:
        history: the schema changes before the read records; None if the log begins there.
    """
    if history is None or history.version_before > lineage.anchor:
        raise EnvironmentFault(
            f"triplicate-changes: the node that returned the columns of table {lineage.table!r} has schema version "
            f"{lineage.anchor}, and the log does not hold all schema changes since: the node lags; start the query again"
        )
    for located in history.backward():
        if located.version <= lineage.anchor:
            return
        dropped = isinstance(located.change, TableDropped) and fold(located.change.table) == lineage.eras[-1].table
        if dropped:
            raise SchemaChanged(f"triplicate-changes: table {lineage.table!r} was dropped at version {located.offset}")
        lineage.check_newer(located.change, located.offset)


def truncated(database: str, table: str, first: int, since: datetime | None) -> OffsetTruncated:
    """The error for a feed that should hold all rows of a table, or all its changes since a time, when the log begins later."""
    if since is not None:
        return OffsetTruncated(
            f"the log of database {database!r} begins at version {first}, which is not older than startingTimestamp {since}: changes since "
            f"then of table {table!r} may have been truncated; startingVersion=earliest reads those that the log still has"
        )
    return OffsetTruncated(
        f"the log of database {database!r} begins at version {first}, and table {table!r} is older: rows that have not changed since are "
        "not in its feed. Begin with a copy of the table (in one transaction: SELECT position FROM triplicate_state, and the rows) and "
        "that position as startingVersion; startingVersion=earliest reads the changes that the log still has"
    )


@dataclass(frozen=True, slots=True)
class CarriedDifferences:
    """The column changes that convert rows of schema version `held` to version `reached`.

    The same consumer may get them twice, from queries with different anchors. `reached` is then the same unless the table's columns have
    changed between the two.
    """

    carried: tuple[ColumnDifference, ...] = ()
    held: int = 0
    reached: int = 0


def check_consumer(followed: FollowedTable, start: ChangesOffset) -> CarriedDifferences:
    """The column changes that a consumer at an offset must apply to its rows before it continues.

    Raises:
        SchemaChanged: its rows belong to another table, or it has newer columns than this query.
    """
    lineage = followed.lineage
    # The reader of a batch had the columns after every schema change of its table in the batch, even if the offset is older. A batch that a
    # query has planned but not read is read by the next query, which may have more columns. Other schema changes do not concern the table.
    held = followed.schema if start.schema is None else max(followed.schema, start.schema)
    if start.schema is not None and start.schema > lineage.anchor:
        raise SchemaChanged(
            f"triplicate-changes: the stream has read table {lineage.table!r} with the columns of schema version {start.schema}, and the "
            f"node that returned its columns has version {lineage.anchor}: it lags; start the query again"
        )
    check_name(followed, start)
    return CarriedDifferences(tuple(lineage.carried(held)), held, lineage.last_carried)


def check_name(followed: FollowedTable, offset: ChangesOffset, *, planned: bool = False) -> None:
    """
    Args:
        planned: whether the offset is the end of a batch that was planned and not read.

    Raises:
        SchemaChanged: the offset belongs to another table.
    """
    lineage = followed.lineage
    named = followed.schema if offset.named is None else max(followed.reached, offset.named)
    name = fold(lineage.table) if named >= lineage.anchor else lineage.at(named).table
    if offset.table is not None and name != fold(offset.table):
        reads = "is to read" if planned else "has read"
        raise SchemaChanged(
            f"triplicate-changes: the stream {reads} rows of the table that was named {offset.table!r} up to version {offset.version}. "
            f"Table {lineage.table!r} is another one: {_origin(name)}. Use a new checkpoint for it, or the present name of the other"
        )


def _origin(name: str | None) -> str:
    return "it was created later" if name is None else f"it was named {name!r} then"


def refuse_carried(carried: Sequence[ColumnDifference], table: str, version: int) -> SchemaChanged:
    """The error for column changes that ordinary rows of the feed cannot express."""
    return SchemaChanged(
        f"triplicate-changes: after version {version} table {table!r} had changes that ordinary rows of its feed cannot express: "
        f"{'; '.join(map(_words, carried))}. Set option schemaEvents=deliver, and the feed begins with a row for each of them, or read it "
        "from the table's creation on (a stream: with a new checkpoint)"
    )


def _words(difference: ColumnDifference) -> str:
    match difference.kind:
        case "rename_column":
            return f"column {difference.column!r} is {difference.new_name!r} now"
        case "drop_column":
            return f"column {difference.column!r} is dropped"
    return f"column {difference.column!r} was added, with {difference.value!r} in all rows"
