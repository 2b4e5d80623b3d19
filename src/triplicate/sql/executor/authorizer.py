"""The authorizer: the statements that may run, the kind of each, and the actions that are allowed while one runs.

SQLite calls its authorizer for every action of a statement that it prepares. A statement is first *examined* on a connection that never
runs it. The authorizer of the connection that runs it enforces the rules again, because the schema may have changed in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from itertools import dropwhile, islice, pairwise
from typing import Any, NamedTuple

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue.relations import is_reserved
from triplicate.sql.core.interface import Column, Prepared, StatementKind
from triplicate.sql.core.lexer import (
    SqlDialect,
    Statement,
    Token,
    first_words,
    identifier,
    next_sqlite_tokens,
    parameter_markers,
    parameter_numbers,
    split_statements,
    sqlite_tokens,
    statement_of,
)
from triplicate.sql.core.schema_cache import EXAMINED_CHARACTERS_MAX
from triplicate.sql.core.session_counters import COUNTERS
from triplicate.sql.core.transaction_block import failed_transaction
from triplicate.sql.executor.definitions import has_column, parse_column_change, refuse_indexes_of_constraints, statements_of
from triplicate.sql.executor.examined_schema import NewestSchema
from triplicate.sql.executor.measured_statements import is_measured
from triplicate.sql.storage.sqlite_schema import is_internal
from triplicate.sql.storage.sqlstates import FAULTS, from_sqlite


def _actions(*prefixes: str) -> frozenset[int]:
    return frozenset(code for name, code in vars(apsw).items() if name.startswith(prefixes) and isinstance(code, int))


_SCHEMA_ACTIONS = _actions("SQLITE_CREATE_", "SQLITE_DROP_", "SQLITE_ALTER_TABLE", "SQLITE_REINDEX", "SQLITE_ANALYZE")
_TEMPORARY_ACTIONS = _actions("SQLITE_CREATE_TEMP_", "SQLITE_DROP_TEMP_")
_UPKEEP_ACTIONS = frozenset((apsw.SQLITE_ANALYZE, apsw.SQLITE_REINDEX))
_CHANGE_ACTIONS = frozenset((apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE))
_READ_ACTIONS = frozenset((apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE))
_PRAGMAS_WITH_ARGUMENT = frozenset(
    {
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
_READ_PRAGMAS = _PRAGMAS_WITH_ARGUMENT | frozenset(
    {
        "application_id",
        "collation_list",
        "compile_options",
        "data_version",
        "encoding",
        "foreign_keys",
        "freelist_count",
        "function_list",
        "journal_mode",
        "module_list",
        "page_count",
        "page_size",
        "pragma_list",
        "recursive_triggers",
        "schema_version",
        "synchronous",
        "user_version",
    }
)
_SETTING_PRAGMAS = frozenset(("application_id", "user_version"))
_FORBIDDEN_FUNCTIONS = frozenset(("load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "sqlite_rename_table"))
_MODULES = frozenset(("fts3", "fts4", "fts4aux", "fts5", "fts5vocab", "geopoly", "rtree", "rtree_i32"))
_MAKES_RELATION = frozenset((apsw.SQLITE_CREATE_TABLE, apsw.SQLITE_CREATE_VIEW, apsw.SQLITE_CREATE_VTABLE))
_HEAD = 12
"""Number of tokens at an INSERT's beginning in which its table stands."""
_LONG = 2_048
"""Characters of a text from which an INSERT is not cut into its tokens where they are not needed."""


def reserved_name_refusal(name: str) -> str:
    """The message for a new table or view with a reserved name."""
    return f"the name {name} is reserved for the catalogue or for the results of a function; give the table or view another name"


class Mode(Enum):
    """The actions that the statement being prepared may take."""

    INTERNAL = 0
    """An internal statement: all."""
    EXAMINE = 1
    """Every action that some statement may take; the actions decide the statement's kind."""
    READ = 2
    CHANGE = 3
    SCHEMA = 4


_QUERIES = ("SELECT", "WITH", "VALUES")
_TAGS = {apsw.SQLITE_INSERT: "INSERT", apsw.SQLITE_UPDATE: "UPDATE", apsw.SQLITE_DELETE: "DELETE"}
_INTERNAL, _READ_MODE, _READ = Mode.INTERNAL, Mode.READ, StatementKind.READ
"""Access to a member of an Enum is a call."""
_MODES = {StatementKind.READ: Mode.READ, StatementKind.WRITE: Mode.CHANGE, StatementKind.SCHEMA: Mode.SCHEMA}


