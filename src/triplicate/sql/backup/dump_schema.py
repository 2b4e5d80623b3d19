"""The definitions of a dump, made in a SQLite file. All functions block."""

from __future__ import annotations

import apsw

from triplicate.errors import SqlError
from triplicate.sql.backup.dump_definitions import DumpDefinitions, LaterDefinition
from triplicate.sql.backup.dump_expressions import is_text_type, without_plain_casts
from triplicate.sql.backup.dump_tables import DumpRefusal, described, folded_name
from triplicate.sql.core.lexer import Statement, quote, statement_of
from triplicate.sql.pg.ddl.definition_rewriter import rewrite_definition
from triplicate.sql.pg.ddl.parts import at, past_words, refuse
from triplicate.sql.pg.ddl.spans import spans_of
from triplicate.sql.pg.rewrite.create_view import view_query
from triplicate.sql.pg.rewrite.reserved_words import quote_reserved
from triplicate.sql.pg.translate.translation import named_tables
from triplicate.sql.storage.sqlite_schema import columns_of, key_of

_VIEW_HINT = "leave it out with `pg_dump --exclude-table={}`, and create it in other words later"


def make_tables(connection: apsw.Connection, definitions: DumpDefinitions) -> list[DumpRefusal]:
    """Make the tables; returns what is refused."""
    refusals: list[DumpRefusal] = []
    for table in definitions.tables.values():
        try:
            connection.execute(table.definition())
        except SqlError as error:
            refusals += table.refusals(error)
        except apsw.Error as error:
            refusals.append(DumpRefusal(table.line, f"CREATE TABLE {table.name}: {error}"))
    return refusals


def make_indexes(connection: apsw.Connection, definitions: DumpDefinitions) -> list[DumpRefusal]:
    """Make the indexes; returns what is refused."""
    refusals: list[DumpRefusal] = []
    for index in definitions.indexes:
        try:
            connection.execute(_index(connection, index.statement))
        except (SqlError, apsw.Error) as error:
            refusals.append(_refused(index, "CREATE INDEX", error))
    return refusals


def make_views(connection: apsw.Connection, definitions: DumpDefinitions) -> list[DumpRefusal]:
    """Make the views, each behind those that it reads; returns what is refused."""
    refusals: list[DumpRefusal] = []
    waiting = dict(definitions.views)
    refused: set[str] = set()
    while waiting:
        ready = [name for name, view in waiting.items() if not _reads(view.statement) & (waiting.keys() - {name})] or list(waiting)
        for name in ready:
            view = waiting.pop(name)
            try:
                _check_read(view, refused)
                connection.execute(_view(connection, view.statement))
                connection.execute(f"select * from {quote(name)} limit 0")
            except (SqlError, apsw.Error) as error:
                refusals.append(_refused(view, f"view {name}", error, _VIEW_HINT.format(name)))
                refused.add(name)
    return refusals


def _check_read(view: LaterDefinition, refused: set[str]) -> None:
    for other in sorted(_reads(view.statement) & refused):
        raise SqlError("0A000", f"it reads view {other}, which is refused")


def set_counters(connection: apsw.Connection, counters: dict[str, int]) -> None:
    """Let the counters of serial and identity columns go on behind numbers that were given."""
    for table, last in counters.items():
        connection.execute(
            "insert into sqlite_sequence(name, seq) select ?1, ?2 where not exists (select 1 from sqlite_sequence where name = ?1)",
            (table, last),
        )
        connection.execute("update sqlite_sequence set seq = max(seq, ?2) where name = ?1", (table, last))


def _refused(definition: LaterDefinition, subject: str, error: SqlError | apsw.Error, hint: str = "") -> DumpRefusal:
    reason = described(error) if isinstance(error, SqlError) else str(error)
    return DumpRefusal(definition.line, f"{subject}: {reason}" + (f" ({hint})" if hint else ""))


def _index(connection: apsw.Connection, statement: Statement) -> str:
    words = [token.upper for token in statement.tokens]
    if "ON" not in words:
        raise SqlError("42601", "syntax error at end of input: ON is missing")
    place = past_words(statement.tokens, words.index("ON") + 1, "ONLY")
    place += 2 if at(statement.tokens, place + 1).text == "." else 0
    table = folded_name(at(statement.tokens, place))
    columns = columns_of(connection, table)
    if columns is None:
        raise SqlError("42P01", f'relation "{table}" does not exist')
    texts = {name for name, declared in columns if is_text_type(declared)}
    text = rewrite_definition(quote_reserved(without_plain_casts(statement, texts))).text
    spans = spans_of(statement_of(text))
    return text if spans is None else spans.rewrite(text, columns)


def _view(connection: apsw.Connection, statement: Statement) -> str:
    """CREATE VIEW with its query in SQLite's words. Raises SqlError: SQLite cannot compute it."""
    view = view_query(quote_reserved(statement))
    if view is None:
        raise refuse("this form of CREATE VIEW")
    found = [(one, columns_of(connection, one)) for one in named_tables(view.query)]
    tables = tuple((one, tuple(columns)) for one, columns in found if columns is not None)
    stored = view.stored(tables, tuple((one, tuple(key_of(connection, one))) for one, _ in tables))
    if stored is None:
        raise refuse("this query in a view")
    return stored


def _reads(statement: Statement) -> set[str]:
    try:
        view = view_query(quote_reserved(statement))
        return set(named_tables(view.query)) if view is not None else set()
    except SqlError:
        return set()
