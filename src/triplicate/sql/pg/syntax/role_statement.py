"""The grammar of roles and rights: CREATE, ALTER and DROP ROLE, GRANT, REVOKE, SET ROLE and their kin. Pure.

Source: PostgreSQL 15 documentation, "SQL Commands".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import ALL_ON_DATABASE, ALL_ON_TABLE, PUBLIC
from triplicate.sql.core.datetime_text import microseconds_of, stored_datetime
from triplicate.sql.core.declared_types import Kind
from triplicate.sql.core.lexer import Statement
from triplicate.sql.core.rights import Action
from triplicate.sql.core.role_commands import (
    AlterRole,
    Attribute,
    ChangeGrants,
    ChangeMembers,
    ChangeOwner,
    CreateRole,
    DropRoles,
    ReassignOwned,
    RenameRole,
    RoleCommand,
)
from triplicate.sql.pg.syntax.token_cursor import NotUnderstood, TokenCursor

Parsed = TypeVar("Parsed")
CURRENT_USER, SESSION_USER = "\0current_user", "\0session_user"
"""Stand for the role of the session that runs the statement. No role has such a name."""
_ROLE_WORDS = ("ROLE", "USER", "GROUP")
_FLAGS = {
    "LOGIN": "can_login",
    "SUPERUSER": "is_superuser",
    "CREATEROLE": "can_create_roles",
    "CREATEUSER": "can_create_roles",
}
_WITHOUT_EFFECT = ("INHERIT", "NOCREATEDB", "NOREPLICATION", "NOBYPASSRLS")
_REFUSED = ("NOINHERIT", "CREATEDB", "REPLICATION", "BYPASSRLS", "SYSID")
_PRIVILEGES = {action.name: action for action in (*ALL_ON_TABLE, *ALL_ON_DATABASE)}
_OTHER_OBJECTS = frozenset(
    ("SEQUENCE", "FUNCTION", "PROCEDURE", "ROUTINE", "LANGUAGE", "TYPE", "DOMAIN", "FOREIGN", "TABLESPACE", "PARAMETER", "LARGE")
)
_NOT_NAMES = ("TO", "FROM", "ON", "WITH", "IN", "GRANTED")
_POSTGRESQL_EPOCH_US = 946_684_800_000_000
"""2000-01-01 in UTC, in microseconds since 1970."""
_COLUMN_PRIVILEGES = "privileges on columns are not supported"


@dataclass(frozen=True, slots=True)
class Password:
    """A password, or a verifier in its place. `text` None: the role has none."""

    text: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class RoleStatement:
    """A change of roles or rights. A password is not in the command yet."""

    command: RoleCommand
    tag: str
    database: str | None = None
    """The database of GRANT … ON DATABASE."""
    password: Password | None = None


@dataclass(frozen=True, slots=True)
class SetRole:
    """SET ROLE, SET SESSION AUTHORIZATION, and RESET of either. `name` None: the role that logged in."""

    name: str | None
    for_session: bool
    is_local: bool = False
    tag: str = "SET"


def is_role_statement(statement: Statement) -> bool:
    """Whether `parse_role_statement` parses a statement: it is of roles or rights."""
    words = [token.upper for token in statement.tokens[:3]]
    match words:
        case ["GRANT" | "REVOKE" | "REASSIGN", *_]:
            return True
        case ["CREATE" | "ALTER" | "DROP", "ROLE" | "USER" | "GROUP" | "OWNED", *_]:
            return True
        case ["ALTER", "DEFAULT", "PRIVILEGES"]:
            return True
        case ["ALTER", "TABLE" | "VIEW", *_]:
            return [token.upper for token in statement.tokens[-3:-1]] == ["OWNER", "TO"]
    return False


def parse_role_statement(statement: Statement) -> RoleStatement:
    """Parse a statement of roles or rights.

    Raises:
        SqlError: 42601 for a syntax error, 0A000 for what is not supported. Neither repeats a password.
    """
    return _understood(statement, _parsed)


def parse_set_role(statement: Statement) -> SetRole | None:
    """Parse SET ROLE, SET SESSION AUTHORIZATION, and RESET of either; None for any other statement.

    Raises:
        SqlError: 42601.
    """
    words = [token.upper for token in statement.tokens[:4]]
    rest = words[2:] if words[:2] in (["SET", "LOCAL"], ["SET", "SESSION"]) and words[2:3] != ["AUTHORIZATION"] else words[1:]
    if rest[:1] != ["ROLE"] and rest[:2] != ["SESSION", "AUTHORIZATION"]:
        return None
    return _understood(statement, _set_role)


def _understood(statement: Statement, parse: Callable[[TokenCursor], Parsed]) -> Parsed:
    cursor = TokenCursor(statement.tokens, len(statement.sql))
    try:
        found = parse(cursor)
        cursor.accept(";")
        if cursor.token.kind != "end":
            raise cursor.not_understood()
        return found
    except NotUnderstood as error:
        token = error.token
        at = "at end of input" if token.kind == "end" else "near a constant" if token.kind == "string" else f'at or near "{token.text}"'
        raise SqlError("42601", f"syntax error {at}", position=token.start + 1) from None


def _set_role(cursor: TokenCursor) -> SetRole:
    resets = cursor.accept("RESET")
    if not resets:
        cursor.expect("SET")
    is_local = cursor.accept("LOCAL")
    if not is_local and cursor.ahead().upper != "AUTHORIZATION":
        cursor.accept("SESSION")
    for_session = cursor.accept("SESSION", "AUTHORIZATION")
    if not for_session:
        cursor.expect("ROLE")
    if resets:
        return SetRole(None, for_session, tag="RESET")
    if not for_session and not cursor.accept("TO"):
        cursor.accept("=")
    if (for_session and cursor.accept("DEFAULT")) or (not for_session and cursor.accept("NONE")):
        return SetRole(None, for_session, is_local)
    token = cursor.advance()
    name = token.string() if token.kind == "string" else None
    if name is None:
        if token.kind not in ("word", "quoted"):
            raise NotUnderstood(token)
        name = token.name if token.kind == "quoted" else token.text.lower()
    if not for_session and name == "none":
        name = None
    return SetRole(name, for_session, is_local)


def _parsed(cursor: TokenCursor) -> RoleStatement:
    first = cursor.advance().upper
    if first == "GRANT":
        return _grant(cursor, grants=True)
    if first == "REVOKE":
        return _grant(cursor, grants=False)
    if first == "REASSIGN":
        cursor.expect("OWNED")
        cursor.expect("BY")
        owners = _roles(cursor)
        cursor.expect("TO")
        return RoleStatement(ReassignOwned(owners, _role(cursor)), "REASSIGN OWNED")
    kind = cursor.advance().upper
    if kind == "OWNED":
        raise SqlError("0A000", "DROP OWNED is not supported", hint="Use REASSIGN OWNED, DROP TABLE and REVOKE.")
    if kind == "DEFAULT":
        hint = "GRANT pg_read_all_data or pg_write_all_data, which cover new tables too."
        raise SqlError("0A000", "ALTER DEFAULT PRIVILEGES is not supported", hint=hint)
    if kind in ("TABLE", "VIEW"):
        return _owner(cursor, kind)
    if first == "CREATE":
        return _create(cursor, kind)
    return _alter(cursor, kind) if first == "ALTER" else _drop(cursor, kind)


def _role(cursor: TokenCursor, *, allows_public: bool = False) -> str:
    """One role, by its name or by a word for it."""
    cursor.accept("GROUP")
    token = cursor.token
    if token.upper in ("CURRENT_USER", "CURRENT_ROLE"):
        cursor.advance()
        return CURRENT_USER
    if token.upper == "SESSION_USER":
        cursor.advance()
        return SESSION_USER
    if token.upper == "PUBLIC":
        if not allows_public:
            raise SqlError("42704", 'role "public" does not exist')
        cursor.advance()
        return PUBLIC
    if token.upper == "NONE":
        raise SqlError("42939", 'role name "none" is reserved')
    return cursor.name().last


def _roles(cursor: TokenCursor, *, allows_public: bool = False) -> tuple[str, ...]:
    found = [_role(cursor, allows_public=allows_public)]
    while cursor.accept(","):
        found.append(_role(cursor, allows_public=allows_public))
    return tuple(dict.fromkeys(found))


# Roles.


def _create(cursor: TokenCursor, kind: str) -> RoleStatement:
    name = _new_name(cursor)
    attributes: dict[str, Attribute] = {"can_login": kind == "USER"}
    options = _Options(cursor, attributes)
    options.read(creates=True)
    command = CreateRole(name, attributes, tuple(options.member_of), tuple(options.members))
    return RoleStatement(command, "CREATE ROLE", password=options.password)


def _new_name(cursor: TokenCursor) -> str:
    if cursor.token.upper in ("PUBLIC", "NONE", "CURRENT_USER", "CURRENT_ROLE", "SESSION_USER"):
        raise SqlError("42939", f'role name "{cursor.token.text.lower()}" is reserved')
    return cursor.name().last


class _Options:
    """The options of CREATE ROLE and ALTER ROLE."""

    def __init__(self, cursor: TokenCursor, attributes: dict[str, Attribute]) -> None:
        self._cursor = cursor
        self.attributes = attributes
        self.password: Password | None = None
        self.member_of: list[str] = []
        self.members: list[str] = []

    def read(self, *, creates: bool) -> None:
        cursor = self._cursor
        cursor.accept("WITH")
        while cursor.token.kind == "word":
            self._option(cursor, creates=creates)

    def _option(self, cursor: TokenCursor, *, creates: bool) -> None:
        word = cursor.token.upper
        if word in _FLAGS:
            cursor.advance()
            self.attributes[_FLAGS[word]] = True
        elif word.startswith("NO") and word[2:] in _FLAGS:
            cursor.advance()
            self.attributes[_FLAGS[word[2:]]] = False
        elif word in _WITHOUT_EFFECT:
            cursor.advance()
        elif word in _REFUSED:
            raise SqlError("0A000", f"{word} is not supported")
        elif word in ("ENCRYPTED", "PASSWORD"):
            self.password = _password(cursor)
        elif cursor.accept("VALID", "UNTIL"):
            self.attributes["valid_until_us"] = _moment(cursor)
        elif cursor.accept("CONNECTION", "LIMIT"):
            self.attributes["connection_limit"] = _limit(cursor)
        elif creates and (cursor.accept("IN", "ROLE") or cursor.accept("IN", "GROUP")):
            self.member_of += _roles(cursor)
        elif creates and word in ("ROLE", "USER"):
            cursor.advance()
            self.members += _roles(cursor)
        elif creates and word == "ADMIN":
            raise SqlError("0A000", "CREATE ROLE … ADMIN is not supported", hint="GRANT role TO member WITH ADMIN OPTION")
        else:
            raise cursor.not_understood()


def _password(cursor: TokenCursor) -> Password:
    cursor.accept("ENCRYPTED")
    cursor.expect("PASSWORD")
    if cursor.accept("NULL"):
        return Password(None)
    token = cursor.token
    if token.kind != "string":
        raise SqlError("42601", "PASSWORD requires a string constant or NULL", position=token.start + 1)
    return Password(cursor.advance().string())


def _moment(cursor: TokenCursor) -> int | None:
    token = cursor.advance()
    if token.kind != "string":
        raise NotUnderstood(token)
    text = token.string()
    if text.strip().lower() == "infinity":
        return None
    return _POSTGRESQL_EPOCH_US + microseconds_of(stored_datetime(text, Kind.TIMESTAMPTZ), Kind.TIMESTAMPTZ)


def _limit(cursor: TokenCursor) -> int:
    sign = -1 if cursor.accept("-") else 1
    token = cursor.advance()
    if token.kind != "number" or not token.text.isdigit():
        raise NotUnderstood(token)
    limit = sign * int(token.text)
    if not -1 <= limit <= 2**31 - 1:
        raise SqlError("22023", f"invalid connection limit: {limit}")
    return limit


def _alter(cursor: TokenCursor, kind: str) -> RoleStatement:
    if cursor.token.upper == "ALL":
        raise SqlError("0A000", "ALTER ROLE ALL is not supported")
    name = _role(cursor)
    if cursor.accept("RENAME", "TO"):
        return RoleStatement(RenameRole(name, _new_name(cursor)), "ALTER ROLE")
    if kind == "GROUP":
        grants = cursor.accept("ADD", "USER")
        if not grants and not cursor.accept("DROP", "USER"):
            raise cursor.not_understood()
        return RoleStatement(ChangeMembers(grants, (name,), _roles(cursor)), "ALTER ROLE")
    if cursor.token.upper in ("SET", "RESET", "IN"):
        hint = "Set it in the session, or in its connection string."
        raise SqlError("0A000", f"ALTER ROLE … {cursor.token.upper} is not supported", hint=hint)
    attributes: dict[str, Attribute] = {}
    options = _Options(cursor, attributes)
    options.read(creates=False)
    return RoleStatement(AlterRole(name, attributes), "ALTER ROLE", password=options.password)


def _drop(cursor: TokenCursor, _kind: str) -> RoleStatement:
    if_exists = cursor.accept("IF", "EXISTS")
    return RoleStatement(DropRoles(_roles(cursor), if_exists), "DROP ROLE")


def _owner(cursor: TokenCursor, kind: str) -> RoleStatement:
    if cursor.accept("IF", "EXISTS"):
        raise SqlError("0A000", f"ALTER {kind} IF EXISTS is not supported", hint="leave IF EXISTS out")
    cursor.accept("ONLY")
    relation = cursor.relation()
    cursor.expect("OWNER")
    cursor.expect("TO")
    return RoleStatement(ChangeOwner(relation, kind.lower(), _role(cursor)), f"ALTER {kind}")


# Rights.


def _grant(cursor: TokenCursor, *, grants: bool) -> RoleStatement:
    tag = "GRANT" if grants else "REVOKE"
    is_option = False
    if not grants and cursor.accept("GRANT", "OPTION", "FOR"):
        raise SqlError("0A000", "grant options are not supported: the owner of a table grants its privileges")
    if not grants:
        is_option = cursor.accept("ADMIN", "OPTION", "FOR")
    words: list[str] = []
    if cursor.accept("ALL"):
        cursor.accept("PRIVILEGES")
        words.append("ALL")
    else:
        words.append(_word(cursor))
        while cursor.accept(","):
            words.append(_word(cursor))
    if cursor.token.text == "(":
        raise SqlError("0A000", _COLUMN_PRIVILEGES, hint="Grant the privilege on the table, or on a view of some columns.")
    if cursor.accept("ON"):
        found = _object_grant(cursor, tag, [word.upper() for word in words], grants=grants)
    else:
        found = _role_grant(cursor, tag, words, grants=grants, is_option=is_option)
    if not grants and not cursor.accept("CASCADE"):
        cursor.accept("RESTRICT")
    return found


def _word(cursor: TokenCursor) -> str:
    if cursor.token.upper in _NOT_NAMES:
        raise cursor.not_understood()
    return cursor.name().last


def _grantees(cursor: TokenCursor, *, grants: bool, allows_public: bool) -> tuple[str, ...]:
    cursor.expect("TO" if grants else "FROM")
    found = _roles(cursor, allows_public=allows_public)
    if cursor.accept("GRANTED", "BY"):
        _role(cursor)  # The owner of the object is always the grantor here.
    return found


def _object_grant(cursor: TokenCursor, tag: str, words: list[str], *, grants: bool) -> RoleStatement:
    database: str | None = None
    relations: tuple[str, ...] | None = None
    on_database = False
    if cursor.accept("DATABASE"):
        on_database, database = True, cursor.name().last
    elif cursor.accept("SCHEMA"):
        _public_schema(cursor)
        on_database = True
    elif cursor.accept("ALL"):
        what = cursor.advance().upper
        cursor.expect("IN")
        cursor.expect("SCHEMA")
        _public_schema(cursor)
        if what == "SEQUENCES":
            relations = ()  # A serial key's numbers come with the table.
        elif what != "TABLES":
            raise SqlError("0A000", f"privileges on {what.lower()} are not supported")
    else:
        relations = _relations(cursor)
    grantees = _grantees(cursor, grants=grants, allows_public=True)
    if cursor.accept("WITH", "GRANT", "OPTION"):
        raise SqlError("0A000", "grant options are not supported: the owner of a table grants its privileges")
    schema_only = on_database and database is None
    actions = _actions(words, on_database=on_database, on_schema=schema_only, is_nothing=relations == ())
    return RoleStatement(ChangeGrants(grants, actions, grantees, relations, on_database), tag, database)


def _relations(cursor: TokenCursor) -> tuple[str, ...]:
    for word in (
        "SEQUENCE",
        "FUNCTION",
        "PROCEDURE",
        "ROUTINE",
        "LANGUAGE",
        "TYPE",
        "DOMAIN",
        "FOREIGN",
        "TABLESPACE",
        "PARAMETER",
        "LARGE",
    ):
        if cursor.token.upper == word and cursor.ahead().kind in ("word", "quoted") and cursor.ahead().upper not in ("TO", "FROM"):
            raise SqlError("0A000", f"privileges on a {word.lower()} are not supported")
    cursor.accept("TABLE")
    found = [cursor.relation()]
    while cursor.accept(","):
        found.append(cursor.relation())
    return tuple(dict.fromkeys(found))


def _public_schema(cursor: TokenCursor) -> None:
    name = cursor.name().last
    if name != "public":
        raise SqlError("3F000", f'schema "{name}" does not exist')


def _actions(words: list[str], *, on_database: bool, on_schema: bool, is_nothing: bool) -> frozenset[Action]:
    everything = ALL_ON_DATABASE if on_database else ALL_ON_TABLE
    if words == ["ALL"]:
        return frozenset((Action.CREATE,)) if on_schema else everything
    found: set[Action] = set()
    for word in words:
        action = _PRIVILEGES.get(word)
        if word in ("TEMPORARY", "TEMP", "USAGE") and (on_database or is_nothing):
            continue  # There are no temporary tables, and the one schema is open to all.
        if action is None:
            raise SqlError("42601", f'unrecognized privilege type "{word.lower()}"')
        if is_nothing:
            continue
        if action not in everything or (on_schema and action is not Action.CREATE):
            kind = "schema" if on_schema else "database" if on_database else "relation"
            raise SqlError("0LP01", f"invalid privilege type {word} for {kind}")
        found.add(action)
    return frozenset(found)


def _role_grant(cursor: TokenCursor, tag: str, words: list[str], *, grants: bool, is_option: bool) -> RoleStatement:
    members = _grantees(cursor, grants=grants, allows_public=False)
    if cursor.accept("WITH", "ADMIN", "OPTION"):
        is_option = True
    return RoleStatement(ChangeMembers(grants, tuple(words), members, is_option), f"{tag} ROLE")
