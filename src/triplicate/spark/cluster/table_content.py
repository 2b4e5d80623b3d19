"""The content of a table at a position of its database's log, read from a node that holds the database as it was then.

Values are read as SQLite's literals (`quote`), so they are the stored values, as in the log, and not those that PostgreSQL shows. SQLite
puts the rows of a page together as CSV, with `'` as the quote: so no process handles single rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg.types.numeric import Int8

from triplicate.errors import EnvironmentFault, OffsetTruncated
from triplicate.spark.cluster import database_tables

ROWS_PER_PART = 250_000
PAGE_ROWS, FIRST_PAGE_ROWS = 8_192, 256
PAGE_BYTES = 1024 * 1024
"""Limits of a page. The rows before it show how many will have this size."""
LEAST_ROWID, GREATEST_ROWID = -(2**63), 2**63 - 1
COPY_LIMIT_S = 1800.0
"""Maximum wait for a node that copies the database as it was: it reads a snapshot and the log behind it."""
_NOT_READY, _NOT_KEPT = "55P03", "55000"
_TOO_LARGE = ("54000", "53200")
_ROWID_NAMES = ("rowid", "oid", "_rowid_")
_TABLE = """
SELECT t.name, CAST(t.wr AS INTEGER), x.name, CAST(x.pk AS INTEGER), CAST(x.hidden AS INTEGER)
FROM pragma_table_list(%s) t, pragma_table_xinfo(t.name) x WHERE t.schema = 'main' AND t.type = 'table' ORDER BY x.cid
"""


@dataclass(frozen=True, slots=True)
class ContentPart:
    """Rows of a table that one task reads.

    Args:
        node: the address of the node that planned it, and has the copy.
        position: of the log. All transactions before it are in the content.
        rowid: the name of the rowid in statements; empty in a table without.
        key: the columns of the primary key of a table without rowids.
        low, high: rowids, `high` exclusive; None: without a bound. first_row: the number of rows in the parts before.
    """

    node: str
    position: int
    table: str
    columns: tuple[str, ...]
    rowid: str
    key: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    first_row: int = 0

    def statement(self, names: Sequence[str]) -> str:
        """The rows in the order of their rowid or key: literals of some columns, then the rowid if there is one."""
        values = [f"quote({quoted(name)})" for name in names] + ([self.rowid] if self.rowid else [])
        where = f" WHERE {bounds}" if (bounds := self._bounds()) else ""
        order = self.rowid or ", ".join(map(quoted, self.key))
        return f"SELECT {', '.join(values) or '1'} FROM {quoted(self.table)}{where} ORDER BY {order}"

    def page(self, names: Sequence[str]) -> str:
        """The first rows as CSV, of a table with rowids: their number, the last rowid, and lines with the literals of some columns.

        Its parameters are the end of a line, the least rowid and the number of rows, so that a node prepares it once for all pages.
        """
        line = " || ',' || ".join(f"quote({quoted(name)})" for name in names).replace("%", "%%")
        place, end = self.rowid, "" if self.high is None else f" AND {self.rowid} < {self.high}"
        lines = f"SELECT {place} AS place, {line} AS line FROM {quoted(self.table).replace('%', '%%')} WHERE {place} >= %s{end}"
        return f"SELECT count(*), max(place), string_agg(line, %s) FROM ({lines} ORDER BY {place} LIMIT %s) page"

    def _bounds(self) -> str:
        bounds = ((">=", self.low), ("<", self.high))
        return " AND ".join(f"{self.rowid} {sign} {bound}" for sign, bound in bounds if bound is not None)


@dataclass(frozen=True, slots=True)
class ContentPage:
    """Neighbouring rows of a table.

    Args:
        text: CSV, a line for each row.
        literals: reads the same rows as `content_rows` has them, for values that are not as the columns' types have them.
    """

    rows: int
    text: bytes
    literals: Callable[[], list[tuple[str, ...]]]


def plan_content(metadata_uri: str, database: str, position: int, table: str) -> list[ContentPart]:
    """Parts of the content for parallel readers, in order; the same at each call. No part if the table is empty or does not exist then.

    Raises:
        As `past_connection`.
    """
    with past_connection(metadata_uri, database, f"position {position}") as (node, connection):
        return parts_of(connection, node, position, table, ROWS_PER_PART)


def parts_of(connection: psycopg.Connection[Any], node: str, position: int, table: str, rows: int) -> list[ContentPart]:
    """See `plan_content`. A table with rowids is cut after each `rows` rows. Another table is one part."""
    found = connection.execute(_TABLE, (table,)).fetchall()
    if not found:
        return []
    present, without_rowid = str(found[0][0]), found[0][1]
    columns = tuple(str(name) for _, _, name, _, hidden in found if not hidden)
    if without_rowid:
        keys = sorted((key, str(name)) for _, _, name, key, _ in found if key)
        return [ContentPart(node, position, present, columns, "", tuple(name for _, name in keys))]
    # A table whose columns have all of these names is refused when it is created.
    names = {str(name).lower() for _, _, name, _, _ in found}
    whole = ContentPart(node, position, present, columns, next(name for name in _ROWID_NAMES if name not in names))
    rowids = f"SELECT {whole.rowid} FROM {quoted(present)}"
    lows = connection.execute(f"{rowids} ORDER BY 1 LIMIT 1").fetchall()
    cuts: list[int] = []
    while lows:
        cuts.append(int(lows[0][0]))
        lows = connection.execute(f"{rowids} WHERE {whole.rowid} >= {cuts[-1]} ORDER BY 1 LIMIT 1 OFFSET {rows}").fetchall()
    ends = [*cuts[1:], None]
    return [replace(whole, low=low, high=high, first_row=index * rows) for index, (low, high) in enumerate(zip(cuts, ends, strict=False))]


def content_rows(metadata_uri: str, database: str, part: ContentPart, names: Sequence[str]) -> Generator[tuple[str, ...]]:
    """The rows of a part, as `ContentPart.statement` has them.

    Raises:
        As `past_connection`.
    """
    with past_connection(metadata_uri, database, f"position {part.position}", part.node) as (_, connection):
        yield from copied_rows(connection, part.statement(names))


def content_pages(metadata_uri: str, database: str, part: ContentPart, names: Sequence[str]) -> Generator[ContentPage]:
    """The rows of a part of a table with rowids, in pages.

    Args:
        names: of columns; not empty.

    Raises:
        As `past_connection`.
    """
    with past_connection(metadata_uri, database, f"position {part.position}", part.node) as (_, connection):
        rest, most, statement = part, FIRST_PAGE_ROWS, part.page(names)
        while True:
            try:
                parameters = "\n", Int8(LEAST_ROWID if rest.low is None else rest.low), Int8(most)
                ((rows, last, text),) = connection.execute(statement, parameters, prepare=True).fetchall()
            except psycopg.Error as error:
                if error.sqlstate not in _TOO_LARGE or most == 1:
                    raise
                most = max(1, most // 16)  # Rows much larger than those before them.
                continue
            if not rows:
                return
            this, content = replace(rest, high=last + 1), text.encode()
            yield ContentPage(rows, content, lambda this=this: list(copied_rows(connection, this.statement(names))))  # type: ignore[misc]
            if last == GREATEST_ROWID:
                return
            rest = replace(rest, low=last + 1)
            most = max(1, min(PAGE_ROWS, 2 * most, PAGE_BYTES * rows // max(1, len(content))))


def copied_rows(connection: psycopg.Connection[Any], statement: str) -> Generator[tuple[str, ...]]:
    """The rows of a query, as texts."""
    with connection.cursor().copy(f"COPY ({statement}) TO STDOUT") as copy:
        yield from copy.rows()


def stored_value(literal: str) -> Any:
    """The value of a literal of SQLite."""
    match literal[0]:
        case "'":
            return literal[1:-1].replace("''", "'")
        case "N":
            return None
        case "X":
            return bytes.fromhex(literal[2:-1])
    try:
        return int(literal)
    except ValueError:
        return float(literal)


@contextmanager
def past_connection(metadata_uri: str, database: str, point: str, node: str = "") -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    """A connection that reads the database as it was at a point, and its node's address.

    Args:
        point: of the database's log, as ``triplicate.as_of`` takes it.
        node: the address of the node to try first; empty: those that follow, so that the leader is not disturbed.

    Raises:
        OffsetTruncated: the database does not keep what leads to that point. EnvironmentFault: no node can be read.
    """
    failures: dict[str, str] = {}
    states: set[str | None] = set()
    connects = database_tables.node_connections(metadata_uri, database)
    for address in sorted(connects, key=lambda address: address != node):
        try:
            connection = connects[address]()
        except psycopg.Error as error:
            failures[address] = str(error).strip()
            states.add(error.sqlstate)
            continue
        with connection:
            try:
                _travel(connection, point)
            except psycopg.Error as error:
                failures[address] = str(error).strip()
                states.add(error.sqlstate)
                continue
            try:
                yield address, connection
            except psycopg.Error as error:
                raise EnvironmentFault(f"node {address} of database {database!r}: {str(error).strip()}") from error
            return
    texts = [*set(failures.values())] if len(set(failures.values())) == 1 else [f"{address}: {text}" for address, text in failures.items()]
    reasons = "; ".join(texts) or "none runs"
    if states == {_NOT_KEPT}:
        raise OffsetTruncated(
            f"the content of database {database!r} at {point} cannot be read ({reasons}); a stream whose begin is not kept any more needs "
            "a new checkpoint"
        )
    raise EnvironmentFault(f"no node of database {database!r} has given its content at {point} ({reasons})")


def _travel(connection: psycopg.Connection[Any], point: str) -> None:
    """The first session at a point waits for the copy, as long as the node lets it. The copy is still built then."""
    deadline = time.monotonic() + COPY_LIMIT_S
    while True:
        try:
            connection.execute(f"SET triplicate.as_of = '{point}'")
            return
        except psycopg.Error as error:
            if error.sqlstate != _NOT_READY or time.monotonic() >= deadline:
                raise


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'
