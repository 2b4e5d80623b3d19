"""Which table a change feed follows from one version on, and whether a consumer can go on with it. Decided when a read is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import ConfigError, EnvironmentFault, OffsetTruncated, SchemaChanged
from triplicate.spark.change_feed.lineage import Ancestry, ColumnDifference, Lineage
from triplicate.spark.change_feed.schema_history import EntriesOf, SchemaHistory
from triplicate.spark.core.change_offsets import ChangesOffset
from triplicate.sql import TableDropped, fold


@dataclass(frozen=True, slots=True)
class Wanted:
    """A feed as a query asks for it.

    Args:
        table: the name at the anchor. columns: its columns there.
        anchor: the schema version of which these are. whole: they are all there were.
        known: an older schema version at which the consumer knew its table; None where it says nothing of one.
        held: the consumer holds rows of before the beginning, of the table that had the name then.
    """

    database: str
    table: str
    columns: tuple[str, ...]
    anchor: int
    whole: bool
    known: int | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class Followed:
    """The table's history from a version on.

    `begin` is that version, and `schema` the schema's version before it. `created`: the table was created after it, so the feed from
    there on holds all of its rows. `reached`: the schema version back to which the lineage was looked for.
    """

    lineage: Lineage
    begin: int
    schema: int
    created: bool
    reached: int


def follow(entries: EntriesOf, wanted: Wanted, first: int, begin: int, end: int) -> Followed | None:
    """Follow a table back from the anchor; None where the log does not reach to the anchor yet.

    Args:
        first, end: the bounds of the log. begin: where reading begins, before `end`.

    Raises:
        SchemaChanged: the name or a column is not there any more, or another table had the name when the consumer got its rows.
        ConfigError: there never was such a table. EnvironmentFault: the node that named the columns lags behind the log's beginning.
    """
    if end <= begin:
        return None
    history = SchemaHistory(entries, begin, end)
    if history.version_after < wanted.anchor:
        return None
    ancestry = Ancestry(wanted.table, wanted.columns, wanted.anchor, whole=wanted.whole)
    for located in history.backward():
        if located.version <= wanted.anchor:
            ancestry.step(located)
        if ancestry.complete and not wanted.held:
            break
    if not begin and not ancestry.complete:
        raise ConfigError(f"triplicate-changes: database {wanted.database!r} has no table {wanted.table!r}, and never had one")
    created, reached = ancestry.complete, history.version_before
    if wanted.held and ancestry.name_had_another:
        raise SchemaChanged(
            f"triplicate-changes: at version {begin} another table had the name {wanted.table!r}, so rows that were read of it then are "
            "not this table's. Read this table from its creation on, without startingVersion"
        )
    if wanted.known is not None and wanted.known < reached and first < begin:
        reached = _step_on(ancestry, SchemaHistory(entries, first, begin), wanted.known)
    lineage = ancestry.lineage()
    if history.version_before > wanted.anchor:
        _check_behind(lineage, SchemaHistory(entries, first, begin) if first < begin else None)
    return Followed(lineage, begin, history.version_before, created, reached)


def _step_on(ancestry: Ancestry, history: SchemaHistory, known: int) -> int:
    """Step back beyond the beginning to a schema version; the one that was reached, which is later where the log is truncated."""
    for located in history.backward():
        if located.version <= known:
            return known
        if located.version <= ancestry.anchor:
            ancestry.step(located)
        if ancestry.complete:
            return known
    return max(known, history.version_before)


def _check_behind(lineage: Lineage, history: SchemaHistory | None) -> None:
    """Changes that are newer than the query's columns and older than what it reads: the node that named the columns lags.

    Args:
        history: of the log before what is read; None where it begins there.
    """
    if history is None or history.version_before > lineage.anchor:
        raise EnvironmentFault(
            f"triplicate-changes: the node that was asked for the columns of table {lineage.table!r} knows schema version "
            f"{lineage.anchor}, and the log does not hold all schema changes since: the node lags; start the query again"
        )
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


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """What a consumer must do to rows that have the columns of schema version `held`, for those of version `anchor`."""

    carried: tuple[ColumnDifference, ...] = ()
    held: int = 0
    anchor: int = 0


def check_consumer(followed: Followed, start: ChangesOffset) -> CarriedOver:
    """What a consumer that has read up to an offset must do to its rows before it reads on.

    Raises:
        SchemaChanged: its rows are another table's, or it has seen newer columns than this query has.
    """
    lineage = followed.lineage
    # What has read a batch had the columns of every schema change of its table in it, whatever the offset says: a batch that a query has
    # planned and not read is read by the next one, which may know more columns. All other schema changes are none of the table's.
    held = followed.schema if start.schema is None else max(followed.schema, start.schema)
    if start.schema is not None and start.schema > lineage.anchor:
        raise SchemaChanged(
            f"triplicate-changes: the stream has read table {lineage.table!r} with the columns of schema version {start.schema}, and the "
            f"node that was asked for its columns knows version {lineage.anchor}: it lags; start the query again"
        )
    check_name(followed, start)
    return CarriedOver(tuple(lineage.carried(held)), held, lineage.anchor)


def check_name(followed: Followed, start: ChangesOffset) -> None:
    """Raises SchemaChanged where a consumer has read rows of another table."""
    lineage = followed.lineage
    named = followed.schema if start.named is None else max(followed.reached, start.named)
    name = fold(lineage.table) if named >= lineage.anchor else lineage.at(named).table
    if start.table is not None and name != fold(start.table):
        raise SchemaChanged(
            f"triplicate-changes: the stream has read rows of the table that was named {start.table!r} up to version {start.version}. "
            f"Table {lineage.table!r} is another one: {_origin(name)}. Use a new checkpoint for it, or the present name of the other"
        )


def _origin(name: str | None) -> str:
    return "it was created later" if name is None else f"it was named {name!r} then"


def refuse_carried(carried: Sequence[ColumnDifference], table: str, version: int) -> SchemaChanged:
    """The complaint about what no row of the usual kinds says."""
    return SchemaChanged(
        f"triplicate-changes: after version {version} table {table!r} was changed as no row of its feed says: "
        f"{'; '.join(map(_words, carried))}. Set option schemaEvents=deliver, and the feed begins with a row for each of them, or read it "
        "from the table's creation on (a stream: with a new checkpoint)"
    )


def _words(one: ColumnDifference) -> str:
    match one.kind:
        case "rename_column":
            return f"column {one.column!r} is {one.new_name!r} now"
        case "drop_column":
            return f"column {one.column!r} is dropped"
    return f"column {one.column!r} was added, with {one.value!r} in all rows"
