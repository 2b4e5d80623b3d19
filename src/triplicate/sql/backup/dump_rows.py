"""The rows of a dump, stored in the tables that were made for them. All functions block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import length_hint

import apsw

from triplicate.errors import EnvironmentFault, SqlError
from triplicate.sql.backup.core.dump_text import DumpStatement
from triplicate.sql.backup.dump_definitions import check_schema
from triplicate.sql.backup.dump_inserts import Default, InsertHead, InsertRow, insert_rows, parse_insert
from triplicate.sql.backup.dump_tables import DumpRefusal, described
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.lexer import quote, statement_of
from triplicate.sql.pg.syntax.copy_statement import CopyFormat, CopyStatement, parse_copy
from triplicate.sql.pg.translate.translation import translate
from triplicate.sql.pg.values.copy_lines import CopyPlace, CopyRows
from triplicate.sql.pg.values.copy_text import TextReader
from triplicate.sql.pg.values.copy_values import RowConverter
from triplicate.sql.storage.sqlite_schema import columns_of

ROWS_AT_ONCE = 500
"""Rows of INSERT that are converted together."""
_GENERATED = "select name from pragma_table_xinfo(?, 'main') where hidden in (2, 3)"


class RowRefused(Exception):
    """A row was refused. It ends the import."""

    def __init__(self, refusal: DumpRefusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


def parse_copy_in(statement: DumpStatement) -> CopyStatement:
    """Parse COPY … FROM stdin as a dump has it. Raises SqlError."""
    parsed = parse_copy(statement_of(statement.text))
    names = [token for token in statement_of(parsed.target).tokens if token.text != "."]
    check_schema(names[0].name or "" if len(names) > 1 else "")
    if not parsed.is_from or parsed.options.format is not CopyFormat.TEXT:
        raise SqlError("0A000", "this COPY is none of pg_dump's")
    return parsed


class RowStore:
    """Stores rows of one table.

    Args:
        columns: names of the columns that the rows have; None for all that are not generated.

    Raises:
        SqlError: 42P01, 42703, there is no such table or column.
    """

    def __init__(self, connection: apsw.Connection, table: str, columns: Sequence[str] | None) -> None:
        found = columns_of(connection, table)
        if found is None:
            raise SqlError(
                "42P01", f'table "{table}" is not created in this text', hint="dump the definitions as well, without --data-only"
            )
        generated = {str(name) for (name,) in connection.execute(_GENERATED, (table,))}
        given = [name for name, _ in found] if columns is None else list(columns)
        self.table = table
        self._width = len(given)
        self._defaults = tuple(index for index, name in enumerate(given) if name in generated)
        self.columns = [name for name in given if name not in generated]
        names, markers = ", ".join(map(quote, self.columns)), ", ".join(f"${number}" for number in range(1, len(self.columns) + 1))
        insert = statement_of(f"INSERT INTO {quote(table)} ({names}) VALUES ({markers})")
        translation = translate(insert, ((table, tuple(found)),))
        self._sql = translation.sql
        self._oids = translation.parameter_oids
        self._cursor = connection.cursor()

    def converter(self, place: CopyPlace) -> RowConverter:
        return RowConverter(place, self.columns, self._oids, is_binary=False)

    def store(self, rows: Sequence[Sequence[Value]], lines: Sequence[int]) -> None:
        """Store rows.

        Args:
            lines: of the file, for each row.

        Raises:
            RowRefused: a constraint refuses one. EnvironmentFault: the disk has no room.
        """
        remaining = iter(rows)
        try:
            self._cursor.executemany(self._sql, remaining)
        except apsw.FullError as error:
            raise EnvironmentFault(f"no room for the rows of table {self.table}: {error}") from error
        except (apsw.Error, SqlError) as error:
            reason = described(error) if isinstance(error, SqlError) else str(error)
            line = lines[len(rows) - length_hint(remaining) - 1]
            raise RowRefused(DumpRefusal(line, f"table {self.table}: {reason}")) from None

    def fields(self, row: InsertRow) -> list[str | None]:
        """The fields of a row of INSERT, without those of generated columns. Raises SqlError: it has others, or DEFAULT elsewhere."""
        if len(row.fields) != self._width:
            raise SqlError("42601", f"the row has {len(row.fields)} values, {self._width} belong there", position=row.start + 1)
        fields = [one for index, one in enumerate(row.fields) if index not in self._defaults]
        texts = [one for one in fields if not isinstance(one, Default)]
        if len(texts) != len(self.columns):
            raise SqlError("0A000", "DEFAULT stands for the value of a column that is not generated", position=row.start + 1)
        return texts


class RowLoader:
    """Stores the rows of a dump, statement by statement. Rows of INSERT are stored in batches; call `flush` at the end."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._stores: dict[tuple[str, tuple[str, ...] | None], RowStore] = {}
        self._batch: list[list[str | None]] = []
        self._lines: list[int] = []
        self._of: RowStore | None = None
        self._head = ""
        """The text before the rows of the last INSERT, which most have in common. Its length is the position of the first row."""

    def copy(self, statement: DumpStatement, first_line: int, data: Iterator[bytes]) -> None:
        """Store the rows behind a COPY.

        Args:
            first_line: the line before the data.

        Raises:
            RowRefused: a row is malformed or refused.
        """
        self.flush()
        parsed = parse_copy_in(statement)
        store = self._store(parsed.table, parsed.columns)
        place = CopyPlace(parsed.table, first_line)
        reader, converter = TextReader(parsed.options, place, store.columns), store.converter(place)

        def take(found: CopyRows) -> None:
            rows = list(converter.convert(found))
            if rows:
                store.store(rows, [first_line + line for line in found.lines])

        try:
            for block in data:
                take(reader.feed(block))
            take(reader.finish())
        except SqlError as error:
            raise RowRefused(DumpRefusal(0, f"{error.context}: {described(error)}")) from None

    def insert(self, statement: DumpStatement) -> None:
        """Take the rows of an INSERT. Raises as `copy`."""
        text, place, line = statement.text, 0, statement.line
        try:
            store = self._of
            if store is None or not self._head or not text.startswith(self._head):
                head = parse_insert(text)
                store = self._store_of(head)
                self._head = text[: head.end]
            if store is not self._of:
                self.flush()
                self._of = store
            for row in insert_rows(text, len(self._head)):
                line += text.count("\n", place, row.start)
                place = row.start
                self._batch.append(store.fields(row))
                self._lines.append(line)
                if len(self._batch) >= ROWS_AT_ONCE:
                    self.flush()
        except SqlError as error:
            if error.position is not None:
                line += text.count("\n", place, error.position - 1)
            raise RowRefused(DumpRefusal(line, described(error))) from None

    def flush(self) -> None:
        """Store the rows of INSERT that were taken. Raises as `copy`."""
        batch, lines, store = self._batch, self._lines, self._of
        self._batch, self._lines = [], []
        if store is None or not batch:
            return
        try:
            rows = list(store.converter(CopyPlace(store.table, statement="INSERT into")).convert(CopyRows(batch, lines)))
        except SqlError as error:
            raise RowRefused(DumpRefusal(0, f"{error.context}: {described(error)}")) from None
        store.store(rows, lines)

    def _store_of(self, head: InsertHead) -> RowStore:
        check_schema(head.schema)
        return self._store(head.table, head.columns)

    def _store(self, table: str, columns: tuple[str, ...] | None) -> RowStore:
        key = (table, columns)
        found = self._stores.get(key)
        if found is None:
            found = self._stores[key] = RowStore(self._connection, table, columns)
        return found
