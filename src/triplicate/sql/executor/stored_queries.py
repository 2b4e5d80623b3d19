"""The queries and bodies that the schema stores: whether SQLite can compute the views and triggers that a definition has made.

SQLite looks names up when a view or trigger is used, and stores one that can never be. It would fail there, and so would each ALTER TABLE
that SQLite checks against the whole schema. Only the leader asks, for what is new: a follower applies what the log holds.
"""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import quote
from triplicate.sql.storage.sqlstates import from_sqlite

StoredName = tuple[str, str]
"""(``view`` or ``trigger``, name)"""

_HINT = "SQLite computes views and triggers: they may use its functions only, and tables and columns that exist."


def stored_queries(connection: apsw.Connection) -> frozenset[StoredName]:
    """The users' views and triggers."""
    rows = connection.execute(
        "select type, name from main.sqlite_schema where type in ('view', 'trigger') and name not like 'triplicate\\_%' escape '\\'"
    )
    return frozenset((str(kind), str(name)) for kind, name in rows)


def view_fault(connection: apsw.Connection, view: str) -> apsw.Error | None:
    """Why a view's query cannot be prepared; None when it can."""
    return _fault(connection, f"select * from main.{quote(view)}")


def refuse_uncomputable(connection: apsw.Connection, made: frozenset[StoredName]) -> None:
    """Prepare what a definition has made, within the open transaction.

    Raises:
        SqlError: SQLite cannot. 42883, 42P01, 42703: a function, table or column does not exist. 0A000: a function that exists in
            statements of clients only.
    """
    for kind, name in sorted(made):
        fault = view_fault(connection, name) if kind == "view" else _trigger_fault(connection, name)
        if fault is not None:
            failure = from_sqlite(fault)
            raise SqlError(failure.sqlstate, f'{kind} "{name}" cannot be computed: {failure.message}', hint=_HINT) from fault


def _trigger_fault(connection: apsw.Connection, trigger: str) -> apsw.Error | None:
    """Why a change of the trigger's table cannot be prepared, if the trigger is the reason; None otherwise."""
    ((table,),) = connection.execute("select tbl_name from main.sqlite_schema where type = 'trigger' and name = ?", (trigger,)).fetchall()
    faults = [(change, fault) for change in _changes(connection, str(table)) if (fault := _fault(connection, change)) is not None]
    if not faults:
        return None
    connection.execute("savepoint triplicate_probe")
    try:
        connection.execute(f"drop trigger main.{quote(trigger)}")
        return next((fault for change, fault in faults if str(_fault(connection, change)) != str(fault)), None)
    finally:
        connection.execute("rollback to triplicate_probe; release triplicate_probe")


def _changes(connection: apsw.Connection, table: str) -> Iterator[str]:
    """A change of each kind, which SQLite compiles together with the bodies of the table's triggers."""
    name = f"main.{quote(table)}"
    yield f"insert into {name} default values"
    yield f"delete from {name}"
    columns = connection.execute("select name from pragma_table_xinfo(?, 'main') where hidden = 0", (table,)).fetchall()
    yield f"update {name} set {', '.join(f'{quote(str(column))} = null' for (column,) in columns)}"


def _fault(connection: apsw.Connection, statement: str) -> apsw.Error | None:
    """Why a statement cannot be prepared, which EXPLAIN shows without a run of it."""
    try:
        connection.execute(f"explain {statement}", None, can_cache=False).fetchall()
    except apsw.Error as error:
        return error
    return None
