"""The rights that a statement needs, by SQLite's authorizer.

An authorizer of SQLite learns only the innermost view, trigger or common table expression that an access comes from, and a client chooses
the names of its expressions. So a statement is prepared on a *plain* copy of the schema: in memory, without rows, with a table in the place
of each view, without triggers and foreign keys. Every access there is one of the statement itself. The accesses of a view are those of its
query, and the accesses of a trigger are those that the trigger adds; both are made with the rights of the owner. So are those of the
triggers of a table whose rows a foreign key, or its own ON CONFLICT REPLACE, changes: the change itself needs no right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue.live_tables import LIVE_TABLES
from triplicate.sql.catalogue.relations import FUNCTION_TABLES, TABLES
from triplicate.sql.core.interface import StatementKind
from triplicate.sql.core.lexer import first_words, identifier, quote, sqlite_tokens
from triplicate.sql.core.rights import Action, Right, Rights
from triplicate.sql.executor.definition_rights import definition_needs, only_superusers
from triplicate.sql.storage.sqlite_schema import is_internal
from triplicate.sql.storage.sqlstates import FAULTS, from_sqlite

_OBJECTS = "select type, name, tbl_name, sql from main.sqlite_schema order by rowid"
_KEYS = """
select m.name, k."table", k.on_update, k.on_delete from main.sqlite_schema m, pragma_foreign_key_list(m.name, 'main') k
where m.type = 'table'
"""
_VIRTUAL = "select name, type from pragma_table_list where schema = 'main' and type in ('virtual', 'shadow')"
_COLUMNS = "select name, type from pragma_table_xinfo(?, 'main') where hidden <> 1"
_ACTIONS = {
    apsw.SQLITE_READ: Action.SELECT,
    apsw.SQLITE_INSERT: Action.INSERT,
    apsw.SQLITE_UPDATE: Action.UPDATE,
    apsw.SQLITE_DELETE: Action.DELETE,
}
_FREE_ACTIONS = frozenset((apsw.SQLITE_SELECT, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE, apsw.SQLITE_PRAGMA))
"""Actions that touch no relation. The authorizer of the connection that runs the statement restricts functions and pragmas."""
_FREE_TABLES = frozenset(
    ("sqlite_schema", "sqlite_master", "sqlite_temp_schema", "sqlite_temp_master", "sqlite_sequence", *FUNCTION_TABLES, *TABLES)
)
"""The catalogue, and tables of a function's results."""
_CHANGES = (Action.INSERT, Action.UPDATE, Action.DELETE)
_TRIGGER_ACTIONS = {"INSERT": Action.INSERT, "UPDATE": Action.UPDATE, "DELETE": Action.DELETE}


class _Access(NamedTuple):
    """One use of a relation by a statement, a view or a trigger itself."""

    action: Action
    relation: str
    kind: str


class _Trigger(NamedTuple):
    name: str
    table: str
    sql: str


