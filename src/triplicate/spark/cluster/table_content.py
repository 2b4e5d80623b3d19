"""The content of a table at a position of its database's log, read from a node that holds the database as it was then.

Values are read as SQLite's literals (`quote`), so they are the stored values, as in the log, and not those that PostgreSQL shows.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from triplicate.errors import EnvironmentFault, OffsetTruncated
from triplicate.spark.cluster import database_tables

ROWS_PER_PART = 250_000
COPY_LIMIT_S = 1800.0
"""Maximum wait for a node that copies the database as it was: it reads a snapshot and the log behind it."""
_NOT_READY, _NOT_KEPT = "55P03", "55000"
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
        values = [f"quote({_quoted(name)})" for name in names] + ([self.rowid] if self.rowid else [])
        bounds = [f"{self.rowid} {sign} {bound}" for sign, bound in ((">=", self.low), ("<", self.high)) if bound is not None]
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        order = self.rowid or ", ".join(map(_quoted, self.key))
        return f"SELECT {', '.join(values) or '1'} FROM {_quoted(self.table)}{where} ORDER BY {order}"


def plan_content(metadata_uri: str, database: str, position: int, table: str) -> list[ContentPart]:
    """Parts of the content for parallel readers, in order; the same at each call. No part if the table is empty or does not exist then.

    A table with rowids is cut after each `ROWS_PER_PART` rows; the node reads it once for that. Another table is one part.

    Raises:
        As `past_connection`.
    """
    with past_connection(metadata_uri, database, position) as (node, connection):
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
        numbered = f"SELECT {whole.rowid} AS place, row_number() OVER (ORDER BY {whole.rowid}) AS number FROM {_quoted(present)}"
        found = connection.execute(f"SELECT place FROM ({numbered}) n WHERE (number - 1) % {ROWS_PER_PART} = 0").fetchall()
        cuts = [int(low) for (low,) in found]
        ends = [*cuts[1:], None]
        return [
            replace(whole, low=low, high=high, first_row=index * ROWS_PER_PART)
            for index, (low, high) in enumerate(zip(cuts, ends, strict=False))
        ]


def content_rows(metadata_uri: str, database: str, part: ContentPart, names: Sequence[str]) -> Generator[tuple[str, ...]]:
    """The rows of a part, as `ContentPart.statement` has them.

    Raises:
        As `past_connection`.
    """
    with (
        past_connection(metadata_uri, database, part.position, part.node) as (_, connection),
        connection.cursor().copy(f"COPY ({part.statement(names)}) TO STDOUT") as copy,
    ):
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
def past_connection(metadata_uri: str, database: str, position: int, node: str = "") -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    """A connection that reads the database as of a position, and its node's address.

    Args:
        node: the address of the node to try first.

    Raises:
        OffsetTruncated: the database does not keep what leads to that position. EnvironmentFault: no node can be read.
    """
    failures: list[str] = []
    states: set[str | None] = set()
    connects = database_tables.node_connections(metadata_uri, database)
    for address in sorted(connects, key=lambda address: address != node):
        try:
            connection = connects[address]()
        except psycopg.Error as error:
            failures.append(f"{address}: {str(error).strip()}")
            states.add(error.sqlstate)
            continue
        with connection:
            try:
                _travel(connection, position)
            except psycopg.Error as error:
                failures.append(f"{address}: {str(error).strip()}")
                states.add(error.sqlstate)
                continue
            try:
                yield address, connection
            except psycopg.Error as error:
                raise EnvironmentFault(f"triplicate-changes: node {address} of database {database!r}: {str(error).strip()}") from error
            return
    reasons = "; ".join(failures) or "none runs"
    if states == {_NOT_KEPT}:
        raise OffsetTruncated(
            f"triplicate-changes: the content of database {database!r} at position {position} cannot be read any more ({reasons}): begin "
            "with a new checkpoint"
        )
    raise EnvironmentFault(f"triplicate-changes: no node of database {database!r} has given its content at position {position} ({reasons})")


def _travel(connection: psycopg.Connection[Any], position: int) -> None:
    """The first session at a position waits for the copy, as long as the node lets it. The copy is still built then."""
    deadline = time.monotonic() + COPY_LIMIT_S
    while True:
        try:
            connection.execute(f"SET triplicate.as_of = 'position {position}'")
            return
        except psycopg.Error as error:
            if error.sqlstate != _NOT_READY or time.monotonic() >= deadline:
                raise


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
