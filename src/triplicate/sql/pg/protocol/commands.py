"""Classifies statements: session commands of PostgreSQL are separated from statements for the engine. Pure.

The session runs SET, SHOW, RESET, DISCARD, DEALLOCATE and similar commands. Transaction control is reduced to the few forms that the engine
accepts, definitions are rewritten, and ``pg_catalog.`` before functions is removed. All other statements stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, Token, statement_of
from triplicate.sql.pg.ddl.definition_rewriter import rewrite_definition
from triplicate.sql.pg.rewrite.session_calls import SessionCalls, session_calls
from triplicate.sql.pg.syntax.as_of_clause import AsOfQuery
from triplicate.sql.pg.syntax.copy_statement import CopyStatement, parse_copy
from triplicate.sql.pg.syntax.explain_statement import ExplainStatement, parse_explain
from triplicate.sql.pg.syntax.notify_statements import Listen, NotifyCall, NotifyStatement, Unlisten, notify_call, parse_listening
from triplicate.sql.pg.syntax.role_statement import RoleStatement, SetRole, is_role_statement, parse_role_statement, parse_set_role
from triplicate.sql.pg.syntax.statistics_reset import ResetStatistics, statistics_reset
from triplicate.sql.pg.syntax.truncate_statement import TruncateStatement, parse_truncate
from triplicate.sql.pg.syntax.vacuum_statement import parse_vacuum


@dataclass(frozen=True, slots=True)
class SetParameter:
    """SET and SET LOCAL."""

    name: str
    value: str | None
    """None means DEFAULT."""
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class ShowParameter:
    """SHOW. `name` is None for ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ResetParameter:
    """RESET. `name` is None for ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Deallocate:
    """DEALLOCATE. `name` is None for ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class NoOperation:
    """A command that is accepted and has no effect. `tag` is its command tag."""

    tag: str


@dataclass(frozen=True, slots=True)
class Discard:
    """DISCARD ALL, which resets parameters and closes prepared statements."""

    tag: str = "DISCARD ALL"


@dataclass(frozen=True, slots=True)
class SetAccess:
    """The access mode of the transaction, or of all later transactions of the session; None if the command does not set one."""

    read_only: bool | None
    for_session: bool


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """SET CONSTRAINTS. Deferrable foreign keys are always DEFERRED here; IMMEDIATE checks them now."""

    immediate: bool


@dataclass(frozen=True, slots=True)
class EngineStatement:
    """A statement that the engine runs."""

    statement: Statement
    read_only: bool | None = None
    """The access mode that BEGIN sets; None if it sets none, and for all other statements."""

    @property
    def text(self) -> str:
        return self.statement.sql


ClientCommand = (
    SetParameter
    | ShowParameter
    | ResetParameter
    | Deallocate
    | Discard
    | SetAccess
    | SetConstraints
    | SessionCalls
    | NoOperation
    | CopyStatement
    | TruncateStatement
    | RoleStatement
    | SetRole
    | Listen
    | Unlisten
    | NotifyStatement
    | NotifyCall
    | ExplainStatement
    | ResetStatistics
    | AsOfQuery
    | EngineStatement
)


