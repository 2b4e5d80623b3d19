"""Plain SQLite files: a database without the internal tables, and a file of SQLite's that becomes a database. All functions block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import apsw

from triplicate.errors import ArgumentError, SqlError
from triplicate.runtime import Host
from triplicate.sql.core.lexer import quote
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.executor.writer_connection import WriterConnection
from triplicate.sql.storage.sqlite_copy import check_room, delete_file, quick_check
from triplicate.sql.storage.sqlite_file import open_follower, open_store
from triplicate.sql.storage.sqlite_schema import INTERNAL_PREFIX, is_internal, load_tables

IMPORTED_POSITION = 1
"""Where the log of an imported database begins: behind 0, so that every node loads its snapshot."""
_MAGIC = b"SQLite format 3\0"
_SCRATCH = ".definitions"
_SHOWN = 10
_STEP_PAGES = 256
_INTERNAL = """
select type, name from main.sqlite_schema where name like 'triplicate\\_%' escape '\\' and type in ('view', 'table') order by type desc
"""
_DEFINITIONS = """
select s.type, s.name, s.sql from main.sqlite_schema s left join pragma_table_list l on l.schema = 'main' and l.name = s.tbl_name
where s.sql is not null and s.name not like 'sqlite\\_%' escape '\\' and coalesce(l.type, '') <> 'shadow'
order by case s.type when 'table' then 0 when 'view' then 1 when 'index' then 2 else 3 end, s.rowid
"""


@dataclass(frozen=True, slots=True)
class _Definition:
    kind: str
    name: str
    sql: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def make_plain(path: str) -> None:
    """Remove the internal tables, with roles and rights, from a copy of a database. Other programs can open it then.

    Rows keep their rowids, which VACUUM would change. The removed pages are overwritten, since they hold verifiers of passwords.
    """
    connection = open_follower(path)
    try:
        connection.pragma("secure_delete", True)
        with connection:
            for kind, name in connection.execute(_INTERNAL).fetchall():
                connection.execute(f"drop {kind} main.{quote(str(name))}")
        connection.pragma("journal_mode", "delete")
        connection.pragma("synchronous", "full")
    finally:
        connection.close(True)


def adopt_plain(host: Host, source_path: str, path: str, identity: bytes, place: str = "") -> None:
    """Copy a SQLite file, and make the copy a database's file at `IMPORTED_POSITION`, if it has only what a database may have.

    Args:
        source_path: is read only, in one transaction. path: of the copy; no file has it.
        place: names the source in errors; empty for its path.

    Raises:
        ArgumentError: it is no sound SQLite file, or a definition or a value in it would be refused by a database. The message names the
            first ones. EnvironmentFault: the disk has no room.
    """
    place = place or source_path
    try:
        _copy(host, source_path, path)
        connection = open_follower(path)
        try:
            _check_encoding(host, place, connection)
            _check_soundness(place, connection)
            definitions = [_Definition(*map(str, row)) for row in connection.execute(_DEFINITIONS)]
            _check_names(place, definitions)
            refusals = _refused_definitions(host, path + _SCRATCH, definitions)
            _raise(place, refusals or _refused_texts(host, connection) or _refused_values(host, connection))
        finally:
            connection.close(True)
        open_store(path, identity)
        connection = open_follower(path)
        try:
            connection.execute("update triplicate_state set position = ?", (IMPORTED_POSITION,))
        finally:
            connection.close(True)
    except (apsw.NotADBError, apsw.CorruptError, apsw.CantOpenError) as error:
        raise ArgumentError(f"{place} is no SQLite file that can be read: {error}") from error


def _copy(host: Host, source_path: str, path: str) -> None:
    with closing(host.disk.open(source_path, readonly=True)) as file:
        check_room(host, path, file.size(), f"the copy of {source_path}")
        if file.size() and file.pread(len(_MAGIC), 0) != _MAGIC:
            raise ArgumentError(f"{source_path} is no SQLite file")
    delete_file(host, path)
    host.disk.open(path, create=True).close()
    source, target = apsw.Connection(source_path, flags=apsw.SQLITE_OPEN_READWRITE), apsw.Connection(path)
    try:
        source.set_busy_timeout(5000)
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_STEP_PAGES)
                host.step_aside()
    finally:
        target.close(True)
        source.close(True)


def _check_encoding(host: Host, place: str, connection: apsw.Connection) -> None:
    """Check the encoding of the file, and the texts of its schema, which all further checks read."""
    encoding = str(connection.pragma("encoding"))
    if encoding != "UTF-8":
        raise ArgumentError(f"{place} has texts in {encoding}; a database has UTF-8: write it as SQL with sqlite3's .dump, and read that")
    _raise(place, list(islice(_broken_texts(host, connection, "sqlite_schema", ("name", "tbl_name", "sql"), ("rowid",)), _SHOWN)))


def _check_soundness(place: str, connection: apsw.Connection) -> None:
    findings = quick_check(connection)
    if findings:
        raise ArgumentError(f"{place} is damaged: {'; '.join(findings)}")
    try:
        lost = [f"table {row[0]}, row {row[1]}" for row in islice(connection.execute("pragma foreign_key_check"), _SHOWN)]
    except apsw.SQLError as error:
        raise ArgumentError(f"{place} has a foreign key to columns that are no key: {error}") from error
    if lost:
        raise ArgumentError(f"{place} has rows whose foreign keys lead nowhere: {'; '.join(lost)}")


def _check_names(place: str, definitions: list[_Definition]) -> None:
    internal = [str(one) for one in definitions if is_internal(one.name)]
    if internal:
        raise ArgumentError(f"{place} has names that begin with {INTERNAL_PREFIX}, which are reserved: {', '.join(internal[:_SHOWN])}")


def _refused_definitions(host: Host, path: str, definitions: list[_Definition]) -> list[str]:
    """The refusals of the definitions by a writer, as they would meet them in a database. They are run in an empty one."""
    refusals: list[str] = []
    delete_file(host, path)
    try:
        open_store(path, bytes(16))
        # The order of the file need not be that of use, and files may hold broken views, which harm nothing.
        writer = WriterConnection(path, TransactionIds(1), checks_definitions=False)
        try:
            writer.begin()
            for one in definitions:
                try:
                    writer.run(writer.authorizer.examine(one.sql), ())
                except SqlError as error:
                    refusals.append(f"{one}: {error}")
            writer.rollback()
        finally:
            writer.close()
    finally:
        delete_file(host, path)
    return refusals


def _refused_texts(host: Host, connection: apsw.Connection) -> list[str]:
    refusals: list[str] = []
    for name, table in load_tables(connection).items():
        shape = table.shape
        columns = [str(column) for (column,) in connection.execute("select name from pragma_table_xinfo(?) where hidden <> 1", (name,))]
        key = (table.rowid_name,) if table.rowid_name else tuple(quote(shape.columns[index]) for index in shape.key)
        refusals += islice(_broken_texts(host, connection, name, columns, key), _SHOWN - len(refusals))
        if len(refusals) >= _SHOWN:
            break
    return refusals


def _broken_texts(host: Host, connection: apsw.Connection, table: str, columns: Sequence[str], key: Sequence[str]) -> Iterator[str]:
    """Name the texts of a table that are no UTF-8, or hold the character NUL.

    Args:
        key: identifies a row; in quotes where SQL needs them.
    """
    texts = [f"case typeof({quote(column)}) when 'text' then cast({quote(column)} as blob) end" for column in columns]
    keys = [f"case typeof({column}) when 'text' then cast({column} as blob) else {column} end" for column in key]
    for count, row in enumerate(connection.execute(f"select {', '.join([*texts, *keys])} from main.{quote(table)}")):
        for column, data in zip(columns, row, strict=False):
            fault = _fault_of(data)
            if fault:
                yield f"table {table}, column {column}, row {', '.join(map(_shown, row[len(columns) :]))}: the text {fault}"
        if count % 1000 == 0:
            host.step_aside()


def _shown(value: object) -> str:
    return f"{value.decode('utf-8', 'replace') if isinstance(value, bytes) else value!r:.60}"


def _fault_of(text: bytes | None) -> str:
    if text is None:
        return ""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return f"is no UTF-8 at byte {error.start}"
    return "holds the character NUL" if b"\0" in text else ""


def _refused_values(host: Host, connection: apsw.Connection) -> list[str]:
    refusals: list[str] = []
    for name, table in load_tables(connection).items():
        if not table.rules.has_any:
            continue
        for count, row in enumerate(connection.execute(f"select * from main.{quote(name)}")):
            refusals += [str(rule.refusal(name, row[rule.index])) for rule in table.rules.refused(row)]
            if len(refusals) >= _SHOWN:
                return refusals
            if count % 1000 == 0:
                host.step_aside()
    return refusals


def _raise(place: str, refusals: list[str]) -> None:
    if refusals:
        more = f"; and {len(refusals) - _SHOWN} more" if len(refusals) > _SHOWN else ""
        raise ArgumentError(f"{place} has content that a database refuses: {'; '.join(refusals[:_SHOWN])}{more}")