class _Schema:
    """The objects of a schema, by their names in lower case.

    Args:
        connection: whose schema it is.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self.objects = [(str(kind), str(name), str(table), sql) for kind, name, table, sql in connection.execute(_OBJECTS)]
        kinds = {str(name).lower(): str(kind) for name, kind in connection.execute(_VIRTUAL)}
        self.virtual = frozenset(name for name, kind in kinds.items() if kind == "virtual")
        self.shadows = {name: self._virtual_of(name) for name, kind in kinds.items() if kind == "shadow"}
        """Maps a table in which a virtual table keeps its rows to the virtual table."""
        self.relations = {name.lower(): (name, kind) for kind, name, _, _ in self.objects if kind in ("table", "view")}
        self.indexes = {name.lower(): table for kind, name, table, _ in self.objects if kind == "index"}
        self.triggers: dict[str, list[_Trigger]] = {}
        for kind, name, table, sql in self.objects:
            if kind == "trigger":
                self.triggers.setdefault(table.lower(), []).append(_Trigger(name, table, str(sql)))
        self.views = {name.lower(): str(sql) for kind, name, _, sql in self.objects if kind == "view"}
        self.columns = {view: self._columns(connection, view) for view in self.views}
        self.replacing = {name.lower() for kind, name, _, sql in self.objects if kind == "table" and _has_replace(sql or "")}
        """Tables that may replace rows by their own definition."""
        self._keys = [[str(fact) for fact in row] for row in connection.execute(_KEYS)]
        """(table, referenced table, action on update, action on delete) of each foreign key."""

    def _virtual_of(self, shadow: str) -> str:
        owners = [name for name in self.virtual if shadow.startswith(f"{name}_")]
        return max(owners, key=len, default=shadow)

    @staticmethod
    def _columns(connection: apsw.Connection, view: str) -> list[tuple[str, str]]:
        try:
            return [(str(name), str(declared or "")) for name, declared in connection.execute(_COLUMNS, (view,))]
        except apsw.Error:
            return []  # The view is broken. A statement that uses it fails.

    def relation(self, name: str) -> tuple[str, str] | None:
        """(name, kind) of a table or view; the virtual table for one in which it keeps its rows."""
        lowered = name.lower()
        return self.relations.get(self.shadows.get(lowered, lowered))

    def further_changes(self, relation: str, action: Action) -> Iterator[_Access]:
        """The changes that a table makes by its definition, and foreign keys in other tables, when it is changed."""
        if action is not Action.DELETE and relation.lower() in self.replacing:
            yield _Access(Action.DELETE, relation, "table")
        for child, parent, on_update, on_delete in self._keys:
            if parent.lower() != relation.lower() or action is Action.INSERT:
                continue
            made = on_delete if action is Action.DELETE else on_update
            if made == "CASCADE":
                yield _Access(action, child, "table")
            elif made.startswith("SET "):
                yield _Access(Action.UPDATE, child, "table")


class _PlainSchema:
    """The plain copy of a schema, and what statements use in it."""

    def __init__(self, schema: _Schema, setup: Callable[[apsw.Connection], None]) -> None:
        self.schema = schema
        self._connection = connection = apsw.Connection(":memory:", statementcachesize=0)
        setup(connection)
        self._events: list[tuple[int, str, str | None]] = []
        """(action, relation, innermost object) of the statement that is prepared."""
        for kind, name, _, sql in schema.objects:
            self._add(kind, name, sql)
        connection.authorizer = self._note

    def close(self) -> None:
        self._connection.close(True)

    def _add(self, kind: str, name: str, sql: str | None) -> None:
        lowered = name.lower()
        text = sql
        if kind == "view":
            columns = ", ".join(f"{quote(column)} {declared}" for column, declared in self.schema.columns[lowered])
            text = f"create table {quote(name)}({columns})" if columns else None
        elif kind == "trigger" or lowered in self.schema.shadows or (lowered.startswith("sqlite_") and kind == "table"):
            text = None
        if text is not None:
            try:
                self._connection.execute(text)
            except FAULTS:
                return  # It cannot be made here. A statement that uses it is refused, because its rights are unknown.

    def _note(self, action: int, first: str | None, _second: str | None, _database: str | None, inner: str | None) -> int:
        if action not in _FREE_ACTIONS:
            self._events.append((action, first or "", inner))
        return apsw.SQLITE_OK

    @contextmanager
    def _noting(self) -> Iterator[list[tuple[int, str, str | None]]]:
        self._events = []
        yield self._events
        self._events = []

    def _prepare(self, sql: str) -> None:
        def stop(_cursor: apsw.Cursor, _sql: str, _bindings: object) -> bool:
            return False

        cursor = self._connection.cursor()
        cursor.exec_trace = stop
        try:
            cursor.execute(sql, apsw._null_bindings, can_cache=False)  # type: ignore[attr-defined]
        except apsw.ExecTraceAbort:
            pass  # The trace above stopped the statement before its first step.
        except FAULTS as error:
            raise from_sqlite(error, sql) from error
        finally:
            cursor.close(True)

    def accesses(self, sql: str) -> set[_Access]:
        """The accesses of a statement itself."""
        with self._noting() as events:
            self._prepare(sql)
            tokens = sqlite_tokens(sql)
            names = {identifier(token).lower() for token in tokens if token.kind in ("word", "quoted", "string")}
            found = set(self._accesses(((action, relation) for action, relation, _ in events), names))
        return found | _replaced(sql, found)

    def _accesses(self, events: Iterable[tuple[int, str]], names: set[str] | None = None) -> Iterator[_Access]:
        """Args:
        names: the names in the statement, None if unknown. A virtual table's own statements name its tables when the client's does not.
        """
        for code, name in events:
            lowered = name.lower()
            action = _ACTIONS.get(code)
            if lowered in self.schema.shadows and names is not None and lowered not in names:
                continue
            relation = self.schema.relation(name)
            if action is None:
                yield _Access(Action.SUPERUSER, "use this statement", "")
            elif is_internal(name) and not (lowered in LIVE_TABLES and action is Action.SELECT):
                yield _Access(Action.SUPERUSER, f"use {name}", "")
            elif relation is not None and not lowered.startswith("sqlite_"):
                yield _Access(action, *relation)
            elif action is not Action.SELECT or not (lowered in _FREE_TABLES or lowered.startswith("pragma_")):
                yield _Access(Action.SUPERUSER, f"use {name}", "")

    def accesses_of_view(self, view: str) -> set[_Access]:
        """The accesses of a view's query."""
        sql = self.schema.views[view.lower()]
        tokens = sqlite_tokens(sql)
        depth = 0
        for token in tokens:
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and token.kind == "word" and token.text.upper() == "AS":
                return self.accesses(sql[token.end :])
        raise SqlError("42P17", f'the definition of view "{view}" cannot be read')

    def accesses_of_triggers(self, table: str, action: Action) -> set[_Access]:
        """The accesses of the triggers that a change of a table or view runs."""
        found: set[_Access] = set()
        for trigger in self.schema.triggers.get(table.lower(), ()):
            text, event, columns = _plain_trigger(trigger.sql)
            if _TRIGGER_ACTIONS.get(event) is not action:
                continue
            firing = self._firing(trigger.table, event, columns)
            try:
                self._connection.execute(text)
                with self._noting() as events:
                    self._prepare(firing)
                    # An access without an innermost object is the change itself. The columns new.… and old.… are of the owner's own table.
                    own = set(self._accesses((code, relation) for code, relation, inner in events if inner is not None))
                found |= own | _replaced(trigger.sql, own)
            except apsw.Error as error:
                raise from_sqlite(error) from error
            finally:
                self._connection.execute(f"drop trigger if exists {quote(trigger.name)}")
        return found

    def _firing(self, table: str, event: str, columns: list[str]) -> str:
        """A change that runs a trigger."""
        if event == "INSERT":
            return f"insert into {quote(table)} default values"
        if event == "DELETE":
            return f"delete from {quote(table)}"
        if not columns:
            query = "select name from pragma_table_xinfo(?, 'main') where hidden = 0 limit 1"
            columns = [str(name) for (name,) in self._connection.execute(query, (table,))]
        return f"update {quote(table)} set {quote(columns[0])} = {quote(columns[0])}"