def classify(statement: Statement) -> ClientCommand:
    """Classify one statement.

    Raises:
        SqlError: 0A000 for an unsupported statement of PostgreSQL, with an alternative; 34000 for CLOSE of a cursor; 42601 for a syntax
            error in a session command; and as `rewrite_definition` and the parsers of single statements.
    """
    sql, tokens, first = statement.sql, statement.tokens, statement.first_word
    if first in ("CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "REASSIGN") and is_role_statement(statement):
        return parse_role_statement(statement)
    if first in ("SET", "RESET"):
        role = parse_set_role(statement)
        if role is not None:
            return role
    match first:
        case "SELECT":
            calls = session_calls(statement) or notify_call(statement) or statistics_reset(statement)
            if calls is not None:
                return calls
        case "SET":
            return _set(tokens, sql)
        case "SHOW":
            return ShowParameter(None if tokens[1:] and tokens[1].upper == "ALL" else _parameter_name(tokens[1:]))
        case "RESET":
            return ResetParameter(None if tokens[1:] and tokens[1].upper == "ALL" else _parameter_name(tokens[1:]))
        case "DEALLOCATE":
            return Deallocate(None if tokens[-1].upper == "ALL" else _last_name(tokens, ("DEALLOCATE", "PREPARE")))
        case "DISCARD":
            return _discard(tokens)
        case "LISTEN" | "UNLISTEN" | "NOTIFY":
            return parse_listening(statement)
        case "CHECKPOINT":
            return NoOperation(first)
        case "CLOSE":
            if tokens[-1].upper == "ALL":
                return NoOperation("CLOSE CURSOR ALL")
            raise SqlError("34000", f'cursor "{_last_name(tokens, ("CLOSE",))}" does not exist')
        case "BEGIN" | "START" | "END" | "COMMIT" | "ABORT" | "ROLLBACK":
            return EngineStatement(
                statement_of(_transaction_control(tokens)), _access_mode(tokens) if first in ("BEGIN", "START") else None
            )
        case "COPY":
            return parse_copy(statement)
        case "EXPLAIN":
            explained = parse_explain(statement)
            if explained is not None:
                return explained
        case "DECLARE" | "FETCH" | "MOVE":
            raise SqlError("0A000", f"{first} is not supported", hint="fetch from a portal with a row limit instead")
        case "CREATE" | "ALTER" | "DROP" | "COMMENT":
            definition = rewrite_definition(statement)
            return EngineStatement(statement_of(definition.text)) if definition.text else NoOperation(definition.tag)
        case "TRUNCATE":
            return parse_truncate(statement)
        case "VACUUM":
            analyze = parse_vacuum(statement)
            if analyze is not None:
                return EngineStatement(statement_of(analyze)) if analyze else NoOperation(first)
        case "LOCK" | "PREPARE" | "EXECUTE" | "CALL" | "DO":
            raise SqlError("0A000", f"{first} is not supported: the SQL is SQLite's")
    return EngineStatement(_without_catalogue_prefix(statement))


def _without_catalogue_prefix(statement: Statement) -> Statement:
    """Remove ``pg_catalog.`` before function names, which clients write. SQLite's functions have no schemas."""
    sql, tokens = statement.sql, statement.tokens
    if "pg_catalog" not in sql:
        return statement
    pieces: list[str] = []
    at = 0
    for index in range(len(tokens) - 3):
        word, dot, called, bracket = tokens[index : index + 4]
        if word.upper == "PG_CATALOG" and dot.text == "." and called.kind == "word" and bracket.text == "(":
            pieces.append(sql[at : word.start])
            at = called.start
    return statement_of("".join(pieces) + sql[at:]) if pieces else statement


def _last_name(tokens: Sequence[Token], words: Sequence[str]) -> str:
    """The name at the end of the statement, after some of these words. Raises SqlError 42601."""
    before = [token.upper for token in tokens[:-1]]
    if not tokens[-1].name or before != list(words[: len(before)]) or not before:
        raise SqlError("42601", f"syntax error: {words[0]} requires one name, or ALL")
    return tokens[-1].name


def _discard(tokens: Sequence[Token]) -> ClientCommand:
    objects = tokens[1].upper if len(tokens) == 2 else ""
    if objects == "ALL":
        return Discard()
    if objects in ("PLANS", "SEQUENCES", "TEMP", "TEMPORARY"):
        return NoOperation(f"DISCARD {objects.removesuffix('ORARY')}")  # This server has none of these objects.
    raise SqlError("42601", "DISCARD requires one of ALL, PLANS, SEQUENCES and TEMP")


def _parameter_name(tokens: Sequence[Token]) -> str:
    words = [token.upper for token in tokens]
    if words[:2] == ["TIME", "ZONE"]:
        return "TimeZone"
    if words[:3] == ["TRANSACTION", "ISOLATION", "LEVEL"]:
        return "transaction_isolation"
    if words[:2] == ["SESSION", "AUTHORIZATION"]:
        return "session_authorization"
    name = "".join(token.name or token.text for token in tokens)
    if not name:
        raise SqlError("42601", "a parameter's name is missing")
    return name


def _set(tokens: Sequence[Token], sql: str) -> ClientCommand:
    rest = list(tokens[1:])
    is_local = bool(rest) and rest[0].upper == "LOCAL"
    if rest and rest[0].upper in ("LOCAL", "SESSION") and not (len(rest) > 1 and rest[1].upper in ("AUTHORIZATION", "CHARACTERISTICS")):
        rest = rest[1:]
    words = [token.upper for token in rest]
    if words[:1] == ["CONSTRAINTS"] and rest == list(tokens[1:]):
        if len(words) < 3 or words[-1] not in ("IMMEDIATE", "DEFERRED"):
            raise SqlError("42601", "SET CONSTRAINTS requires ALL or names, and DEFERRED or IMMEDIATE")
        return SetConstraints(words[-1] == "IMMEDIATE")
    if words[:1] == ["TRANSACTION"] or words[:2] == ["SESSION", "CHARACTERISTICS"]:
        _check_modes(words[1:] if words[0] == "TRANSACTION" else words[4:])
        return SetAccess(_access_mode(rest), for_session=words[0] == "SESSION")
    if words[:2] == ["TIME", "ZONE"]:
        value = rest[2:]
        if words[2:3] == ["INTERVAL"] and (words[4:] in ([], ["HOUR", "TO", "MINUTE"])):
            value = rest[3:4]  # An offset, which must be that of UTC, like any other value.
        return SetParameter("TimeZone", _set_value(value, sql), is_local)
    if words[:1] == ["NAMES"]:
        return SetParameter("client_encoding", _set_value(rest[1:], sql), is_local)
    at = next((i for i, token in enumerate(rest) if token.upper in ("=", "TO")), None)
    if at is None or at == 0:
        raise SqlError("42601", "SET requires a name and a value: SET name = value")
    return SetParameter(_parameter_name(rest[:at]), _set_value(rest[at + 1 :], sql), is_local)


def _set_value(tokens: Sequence[Token], sql: str) -> str | None:
    if not tokens:
        raise SqlError("42601", "SET requires a value: SET name = value")
    if len(tokens) == 1 and tokens[0].upper == "DEFAULT":
        return None
    if len(tokens) == 1:
        token = tokens[0]
        return token.string() if token.kind == "string" else token.name or token.text
    if any(token.kind == "string" for token in tokens):
        return "".join(", " if token.text == "," else token.string() if token.kind == "string" else token.text for token in tokens)
    return sql[tokens[0].start : tokens[-1].end]


def _access_mode(tokens: Sequence[Token]) -> bool | None:
    """True for READ ONLY, False for READ WRITE, None without either. The last one applies."""
    read_only: bool | None = None
    for token, after in pairwise(tokens):
        if token.upper == "READ" and after.upper in ("ONLY", "WRITE"):
            read_only = after.upper == "ONLY"
    return read_only


def _transaction_control(tokens: Sequence[Token]) -> str:
    """BEGIN, BEGIN IMMEDIATE, COMMIT, ROLLBACK or ROLLBACK TO name. Every isolation level is accepted and is serializable here."""
    words = [token.upper or token.text for token in tokens]
    first, rest = words[0], words[1:]
    if first in ("BEGIN", "START"):
        of_sqlite = rest[:1] if rest[:1] in (["DEFERRED"], ["IMMEDIATE"], ["EXCLUSIVE"]) and first == "BEGIN" else []
        rest = rest[len(of_sqlite) :]
        if first == "START" and rest[:1] != ["TRANSACTION"]:
            raise _unexpected(rest)
        _check_modes(rest[rest[:1] in (["WORK"], ["TRANSACTION"]) :])
        return "BEGIN IMMEDIATE" if of_sqlite and of_sqlite != ["DEFERRED"] else "BEGIN"
    if rest[:1] == ["PREPARED"] or rest[-2:] == ["AND", "CHAIN"]:
        raise SqlError("0A000", "two-phase commit and AND CHAIN are not supported")
    rest = rest[rest[:1] in (["WORK"], ["TRANSACTION"]) :]
    if first == "ROLLBACK" and rest[:1] == ["TO"] and len(rest) == 2 + (rest[1:2] == ["SAVEPOINT"] and len(rest) > 2):
        return f"ROLLBACK TO {tokens[-1].text}"
    if rest not in ([], ["AND", "NO", "CHAIN"]):
        raise _unexpected(rest)
    return "COMMIT" if first in ("END", "COMMIT") else "ROLLBACK"


_MODES = (
    ("ISOLATION", "LEVEL", "SERIALIZABLE"),
    ("ISOLATION", "LEVEL", "REPEATABLE", "READ"),
    ("ISOLATION", "LEVEL", "READ", "COMMITTED"),
    ("ISOLATION", "LEVEL", "READ", "UNCOMMITTED"),
    ("READ", "WRITE"),
    ("READ", "ONLY"),
    ("NOT", "DEFERRABLE"),
    ("DEFERRABLE",),
)


def _check_modes(words: Sequence[str]) -> None:
    """Check a list of transaction modes. Raises SqlError 42601 for any other word."""
    at = 0
    while at < len(words):
        found = next((mode for mode in _MODES if tuple(words[at : at + len(mode)]) == mode), None)
        if found is None:
            raise _unexpected(words[at:])
        at += len(found)
        at += words[at : at + 1] == [","] and at + 1 < len(words)


def _unexpected(words: Sequence[str]) -> SqlError:
    return SqlError("42601", f"syntax error at or near {words[0]!r}" if words else "syntax error at end of input")