class Authorizer:
    """The authorizer of one connection.

    Args:
        schema: shared by the connections of a database that see no schema before it is committed.
    """

    def __init__(self, connection: apsw.Connection, schema: NewestSchema | None = None) -> None:
        self._connection = connection
        self._newest = NewestSchema() if schema is None else schema
        self._mode = Mode.INTERNAL
        self._kind = StatementKind.READ
        self.refusal: SqlError | None = None
        """Why the statement is not allowed that was prepared last; None where it is."""
        self._action = 0
        self._analyzes = False
        self._tables: set[str] = set()
        self._functions: set[str] = set()
        """Tables and functions to which the examined statement refers."""
        connection.authorizer = self._authorize

    @contextmanager
    def running(self, kind: StatementKind, *, explain: bool = False) -> Iterator[None]:
        """For the time in which a user's statement of this kind is prepared and runs. A forbidden action raises SqlError.

        Args:
            explain: it is EXPLAIN, which prepares any statement and runs none.
        """
        self.begin(kind, explain=explain)
        try:
            yield
        except apsw.AuthError as error:
            raise self.refusal or from_sqlite(error) from error
        finally:
            self.end()

    def begin(self, kind: StatementKind, *, explain: bool = False) -> None:
        """A user's statement is prepared and runs until `end`. As `running`, for callers that must be quick."""
        self._mode, self._kind, self.refusal = Mode.EXAMINE if explain else _MODES[kind], kind, None
        if kind is StatementKind.SCHEMA:
            self._newest.forget()

    def begin_read(self) -> None:
        """As `begin` with `StatementKind.READ`, whose mode need not be found."""
        self._mode, self._kind, self.refusal = _READ_MODE, _READ, None

    def end(self) -> None:
        """The statement has ended."""
        self._mode = _INTERNAL

    def examine(self, sql: str, characters_max: int | None = None) -> Prepared:
        """Prepare a statement without running it.

        Args:
            characters_max: of views and triggers, see `SchemaSizes.check`.

        Raises:
            SqlError: 42601 for a mistake in it or for more than one statement, 0A000 or 42501 for a statement that is not allowed, 54001
                for one that views and subqueries would make too large, ….
        """
        if len(sql) > EXAMINED_CHARACTERS_MAX:
            raise SqlError("54000", f"a statement for SQLite may have {EXAMINED_CHARACTERS_MAX} characters, this one has {len(sql)}")
        if _is_long_insert(sql):
            self._check_size(list(islice(next_sqlite_tokens(sql), _HEAD)), characters_max)
            return self._examine(Statement(sql, ()), first_words(next_sqlite_tokens(sql)))
        statements = split_statements(sql, SqlDialect.SQLITE)
        if not statements:
            return Prepared("", StatementKind.EMPTY, (), (), "")
        if len(statements) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        statement = statements[0]
        self._check_size(statement.tokens, characters_max)
        text, words = statement.sql, first_words(statement.tokens)
        control = control_statement(text, words)
        if control is not None:
            return control
        if words[0] in ("VACUUM", "ATTACH", "DETACH"):
            raise SqlError("0A000", f"{words[0]} is not available: every copy of a replicated database must stay the same file")
        if words[:2] == ["ALTER", "TABLE"] and change_images(text) is not None:
            return Prepared(text, StatementKind.SCHEMA, (), (), "ALTER TABLE")
        if words[0] in ("CREATE", "DROP", "ALTER") and statements_of(text):
            return self._examine_definition(statement, words)
        return self._examine(statement, words)

    def _check_size(self, tokens: Sequence[Token], characters_max: int | None) -> None:
        """Check what views, subqueries and triggers would add to a statement: SQLite prepares it without an end in sight."""
        self._newest.of(self._connection).sizes.check(tokens, characters_max)

    def _examine_definition(self, statement: Statement, words: list[str]) -> Prepared:
        text = statement.sql
        refuse_indexes_of_constraints(self._connection, text)
        change = parse_column_change(text)
        if change is None or has_column(self._connection, change) is not change.adds:
            for part in statements_of(text):
                self._examine(statement_of(part, SqlDialect.SQLITE), words)
        numbers = parameter_numbers(statement.tokens)
        parameters = tuple(f"?{number}" if number in numbers else None for number in range(1, max(numbers, default=0) + 1))
        return Prepared(text, StatementKind.SCHEMA, (), parameters, command_tag(words))

    def _examine(self, statement: Statement, words: list[str]) -> Prepared:
        """As `examine`, for one statement. Its tokens may be left out."""
        text = statement.sql
        _refuse_ours(statement)
        facts: list[Any] = []

        def before_first_step(cursor: apsw.Cursor, _sql: str, _bindings: object) -> bool:
            facts.append((cursor.description_full, cursor.bindings_names, cursor.is_readonly, cursor.is_explain))
            return False

        self._mode, self._kind, self.refusal, self._action = Mode.EXAMINE, StatementKind.READ, None, 0
        self._analyzes = words[0] == "ANALYZE"
        self._tables, self._functions = set(), set()
        cursor = self._connection.cursor()
        cursor.exec_trace = before_first_step
        try:
            cursor.execute(text, apsw._null_bindings, can_cache=False)  # type: ignore[attr-defined]
        except apsw.ExecTraceAbort:
            pass  # The trace above stopped the statement before its first step.
        except FAULTS as error:
            raise self.refusal or from_sqlite(error, text) from error
        finally:
            self._mode = Mode.INTERNAL
            cursor.close(True)
        if not facts:
            return Prepared("", StatementKind.EMPTY, (), (), "")
        description, names, readonly, explain = facts[0]
        kind = StatementKind.READ if explain else self._kind
        if kind is StatementKind.READ and not readonly and not explain:
            kind = StatementKind.SCHEMA if words[0] == "PRAGMA" else StatementKind.WRITE
        markers = parameter_markers(statement.tokens or next_sqlite_tokens(text)) if names else {}
        parameters = tuple(None if name is None else markers.get(name, name) for name in names)
        # SQLite describes the columns of its internal queries inside of ALTER TABLE.
        shown = () if kind is StatementKind.SCHEMA else description
        columns = tuple(Column(name, declared, table, origin) for name, declared, _database, table, origin in shown)
        tag = _TAGS.get(self._action, "SELECT") if words[0] == "WITH" else command_tag(words)
        is_query = kind is StatementKind.READ and words[0] in _QUERIES
        schema = self._newest.of(self._connection)
        measured = is_query and is_measured(self._connection, schema, text, self._tables, self._functions, len(names))
        counts = not COUNTERS.isdisjoint(self._functions)
        return Prepared(
            text,
            kind,
            columns,
            parameters,
            tag,
            measured,
            "triplicate_position" in self._functions,
            counts=counts,
            is_constant=is_query and schema.has_only_views(self._tables),
        )

    def _authorize(self, action: int, first: str | None, second: str | None, database: str | None, _inner: str | None) -> int:
        mode = self._mode
        if mode is Mode.INTERNAL or action in _READ_ACTIONS:
            if mode is Mode.EXAMINE:
                self._note_use(action, first, second)
            if mode is not Mode.INTERNAL and action == apsw.SQLITE_FUNCTION and second in _FORBIDDEN_FUNCTIONS and mode is not Mode.SCHEMA:
                return self._deny_function(second)
            return apsw.SQLITE_OK
        if action == apsw.SQLITE_PRAGMA:
            return self._pragma(mode, first or "", second)
        if action in _TEMPORARY_ACTIONS:
            return self._deny("0A000", "temporary tables, views and triggers are not available: every copy must hold the same")
        if action in _SCHEMA_ACTIONS:
            return self._schema(mode, action, first or "", second or "")
        if action in _CHANGE_ACTIONS:
            return self._change(mode, action, first or "", database)
        return self._deny("0A000", f"{apsw.mapping_authorizer_function.get(action, action)} is not available on a replicated database")

    def _note_use(self, action: int, first: str | None, second: str | None) -> None:
        if action == apsw.SQLITE_READ:
            self._tables.add(first or "")
        elif action == apsw.SQLITE_FUNCTION:
            self._functions.add(second or "")

    def _deny_function(self, name: str | None) -> int:
        # ALTER TABLE uses an internal function while it is examined. A user's call of it is refused when the statement runs.
        if self._mode is Mode.EXAMINE and self._kind is StatementKind.SCHEMA:
            return apsw.SQLITE_OK
        return self._deny("42501", f"function {name} is not available")

    def _pragma(self, mode: Mode, name: str, argument: str | None) -> int:
        name = name.lower()
        if argument is not None and name in _SETTING_PRAGMAS:
            if mode is Mode.EXAMINE:
                self._kind = StatementKind.SCHEMA
            elif mode is not Mode.SCHEMA:
                return self._deny("25006", f"PRAGMA {name} = … cannot be used here")
            return apsw.SQLITE_OK
        if name in _READ_PRAGMAS and (argument is None or name in _PRAGMAS_WITH_ARGUMENT):
            return apsw.SQLITE_OK
        return self._deny("0A000", f"PRAGMA {name}{'' if argument is None else ' with a value'} is not available on a replicated database")

    def _schema(self, mode: Mode, action: int, first: str, second: str) -> int:
        name = second if action == apsw.SQLITE_ALTER_TABLE else first
        subject = second if action in (apsw.SQLITE_CREATE_TRIGGER, apsw.SQLITE_CREATE_INDEX, apsw.SQLITE_DROP_TRIGGER) else name
        if action not in _UPKEEP_ACTIONS and (is_internal(name) or is_internal(subject)):
            return self._deny("42501", f"names that begin with triplicate_ belong to Triplicate: {name}")
        if action in _MAKES_RELATION and is_reserved(name):
            return self._deny("42939", reserved_name_refusal(name))
        if action == apsw.SQLITE_CREATE_VTABLE and second.lower() not in _MODULES:
            return self._deny("0A000", f"virtual tables of module {second} are not available; there are {', '.join(sorted(_MODULES))}")
        if mode is Mode.EXAMINE:
            self._kind = StatementKind.SCHEMA
        elif mode is not Mode.SCHEMA:
            return self._deny("25006", "a schema change cannot run here")
        return apsw.SQLITE_OK

    def _change(self, mode: Mode, action: int, table: str, database: str | None) -> int:
        if mode is Mode.READ:
            return self._deny("25006", "a change cannot run in a read-only statement")
        if is_internal(table):
            return self._deny("42501", f"table {table} belongs to Triplicate and cannot be changed")
        if mode is Mode.EXAMINE and self._kind is StatementKind.READ and not table.lower().startswith("sqlite_"):
            self._kind, self._action = StatementKind.WRITE, action
        elif table.lower().startswith("sqlite_"):
            # A schema change writes the catalogue as its first action, and ANALYZE of one table deletes old statistics. Their own actions
            # follow later.
            if mode is Mode.CHANGE or self._kind is StatementKind.WRITE:
                return self._deny("42501", f"table {table} belongs to SQLite and cannot be changed directly")
            known = table.lower() in _CATALOGUE or (self._analyzes and table.lower().startswith("sqlite_stat"))
            if mode is Mode.EXAMINE and self._kind is StatementKind.READ and not known:
                return self._deny("42501", f"table {table} belongs to SQLite and cannot be changed directly")
        elif database not in (None, "main"):
            return self._deny("0A000", f"only the main database can be changed, not {database}")
        return apsw.SQLITE_OK

    def _deny(self, sqlstate: str, message: str) -> int:
        if self.refusal is None:
            self.refusal = SqlError(sqlstate, message)
        return apsw.SQLITE_DENY


