"""A plain dump of PostgreSQL's ``pg_dump``, loaded into a SQLite file as a database would store it. All functions block.

The text is read twice: first its definitions, because ``pg_dump`` writes keys behind the data, then the data. Indexes are made last.
Foreign keys are not checked here: tables come in the order of their names, so the whole content is checked when the file becomes a
database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

import apsw

from triplicate.errors import ArgumentError, EnvironmentFault, SqlError
from triplicate.runtime import Host
from triplicate.sql.backup.core.dump_text import MARKED_BYTES, begins_pg_dump, unreadable_form
from triplicate.sql.backup.dump_definitions import DumpDefinitions
from triplicate.sql.backup.dump_reader import DumpReader
from triplicate.sql.backup.dump_rows import RowLoader, RowRefused
from triplicate.sql.backup.dump_schema import make_indexes, make_tables, make_views, set_counters
from triplicate.sql.backup.dump_tables import DumpRefusal, described
from triplicate.sql.executor.scalars import register_scalars
from triplicate.sql.storage.sqlite_copy import check_room, delete_file

_SHOWN = 10
_STEPS = 256
"""Statements after which other threads get their turn."""


def is_pg_dump(host: Host, path: str) -> bool:
    """Whether a file begins as every plain dump of ``pg_dump`` does.

    Raises:
        ArgumentError: it is a dump in another form; the message says how to write it in this one.
    """
    with closing(host.disk.open(path, readonly=True)) as file:
        begin = file.pread(MARKED_BYTES, 0)
    form = unreadable_form(begin)
    if form:
        raise ArgumentError(f"{path} {form}")
    return begins_pg_dump(begin)


def load_pg_dump(host: Host, text_path: str, path: str) -> Mapping[str, int]:
    """Load a dump into a new SQLite file, which has nothing of it if it fails.

    Returns:
        How often each kind of statement was left out, because it says who owns something or how it is stored.

    Raises:
        ArgumentError: the dump has something that a database does not have, a row is refused, or the text ends too early; the message has
            the numbers of the lines. EnvironmentFault: the disk has no room.
    """
    delete_file(host, path)
    definitions = _gather(host, text_path)
    host.disk.open(path, create=True).close()
    connection = apsw.Connection(path)
    try:
        connection.pragma("synchronous", "off")
        register_scalars(connection)
        with closing(host.disk.open(text_path, readonly=True)) as file:
            check_room(host, path, file.size(), f"the database in {text_path}")
            with connection:
                _define(connection, text_path, definitions)
                _load(host, connection, DumpReader(file, text_path), text_path)
                _raise(text_path, make_indexes(connection, definitions))
                set_counters(connection, definitions.counters)
    except apsw.FullError as error:
        raise EnvironmentFault(f"no room for the database in {text_path}: {error}") from error
    finally:
        connection.close(True)
    return definitions.left_out


def _gather(host: Host, path: str) -> DumpDefinitions:
    """The definitions. Raises ArgumentError: what a database does not have."""
    definitions = DumpDefinitions()
    with closing(host.disk.open(path, readonly=True)) as file:
        reader = DumpReader(file, path)
        for count, statement in enumerate(reader.statements()):
            match _first_word(statement.text):
                case "COPY":
                    for _ in _aside(host, reader.data()):
                        pass
                case "INSERT":
                    pass
                case _:
                    definitions.add(statement)
            if count % _STEPS == 0:
                host.step_aside()
    definitions.finish()
    return definitions


def _aside(host: Host, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks. Other threads get their turn before each."""
    for block in blocks:
        host.step_aside()
        yield block


def _first_word(text: str) -> str:
    return text[:7].split(None, 1)[0].upper() if text[:7].strip() else ""


def _define(connection: apsw.Connection, path: str, definitions: DumpDefinitions) -> None:
    """Make the tables and views, and try the indexes, which are made behind the data."""
    refusals = [*definitions.refusals, *make_tables(connection, definitions)]
    connection.execute("savepoint tried")
    if not refusals:
        refusals += make_indexes(connection, definitions)
    connection.execute("rollback to tried; release tried")
    if not refusals:
        refusals += make_views(connection, definitions)
    _raise(path, refusals)


def _load(host: Host, connection: apsw.Connection, reader: DumpReader, path: str) -> None:
    loader = RowLoader(connection)
    line = 0
    try:
        for count, statement in enumerate(reader.statements()):
            line = statement.line
            match _first_word(statement.text):
                case "COPY":
                    loader.copy(statement, reader.line, _aside(host, reader.data()))
                case "INSERT":
                    loader.insert(statement)
            if count % _STEPS == 0:
                host.step_aside()
        loader.flush()
    except RowRefused as refused:
        _raise(path, [refused.refusal])
    except SqlError as error:
        _raise(path, [DumpRefusal(line, described(error))])


def _raise(path: str, refusals: list[DumpRefusal]) -> None:
    if not refusals:
        return
    ordered = sorted(refusals)
    shown = "; ".join(f"line {one.line}: {one.reason}" if one.line else one.reason for one in ordered[:_SHOWN])
    more = f"; and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    raise ArgumentError(f"{path} has content that a database refuses: {shown}{more}")
