"""A table and its columns through the log's schema changes: the table behind a name, and the sources of its columns. Pure.

A change feed follows the table that has a name at one schema version, the *anchor*: the version of the query's columns. Earlier schema
changes are processed backwards, newest first. That does not need earlier schema texts, because row runs name their columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from triplicate.errors import ConfigError, FormatError, SchemaChanged
from triplicate.sql import (
    ColumnAdded,
    ColumnDropped,
    ColumnRenamed,
    TableChange,
    TableCreated,
    TableDropped,
    TableRenamed,
    Value,
    fold,
)


@dataclass(frozen=True, slots=True)
class LocatedChange:
    """A change of a table by the transaction at `offset`; `version` is the schema version after it."""

    offset: int
    version: int
    change: TableChange


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """The source of a column's values in the rows of an era: a column of that time, or `default` if it did not exist yet."""

    column: str | None
    default: Value = None
    strict_default: tuple[Value] | None = None
    """The value if the table is STRICT. Unused in a lineage, in which that is decided."""


@dataclass(frozen=True, slots=True)
class ColumnEra:
    """The state from a schema version on: the table's name (None if it does not exist), and the sources of the feed's columns.

    `gone` are columns of that time that do not exist at the anchor.
    """

    version: int
    table: str | None
    sources: tuple[ColumnSource, ...]
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A difference between the columns of an older schema version and the anchor's, for a consumer with rows of the older version.

    `column` is the old name, or the present one for an added column. A renamed column has its present name in `new_name`. An added column
    has the value of all existing rows.
    """

    kind: str
    column: str
    new_name: str | None = None
    value: Value = None


@dataclass(frozen=True)
class Lineage:
    """The history of one table that a reader of its rows needs. It has only plain values, because it is pickled for the tasks.

    Args:
        table: the requested name. columns: the table's columns in the feed.
        anchor: the schema version of these names. whole: whether these are all of the table's columns.
        eras: oldest first. The first one also applies to all earlier versions.
    """

    table: str
    columns: tuple[str, ...]
    anchor: int
    whole: bool
    eras: tuple[ColumnEra, ...]

    def at(self, version: int) -> ColumnEra:
        """The era of a schema version."""
        return self.eras[max(0, bisect_right(self.eras, version, key=lambda era: era.version) - 1)]

    def carried(self, version: int) -> list[ColumnDifference]:
        """The differences between a schema version and the anchor; none for the anchor and later versions."""
        era = self.at(version)
        if version >= self.anchor or era.table is None:
            return []
        differences = []
        for name, source in zip(self.columns, era.sources, strict=True):
            if source.column is None and source.default is not None:
                differences.append(ColumnDifference("add_column", name, value=source.default))
            elif source.column is not None and fold(source.column) != fold(name):
                differences.append(ColumnDifference("rename_column", source.column, new_name=name))
        requested = set(map(fold, self.columns))
        return differences + [ColumnDifference("drop_column", name) for name in era.gone if self.whole or fold(name) in requested]

    @property
    def last_carried(self) -> int:
        """The schema version from which on nothing is carried: it does not depend on changes of other tables, as the anchor does."""
        last = self.eras[0].version
        for era, later in pairwise(self.eras):
            if self.carried(era.version):
                last = later.version
        return last

    def check_newer(self, change: TableChange, offset: int) -> None:
        """Check a schema change newer than the anchor, except a drop of the table, which is a change of rows.

        Raises:
            SchemaChanged: the feed's columns differ from the table's, or its name belongs to another table.
        """
        era = self.eras[-1]
        name, present = fold(change.table), era.table
        problem = None
        if isinstance(change, TableRenamed) and name == present:
            raise renamed(change, offset)
        if isinstance(change, TableCreated) and name == fold(self.table):
            problem = "another table was created under this name"
        elif isinstance(change, TableRenamed) and fold(change.new_name) == fold(self.table):
            problem = f"another table, {change.table!r}, was renamed to this name"
        elif name == present:
            problem = self._newer_column(change, era)
        if problem is not None:
            raise SchemaChanged(
                f"triplicate-changes: table {self.table!r}: {problem} at version {offset}. This query has the former columns; start it "
                "again, and it continues with the new ones (a table of Spark's that stores them: create it again)"
            )

    def _newer_column(self, change: TableChange, era: ColumnEra) -> str | None:
        if isinstance(change, ColumnAdded):
            return f"column {change.column!r} was added" if self.whole else None
        if not isinstance(change, ColumnRenamed | ColumnDropped) or not _has(era.sources, change.column):
            return None
        return f"column {change.column!r} was " + (f"renamed to {change.new_name!r}" if isinstance(change, ColumnRenamed) else "dropped")


class Ancestry:
    """Processes schema changes backwards from the anchor, newest first.

    Args:
        table, columns, anchor, whole: as in `Lineage`. Where no table has the name at the anchor, it is the last that had it.
    """

    def __init__(self, table: str, columns: Sequence[str], anchor: int, *, whole: bool) -> None:
        self._asked, self._columns, self._anchor, self._whole = table, tuple(columns), anchor, whole
        self._name: str | None = fold(table)
        self._had_another_table = True
        self._strict: bool | None = None
        self._sources = [ColumnSource(name) for name in self._columns]
        self._gone: list[str] = []
        self._seen = False
        self._eras: list[ColumnEra] = []

    @property
    def complete(self) -> bool:
        """Whether the table's creation was reached. Earlier changes do not matter."""
        return self._name is None

    @property
    def anchor(self) -> int:
        """The schema version at which the steps begin."""
        return self._anchor

    @property
    def name_had_another(self) -> bool:
        """Whether another table had the requested name at the version reached."""
        return self._had_another_table and self._name != fold(self._asked)

    def step(self, located: LocatedChange) -> None:
        """Step back over a change of a version up to the anchor.

        Raises:
            SchemaChanged: the requested name or column belongs to no table or column any more, or to a virtual table.
            FormatError: the changes contradict each other.
        """
        change, name = located.change, fold(located.change.table)
        asked = fold(self._asked)
        if isinstance(change, TableRenamed) and fold(change.new_name) == asked:
            self._had_another_table = False
        elif name == asked:
            self._had_another_table = not isinstance(change, TableCreated)
        if self._name is None:
            return
        if isinstance(change, TableRenamed) and fold(change.new_name) == self._name:
            self._record(located.version)
            self._name = name
        elif name == self._name:
            self._step(located, change)

    def _step(self, located: LocatedChange, change: TableChange) -> None:
        if self._seen and isinstance(change, TableRenamed | TableDropped):
            raise FormatError(f"the log's schema changes contradict each other at version {located.offset}: {change}")
        match change:
            case TableRenamed():
                raise renamed(change, located.offset)
            case TableCreated(virtual=True):
                raise ConfigError(f"triplicate-changes: {self._asked!r} is a virtual table, which has no rows of its own and so no feed")
            case TableDropped():
                # The last table with this name: it does not exist after this change.
                self._eras.append(ColumnEra(located.version, None, tuple(self._sources)))
                self._seen = True
                return
        self._record(located.version)
        match change:
            case TableCreated(strict=strict):
                self._name, self._strict = None, strict
            case ColumnAdded(column=column, default=default, strict_default=strict_default):
                self._replace(column, ColumnSource(None, default, strict_default))
                self._gone = [other for other in self._gone if fold(other) != fold(column)]
            case ColumnDropped(column=column):
                self._refuse(column, f"was dropped at version {located.offset}")
                self._gone.append(column)
            case ColumnRenamed(column=column, new_name=new_name):
                if fold(column) != fold(new_name):
                    self._refuse(column, f"was renamed to {new_name!r} at version {located.offset}")
                self._replace(new_name, ColumnSource(column))
                self._gone = [column if fold(other) == fold(new_name) else other for other in self._gone]

    def lineage(self) -> Lineage:
        """The lineage found. The state reached also applies to all versions before the last step.

        Raises:
            SchemaChanged: a column's default depends on how the table was created, which the log does not hold any more.
        """
        oldest = ColumnEra(-1, self._name, tuple(self._sources), tuple(self._gone))
        return Lineage(self._asked, self._columns, self._anchor, self._whole, tuple(map(self._settled, (oldest, *reversed(self._eras)))))

    def _settled(self, era: ColumnEra) -> ColumnEra:
        if all(source.strict_default is None for source in era.sources):
            return era
        sources = []
        for name, source in zip(self._columns, era.sources, strict=True):
            if source.strict_default is None:
                sources.append(source)
                continue
            if self._strict is None:
                raise SchemaChanged(
                    f"triplicate-changes: table {self._asked!r}: column {name!r} was added with type ANY and a default whose value depends "
                    "on whether the table is STRICT, and the log does not hold the table's creation any more. Begin with a copy of the "
                    "table, and its version as startingVersion"
                )
            sources.append(ColumnSource(None, source.strict_default[0] if self._strict else source.default))
        return replace(era, sources=tuple(sources))

    def _record(self, version: int) -> None:
        self._seen = True
        self._eras.append(ColumnEra(version, self._name, tuple(self._sources), tuple(self._gone)))

    def _replace(self, column: str, source: ColumnSource) -> None:
        self._sources = [source if other.column is not None and fold(other.column) == fold(column) else other for other in self._sources]

    def _refuse(self, column: str, what: str) -> None:
        if _has(self._sources, column):
            raise SchemaChanged(
                f"triplicate-changes: table {self._asked!r} has no column {column!r} any more: it {what}. Request its present columns, "
                "or start the query again where it was started at that moment"
            )


def renamed(change: TableRenamed, offset: int) -> SchemaChanged:
    """The error for a table that continues under another name."""
    return SchemaChanged(
        f"triplicate-changes: table {change.table!r} was renamed to {change.new_name!r} at version {offset}: "
        f"start the query again with option table={change.new_name}, and it continues with the same rows"
    )


def _has(sources: Sequence[ColumnSource], column: str) -> bool:
    return any(source.column is not None and fold(source.column) == fold(column) for source in sources)