_CATALOGUE = frozenset(("sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"))


def _is_long_insert(sql: str) -> bool:
    """Whether a long text is an INSERT of values by its look. To cut it into tokens would take as long as SQLite needs for its rows."""
    if len(sql) <= _LONG or sql[:7].upper() != "INSERT " or sql[-1].isspace():
        return False
    return not any(mark in sql for mark in (";", "--", "/*")) and "select" not in sql.lower()


def control_statement(text: str, words: list[str]) -> Prepared | None:
    """BEGIN, COMMIT, SAVEPOINT and similar statements, which the engine runs itself; None for any other statement.

    PostgreSQL's forms are accepted beside SQLite's: START TRANSACTION, ABORT, and isolation levels and access modes after BEGIN. These
    have no effect, since every transaction is serializable.
    """
    first = words[0]
    rest = [word for word in words[1:] if word not in ("TRANSACTION", "WORK")]
    if first == "BEGIN" or (first == "START" and words[1:2] == ["TRANSACTION"]):
        immediate = rest[:1] in (["IMMEDIATE"], ["EXCLUSIVE"])
        known = not rest or rest[0] in ("DEFERRED", "IMMEDIATE", "EXCLUSIVE", "ISOLATION", "READ", "NOT", "DEFERRABLE")
        if not known:
            raise SqlError("42601", f"syntax error at or near {rest[0]!r}")
        return Prepared(text, StatementKind.BEGIN_IMMEDIATE if immediate else StatementKind.BEGIN, (), (), "BEGIN")
    if first in ("COMMIT", "END"):
        return _whole(text, rest, StatementKind.COMMIT, "COMMIT")
    if first == "ABORT" or (first == "ROLLBACK" and rest[:1] != ["TO"]):
        return _whole(text, rest, StatementKind.ROLLBACK, "ROLLBACK")
    if first == "ROLLBACK":
        return _named(text, rest[1:], StatementKind.ROLLBACK_TO, "ROLLBACK")
    if first == "SAVEPOINT":
        return _named(text, rest, StatementKind.SAVEPOINT, "SAVEPOINT")
    if first == "RELEASE":
        return _named(text, rest, StatementKind.RELEASE, "RELEASE")
    return None