def _replaced(sql: str, accesses: Iterable[_Access]) -> set[_Access]:
    """The deletions of rows that are in the way, where the text has REPLACE, or ON CONFLICT REPLACE in other words."""
    if not _has_replace(sql):
        return set()
    return {_Access(Action.DELETE, relation, kind) for action, relation, kind in accesses if action in (Action.INSERT, Action.UPDATE)}


def _has_replace(sql: str) -> bool:
    return "REPLACE" in sql.upper() and any(
        token.text.upper() == "REPLACE" and after.text != "(" for token, after in pairwise(sqlite_tokens(f"{sql};"))
    )


def _plain_trigger(sql: str) -> tuple[str, str, list[str]]:
    """(the trigger for a table in the place of a view, its event, the columns of UPDATE OF)."""
    tokens = sqlite_tokens(sql)
    words = [token.text.upper() if token.kind == "word" else token.text for token in tokens]
    # A name may be any word, so the event is searched for after it.
    at = next((index for index in range(3, len(words)) if words[index] in _TRIGGER_ACTIONS), len(words))
    if at == len(words):
        raise SqlError("42P17", "the definition of a trigger cannot be read")
    columns: list[str] = []
    end = words.index("ON", at)
    if words[at + 1] == "OF":
        columns = [identifier(token) for token in tokens[at + 2 : end : 2]]
    if words[at - 2 : at] == ["INSTEAD", "OF"]:
        return f"{sql[: tokens[at - 2].start]}before {sql[tokens[at].start :]}", words[at], columns
    return sql, words[at], columns


