"""Writing a copy of a database as SQL text. All functions block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import apsw

from triplicate.errors import ArgumentError
from triplicate.runtime import Host
from triplicate.sql.backup.core.sql_text import BEGIN_MARK, END_MARK, definition_for_psql, inserts, loading_order
from triplicate.sql.backup.stored_words import in_postgresql_words
from triplicate.sql.core.lexer import quote
from triplicate.sql.storage.sqlite_file import open_reader
from triplicate.sql.storage.sqlite_schema import load_tables

_WRITE_BYTES = 1024 * 1024
_OURS = (
    r"name not like 'triplicate\_%' escape '\' and tbl_name not like 'triplicate\_%' escape '\' and name not like 'sqlite\_%' escape '\'"
)
_KEYS = f"""
select sql from main.sqlite_schema s where type = 'index' and sql is not null and {_OURS}
and exists (select 1 from pragma_index_list(s.tbl_name, 'main') i where i.name = s.name and i."unique" and not i.partial) order by rowid
"""
"""Foreign keys may refer to the columns of these indexes, so they come before the rows."""
_LATER = f"""
select sql from main.sqlite_schema where type in ('index', 'view', 'trigger') and sql is not null and {_OURS}
order by case type when 'index' then 0 when 'view' then 1 else 2 end, rowid
"""


def write_dump(host: Host, source_path: str, path: str, title: str) -> None:
    """Write a copy of a database, whose internal tables are left out, as SQL text to a file.

    Args:
        title: a comment at the beginning and, behind `END_MARK`, at the end.

    Raises:
        ArgumentError: the database has something that SQL text cannot have; the message names it.
    """
    connection = open_reader(source_path)
    try:
        connection.execute("begin")
        with closing(host.disk.open(path, create=True)) as file:
            file.truncate(0)
            offset, held = 0, bytearray(f"{BEGIN_MARK}{title}\n".encode())
            for text in _statements(connection):
                held += text.encode()
                if len(held) >= _WRITE_BYTES:
                    offset += file.pwrite([held], offset)
                    held = bytearray()
                    host.step_aside()
            held += f"{END_MARK}{title}\n".encode()
            file.pwrite([held], offset)
            file.sync()
    finally:
        connection.close(True)


def _definition(sql: str) -> str:
    return f"{definition_for_psql(in_postgresql_words(sql))};\n"


def _statements(connection: apsw.Connection) -> Iterator[str]:
    virtual = [name for (name,) in connection.execute("select name from pragma_table_list where schema = 'main' and type = 'virtual'")]
    if virtual:
        raise ArgumentError(f"virtual tables cannot be written as SQL text ({', '.join(virtual)}): export the database as a SQLite file")
    tables = load_tables(connection)
    texts = {
        str(name): str(sql)
        for name, sql in connection.execute(f"select name, sql from main.sqlite_schema where type = 'table' and {_OURS}")
    }
    references = {
        name: frozenset(
            str(other).lower()
            for (other,) in connection.execute('select distinct "table" from pragma_foreign_key_list(?, ?)', (name, "main"))
        )
        for name in tables
    }
    order = loading_order(references)
    for name in order:
        yield _definition(texts[name])
    keys = dict.fromkeys(str(sql) for (sql,) in connection.execute(_KEYS))
    yield from map(_definition, keys)
    for name in order:
        columns, types = tables[name].shape.columns, tables[name].shape.types
        rows = connection.execute(f"select {', '.join(map(quote, columns))} from main.{quote(name)}")
        yield from inserts(name, columns, types, rows)
    for (sql,) in connection.execute(_LATER):
        if sql not in keys:
            yield _definition(str(sql))
    for pragma in ("user_version", "application_id"):
        value = connection.pragma(pragma)
        if value:
            yield f"PRAGMA {pragma} = {value};\n"