WHEN_FAILED = (StatementKind.COMMIT, StatementKind.ROLLBACK, StatementKind.ROLLBACK_TO, StatementKind.EMPTY)


def allowed_when_failed(sql: str, reason: SqlError | None = None) -> Prepared:
    """The statement, if it may end a failed transaction.

    Raises:
        SqlError: 25P02, or the reason.
    """
    statements = split_statements(sql, SqlDialect.SQLITE)
    if not statements:
        return Prepared("", StatementKind.EMPTY, (), (), "")
    control = control_statement(statements[0].sql, first_words(statements[0].tokens))
    if control is None or control.kind not in WHEN_FAILED:
        raise reason or failed_transaction()
    return control


def _whole(text: str, rest: list[str], kind: StatementKind, tag: str) -> Prepared:
    if rest and rest != ["AND", "NO", "CHAIN"]:
        raise SqlError("42601", f"syntax error at or near {rest[0]!r}")
    return Prepared(text, kind, (), (), tag)


def _named(text: str, rest: list[str], kind: StatementKind, tag: str) -> Prepared:
    if rest[:1] == ["SAVEPOINT"] and len(rest) == 2:
        rest = rest[1:]
    if len(rest) != 1:
        raise SqlError("42601", f"{tag} needs the name of one savepoint")
    return Prepared(text, kind, (), (), tag)