class StatementRights:
    """Finds the rights of statements for the schema that one connection sees. All methods block.

    Args:
        setup: registers the functions that statements may use, on each new connection.
    """

    def __init__(self, connection: apsw.Connection, setup: Callable[[apsw.Connection], None]) -> None:
        self._connection = connection
        self._setup = setup
        self._plain: _PlainSchema | None = None
        self._key: tuple[Any, ...] = ()

    def close(self) -> None:
        """Close the plain copy of the schema. Idempotent."""
        plain, self._plain = self._plain, None
        if plain is not None:
            plain.close()

    def _schema(self) -> _PlainSchema:
        key = tuple(self._connection.execute(_OBJECTS))
        if self._plain is None or key != self._key:
            self.close()
            self._plain, self._key = _PlainSchema(_Schema(self._connection), self._setup), key
        return self._plain

    def of(self, sql: str, kind: StatementKind) -> Rights:
        """The rights that a statement needs, which has been prepared for the schema as it is.

        Raises:
            SqlError: the rights are unknown, because the statement or a view that it uses cannot be prepared.
        """
        plain = self._schema()
        if kind is StatementKind.SCHEMA:
            return self._of_definition(plain, sql)
        if first_words(sqlite_tokens(sql), 1) == ["PRAGMA"]:
            return frozenset()  # The authorizer lets only those run that read facts of the schema and of the file.
        return _closed(plain, plain.accesses(sql))

    def of_lock(self, sql: str) -> Rights:
        """The rights for locking the rows that a query reads: UPDATE of the tables that it names itself."""
        accesses = self._schema().accesses(sql)
        return frozenset(Right(Action.UPDATE, name, kind) for action, name, kind in accesses if action is Action.SELECT)

    def of_truncation(self, sql: str) -> Rights:
        """The rights for a DELETE that TRUNCATE consists of."""
        plain = self._schema()
        rights = _closed(plain, plain.accesses(sql))
        return frozenset(right._replace(action=Action.TRUNCATE) if _is_own_deletion(right) else right for right in rights)

    def _of_definition(self, plain: _PlainSchema, sql: str) -> Rights:
        needs = definition_needs(sql)
        rights = set(needs.rights)
        schema = plain.schema
        for kind, name in needs.owned:
            right = _ownership(schema, kind, name)
            if right is not None:
                rights.add(right)
        if needs.query:
            rights |= _closed(plain, plain.accesses(needs.query))
        if first_words(sqlite_tokens(sql), 2) == ["DROP", "TABLE"]:
            # SQLite deletes the rows of the table first, with what foreign keys make of it in others, but without its triggers.
            dropped = [relation[0] for _, name in needs.owned if (relation := schema.relation(name)) is not None]
            rights |= _closed(plain, set(), [access for name in dropped for access in schema.further_changes(name, Action.DELETE)])
        return frozenset(rights)


def _is_own_deletion(right: Right) -> bool:
    return right.action is Action.DELETE and not right.definer


def _ownership(schema: _Schema, kind: str, name: str) -> Right | None:
    """The right to change an object; None for one that does not exist, which is its own error."""
    lowered = name.lower()
    if is_internal(name):
        return next(iter(only_superusers(f"use {name}").rights))
    if kind == "INDEX":
        table = schema.indexes.get(lowered)
        return None if table is None else Right(Action.OWN, table, "table")
    if kind == "TRIGGER":
        found = [trigger for triggers in schema.triggers.values() for trigger in triggers if trigger.name.lower() == lowered]
        return Right(Action.OWN, found[0].table, "relation") if found else None
    relation = schema.relation(name)
    return None if relation is None else Right(Action.OWN, *relation)


def _closed(plain: _PlainSchema, direct: set[_Access], further: Iterable[_Access] = ()) -> Rights:
    """The rights for these accesses of a statement, and for those of the views and triggers that they use.

    Args:
        further: changes that need no right themselves.
    """
    rights: set[Right] = set()
    done: set[tuple[str, Action | None]] = set()
    pending = [(access, "") for access in direct] + [(access, access.relation) for access in further]
    while pending:
        (action, relation, kind), definer = pending.pop()
        if not (definer and definer == relation):
            rights.add(Right(action, relation, kind, definer))
        if kind == "view" and (relation, None) not in done:
            done.add((relation, None))
            pending += [(access, relation) for access in plain.accesses_of_view(relation)]
        if action in _CHANGES and (relation, action) not in done:
            done.add((relation, action))
            pending += [(access, relation) for access in plain.accesses_of_triggers(relation, action)]
            pending += [(access, access.relation) for access in plain.schema.further_changes(relation, action)]
    return frozenset(rights)