def savepoint_name(sql: str) -> str:
    """The name at the end of SAVEPOINT, RELEASE or ROLLBACK TO."""
    return identifier(sqlite_tokens(sql)[-1])


class ChangeImages(NamedTuple):
    """The part of the changed rows of a table that the log holds: ``keys`` or ``full``."""

    table: str
    value: str


def change_images(sql: str) -> ChangeImages | None:
    """The setting in ``ALTER TABLE name SET (change_images = full)``; None for any other statement.

    Raises:
        SqlError: it is such a statement with another parameter or value.
    """
    found = sqlite_tokens(sql)
    words = [token.text.upper() for token in found]
    if words[:2] != ["ALTER", "TABLE"] or len(found) < 5 or words[3:5] != ["SET", "("]:
        return None
    if len(found) != 9 or words[5] != "CHANGE_IMAGES" or words[6] != "=" or words[8] != ")":
        raise SqlError("22023", "ALTER TABLE … SET has one parameter: (change_images = full) or (change_images = keys)")
    value = identifier(found[7]).strip("'")
    if value not in ("keys", "full"):
        raise SqlError("22023", f"change_images is 'keys' or 'full', not {value!r}")
    return ChangeImages(identifier(found[2]), value)


def command_tag(words: list[str]) -> str:
    """The first words of PostgreSQL's command tag."""
    first = words[0]
    if first in ("CREATE", "DROP", "ALTER"):
        kinds = ("TABLE", "INDEX", "VIEW", "TRIGGER")
        found = next((word for word in words[1:] if word in kinds), "TABLE")
        return f"{first} {found}"
    if first == "REPLACE":
        return "INSERT"
    if first == "VALUES":
        return "SELECT"
    return first


def check_width(cursor: apsw.Cursor, prepared: Prepared) -> None:
    """Refuse to run a statement whose result has changed since it was described.

    Raises:
        SqlError: 0A000, as PostgreSQL does.
    """
    try:
        width = len(cursor.get_description())
    except apsw.ExecutionCompleteError:
        return
    if width != len(prepared.columns):
        raise SqlError("0A000", "cached plan must not change result type")


def _refuse_ours(statement: Statement) -> None:
    """Refuse the definition of a table or index that calls our functions.

    Raises:
        SqlError: 0A000. A follower, and plain SQLite, could not change the table.
    """
    if statement.first_word not in ("CREATE", "ALTER") or [token.upper for token in statement.tokens[1:2]] in (["VIEW"], ["TRIGGER"]):
        return
    # The name before the first bracket is that of the table or index itself.
    inner = dropwhile(lambda pair: pair[0].text != "(", pairwise(statement.tokens))
    for token, after in inner:
        if after.text == "(" and token.kind in ("word", "quoted") and is_internal(identifier(token)):
            raise SqlError(
                "0A000",
                f"{identifier(token)}() is not available in the definition of a table or index",
                hint="Tools with plain SQLite must be able to change the table. Call it in a view or a statement.",
            )
