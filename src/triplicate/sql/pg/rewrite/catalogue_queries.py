"""Queries of the catalogue, rewritten for SQLite and the catalogue's virtual tables. Pure.

Client libraries write these queries, with arrays, ``::regclass`` and set-returning functions; users of a database do not. Rules over
tokens rewrite them, separately from the translation of users' statements. SQLite refuses the forms that no rule covers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import SqlError
from triplicate.sql.catalogue.live_tables import LIVE_TABLES
from triplicate.sql.catalogue.relations import TABLES
from triplicate.sql.core.lexer import Statement, Token, quote_string, string_value, tokenize
from triplicate.sql.core.session_roles import SessionName
from triplicate.sql.pg.rewrite.catalogue_names import result_names
from triplicate.sql.pg.rewrite.catalogue_types import parameter_oids, result_oids
from triplicate.sql.pg.rewrite.live_uses import LiveUse, live_uses
from triplicate.sql.pg.rewrite.mutable_token import MutableToken, closing, names_a_table, type_at
from triplicate.sql.pg.syntax.missing_constructs import refuse_missing

_TRIGGERS = {name.upper() for name in TABLES if not name.startswith("information_schema.")} | {
    "TO_REGCLASS", "TO_REGTYPE", "FORMAT_TYPE", "PG_GET_EXPR", "PG_GET_CONSTRAINTDEF", "PG_GET_INDEXDEF", "PG_TABLE_IS_VISIBLE",
    "PG_TYPE_IS_VISIBLE", "CURRENT_SCHEMAS", "OBJ_DESCRIPTION", "COL_DESCRIPTION", "HAS_TABLE_PRIVILEGE", "HAS_SCHEMA_PRIVILEGE",
    "HAS_DATABASE_PRIVILEGE", "HAS_COLUMN_PRIVILEGE", "HAS_ANY_COLUMN_PRIVILEGE", "PG_HAS_ROLE",
    "PG_GET_USERBYID", "PG_GET_SERIAL_SEQUENCE", "REGCLASS", "REGTYPE", "REGNAMESPACE", "INFORMATION_SCHEMA",
    "PG_PROC", "PG_STAT_USER_TABLES", "PG_TABLES", "PG_VIEWS", "PG_INDEXES", "PG_ROLES", "PG_USER", "PG_EXTENSION", "PG_TRIGGER",
    "PG_CAST", "PG_OPERATOR", "PG_CURSORS", "PG_LOCKS", "PG_STAT_ACTIVITY", "PG_SETTINGS", "PG_POLICY", "PG_AUTHID", "PG_FOREIGN_TABLE",
}  # fmt: skip
"""Words that identify such a query. They include tables that do not exist here, so that the error contains their names."""
_MAY_ASK = re.compile(rf"\b(?:{'|'.join(sorted(_TRIGGERS))})\b", re.IGNORECASE)
_PIECES = ("pg_", "triplicate_", "reg", "_schema", "format_type", "_description", "has_")
"""Each trigger contains one of these."""
_OBJECTS = {"REGCLASS": "regclass", "REGTYPE": "regtype", "REGNAMESPACE": "regnamespace"}
_INTEGERS = {"OID", "INT", "INTEGER", "INT2", "INT4", "INT8", "BIGINT", "SMALLINT", "XID"}
_TEXTS = {"TEXT", "VARCHAR", "NAME", "CHARACTER VARYING", "CHAR", "BPCHAR", "UNKNOWN"}
_NO_FUNCTIONS = {
    "AND", "OR", "NOT", "IN", "ANY", "ALL", "SOME", "SELECT", "WHERE", "ON", "THEN", "ELSE", "WHEN", "CASE", "AS", "BY", "FROM", "JOIN",
    "USING", "VALUES", "HAVING", "LIKE", "BETWEEN", "IS", "UNION", "LIMIT", "DISTINCT",
}  # fmt: skip
_FROM_ENDS = {"WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "WINDOW", ";"}
_OPERAND_ENDS = _FROM_ENDS | {"AND", "OR", "ESCAPE", "IS", "THEN", "ELSE", "END", "WHEN", "AS", "ASC", "DESC"}
_AFTER_TABLE = {
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "UNION",
    "ON",
    "JOIN",
    "LEFT",
    "INNER",
    "CROSS",
    "NATURAL",
    "RIGHT",
    "FULL",
    ")",
    ",",
}


_SESSION_NAMES = {
    "CURRENT_USER": SessionName.CURRENT,
    "CURRENT_ROLE": SessionName.CURRENT,
    "USER": SessionName.CURRENT,
    "SESSION_USER": SessionName.SESSION,
}
_PRIVILEGE_FUNCTIONS = {
    "HAS_TABLE_PRIVILEGE": (3, (0,)),
    "HAS_COLUMN_PRIVILEGE": (4, (0,)),
    "HAS_ANY_COLUMN_PRIVILEGE": (3, (0,)),
    "HAS_SCHEMA_PRIVILEGE": (3, (0,)),
    "HAS_DATABASE_PRIVILEGE": (3, (0,)),
    "PG_HAS_ROLE": (3, (0, 1)),
}
"""Maps such a function to the number of its arguments, and to those that are roles. Without the first it answers for the current user."""
_SUPPLIED = "supplied"
"""Kind of the tokens that stand for the names of a session."""


@dataclass(frozen=True, slots=True)
class CatalogueQuery:
    """The rewritten text, with the types of its parameters and columns."""

    text: str
    parameters: dict[int, int]
    """Maps the number of a parameter to its type's oid, if a cast or a column determines it."""
    columns: tuple[int | None, ...]
    """The type's oid of each column of the result; None if only a column's declared type, or a value, determines it."""
    names: tuple[str, ...]
    """The name of each column of the result; empty if only the catalogue's tables determine them."""
    users: tuple[SessionName, ...] = ()
    """The names that the session supplies, as parameters after the client's."""
    live: tuple[LiveUse, ...] = ()
    """The tables whose rows the session supplies, as parameters after the names."""


def catalogue_query(statement: Statement) -> CatalogueQuery | None:
    """The rewritten query; None for a statement that does not query the catalogue.

    Raises:
        SqlError: 0A000 for a cast, a quantifier or a use of unnest() that no rule covers, or for a user's table in the same query; 42601
            for a syntax error.
    """
    sql, tokens = statement.sql, statement.tokens
    lowered = sql.lower()
    # Most statements return here, within some microseconds.
    if not any(piece in lowered for piece in _PIECES) or _MAY_ASK.search(sql) is None:
        return None
    if statement.first_word not in ("SELECT", "WITH", "("):
        return None
    if not any(token.kind == "word" and token.upper in _TRIGGERS for token in tokens):
        return None
    refuse_missing(tokens)
    parts = _without_schemas(_plain_operators([_plain(token) for token in tokens]))
    parts = _with_subscripts(parts)
    _refuse_other_tables(parts)
    names = result_names(parts)
    parts, users = _session_names(_privilege_roles(parts))
    parts, live = live_uses(parts, len(users))
    parameters = parameter_oids(parts)
    for use in live:
        parameters |= use.parameter_oids
    columns = result_oids(parts)
    parts = _arrays(parts)
    parts = _casts(parts)
    parts = _subscripts(parts)
    parts = _quantified(parts)
    parts = _unnested(parts)
    parts = _patterns(_expressions(parts))
    parts = _named_values(parts)
    return CatalogueQuery(" ".join(part.text for part in parts), parameters, columns, names, users, live)


def _plain(token: Token) -> MutableToken:
    """A token of the client, with a string as SQLite writes it."""
    return MutableToken(token.kind, token.text if token.is_plain else quote_string(token.string()))


def _tokens(text: str) -> list[MutableToken]:
    return [MutableToken(token.kind, token.text) for token in tokenize(text)]


def _opening(parts: Sequence[MutableToken], end: int) -> int:
    depth = 0
    for index in range(end, -1, -1):
        depth += (parts[index].text in (")", "]")) - (parts[index].text in ("(", "["))
        if depth == 0:
            return index
    raise SqlError("42601", "syntax error: a closing bracket has no opening one")


def _operand_start(parts: Sequence[MutableToken], end: int) -> int:
    """The index at which the operand that ends at index `end` begins. It is a dotted name, a call, brackets, CASE … END or a constant."""
    start = end
    last = parts[end]
    if last.text in (")", "]"):
        start = _opening(parts, end)
        before = parts[start - 1] if start else None
        if before is not None and before.kind in ("word", "quoted") and before.upper not in _NO_FUNCTIONS:
            start -= 1
        elif before is not None and last.text == "]":
            return _operand_start(parts, start - 1)
    elif last.upper == "END":
        depth = 0
        for index in range(end, -1, -1):
            depth += (parts[index].upper == "END") - (parts[index].upper == "CASE")
            if depth == 0:
                return index
    while start >= 2 and parts[start - 1].text == "." and parts[start].kind in ("word", "quoted"):
        start -= 2
    return start


def _plain_operators(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``OPERATOR(pg_catalog.~)`` by the operator, and leave ``COLLATE pg_catalog.default`` out, as psql writes them."""
    rewritten: list[MutableToken] = []
    index = 0
    while index < len(parts):
        words = [part.upper for part in parts[index : index + 4]]
        if words == ["OPERATOR", "(", "PG_CATALOG", "."] and index + 5 < len(parts) and parts[index + 5].text == ")":
            rewritten.append(parts[index + 4])
            index += 6
        elif words == ["COLLATE", "PG_CATALOG", ".", "DEFAULT"]:
            index += 4
        else:
            rewritten.append(parts[index])
            index += 1
    return rewritten


def _without_schemas(parts: list[MutableToken]) -> list[MutableToken]:
    rewritten: list[MutableToken] = []
    index = 0
    while index < len(parts):
        part = parts[index]
        has_name = index + 2 < len(parts) and parts[index + 1].text == "." and parts[index + 2].kind in ("word", "quoted")
        if has_name and part.upper in ("PG_CATALOG", "PUBLIC"):
            index += 2
            continue
        if has_name and part.upper == "INFORMATION_SCHEMA":
            name = parts[index + 2].text.strip('"').lower()
            rewritten.append(MutableToken("quoted", f'"information_schema.{name}"'))
            after = parts[index + 3] if index + 3 < len(parts) else None
            if after is None or after.upper in _AFTER_TABLE:
                rewritten += [MutableToken("word", "AS"), MutableToken("word", name)]
            index += 3
            continue
        rewritten.append(part)
        index += 1
    return rewritten


def _refuse_other_tables(parts: Sequence[MutableToken]) -> None:
    """Refuse a user's table in the same query, because SQLite's rules would compare and sort its values. Raises SqlError 0A000."""
    common = _common_names(parts)
    for index, part in enumerate(parts):
        name = part.text.strip('"').lower()
        is_called = index + 1 < len(parts) and parts[index + 1].text == "("
        if part.kind not in ("word", "quoted") or is_called or part.upper in ("SELECT", "VALUES", "LATERAL", "ONLY", "UNNEST"):
            continue
        is_known = name in common or name in LIVE_TABLES or name.startswith(("pg_", "information_schema", "sqlite_"))
        if names_a_table(parts, index) and not is_known:
            raise SqlError(
                "0A000",
                f'a query of the catalogue cannot read table "{part.text}" as well',
                hint="Query the catalogue and the table separately.",
            )


def _common_names(parts: Sequence[MutableToken]) -> set[str]:
    """Names of the common table expressions."""
    names: set[str] = set()
    for index, part in enumerate(parts):
        if part.kind not in ("word", "quoted") or not index or parts[index - 1].upper not in ("WITH", "RECURSIVE", ","):
            continue
        after = index + 1
        if after < len(parts) and parts[after].text == "(":
            after = closing(parts, after) + 1
        if [following.upper for following in parts[after : after + 2]] == ["AS", "("]:
            names.add(part.text.strip('"').lower())
    return names


def _privilege_roles(parts: list[MutableToken]) -> list[MutableToken]:
    """Supply the role in ``has_…_privilege`` where it is not given, and the roles of the session's own names where it is.

    The administrator has the name that the client sent, which need not be a role of the database.
    """
    names = [token for name in SessionName for token in (MutableToken("operator", ","), MutableToken(_SUPPLIED, name.name))]
    for index in range(len(parts) - 1, 0, -1):
        function = parts[index - 1].upper
        if parts[index].text != "(" or function not in _PRIVILEGE_FUNCTIONS:
            continue
        count, roles = _PRIVILEGE_FUNCTIONS[function]
        arguments = _arguments(parts, index)
        if len(arguments) == count - 1:
            arguments.insert(0, [])
        for number in roles:
            if number < len(arguments) and arguments[number]:
                arguments[number] = [*_tokens("pg_role_named("), *arguments[number], *names, *_tokens(")")]
        if not arguments[0]:
            arguments[0] = [MutableToken(_SUPPLIED, SessionName.ACTING.name)]
        inside = [token for argument in arguments for token in (MutableToken("operator", ","), *argument)][1:]
        parts = [*parts[: index + 1], *inside, *parts[closing(parts, index) :]]
    return parts


def _session_names(parts: list[MutableToken]) -> tuple[list[MutableToken], tuple[SessionName, ...]]:
    """Replace ``current_user`` and its kin, and what `_privilege_roles` supplies, by parameters."""
    numbers = [int(part.text[1:]) for part in parts if part.kind == "parameter" and part.text[1:].isdigit()]
    first, users, rewritten = max(numbers, default=0) + 1, list[SessionName](), list[MutableToken]()

    def marker(name: SessionName) -> MutableToken:
        if name not in users:
            users.append(name)
        return MutableToken("parameter", f"${first + users.index(name)}")

    for index, part in enumerate(parts):
        before = parts[index - 1].text if index else ""
        opens = index + 1 < len(parts) and parts[index + 1].text == "("
        if part.kind == _SUPPLIED:
            rewritten.append(marker(SessionName[part.text]))
        elif part.kind == "word" and part.upper in _SESSION_NAMES and not opens and before != "." and parts[index - 1].upper != "AS":
            rewritten.append(marker(_SESSION_NAMES[part.upper]))
        else:
            rewritten.append(part)
    return rewritten, tuple(users)


def _arrays(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``ARRAY[…]`` and ``ARRAY(SELECT …)`` by calls."""
    index = 0
    while index + 1 < len(parts):
        if parts[index].upper == "ARRAY" and parts[index + 1].text == "[":
            end = closing(parts, index + 1)
            parts = [*parts[:index], *_tokens("pg_array("), *parts[index + 2 : end], *_tokens(")"), *parts[end + 1 :]]
        elif parts[index].upper == "ARRAY" and parts[index + 1].text == "(":
            end = closing(parts, index + 1)
            query = parts[index + 2 : end]
            whole = [*_tokens('(WITH "_a"("v") AS ('), *query, *_tokens(') SELECT pg_array_of("v") FROM "_a")')]
            parts = [*parts[:index], *whole, *parts[end + 1 :]]
        index += 1
    return parts


# Casts.


def _casts(parts: list[MutableToken]) -> list[MutableToken]:
    index = 0
    while index < len(parts):
        if parts[index].text == "::":
            start = _operand_start(parts, index - 1)
            name, end = type_at(parts, index + 1)
            cast = _cast(parts[start:index], name)
            parts = [*parts[:start], *cast, *parts[end:]]
            index = start + len(cast)
        elif parts[index].upper == "CAST" and index + 1 < len(parts) and parts[index + 1].text == "(":
            end = closing(parts, index + 1)
            inner = _casts(parts[index + 2 : end])
            at = max(as_index for as_index, part in enumerate(inner) if part.upper == "AS")
            cast = _cast(inner[:at], type_at(inner, at + 1)[0])
            parts = [*parts[:index], *cast, *parts[end + 1 :]]
            index += len(cast)
        else:
            index += 1
    return parts


def _cast(operand: list[MutableToken], name: str) -> list[MutableToken]:
    if name in _OBJECTS:
        return [MutableToken("word", f"pg_cast_{_OBJECTS[name]}"), *_tokens("("), *operand, *_tokens(")")]
    of_object = operand[0].text.removeprefix("pg_cast_") if operand[0].text.startswith("pg_cast_") else ""
    if name in _TEXTS:
        if of_object:
            return [MutableToken("word", f"pg_{of_object}_text"), *_tokens("("), *operand, *_tokens(")")]
        return [*_tokens("CAST("), *operand, *_tokens("AS TEXT)")]
    if name in _INTEGERS:
        return [*_tokens("CAST("), *operand, *_tokens("AS INTEGER)")]
    if name.endswith("[]"):
        return operand
    if name in ("BOOL", "BOOLEAN"):
        return [*_tokens("("), *operand, *_tokens(")")]
    raise SqlError("0A000", f"a cast to {name.lower()} is not available in a query of the catalogue")


def _with_subscripts(parts: list[MutableToken]) -> list[MutableToken]:
    """The tokens of subscripts, which are names in brackets for the reader of SQLite's dialect: ``indkey[a.attnum - 1]``."""
    expanded: list[MutableToken] = []
    for part in parts:
        if part.kind != "quoted" or part.text[0] != "[" or not expanded or not _ends_operand(expanded[-1]):
            expanded.append(part)
            continue
        is_closed = part.text[-1] == "]"
        inside = _with_subscripts([_plain(token) for token in tokenize(part.text[1:-1] if is_closed else part.text[1:])])
        expanded += [MutableToken("operator", "["), *inside, *([MutableToken("operator", "]")] if is_closed else [])]
    return expanded


def _ends_operand(part: MutableToken) -> bool:
    return part.text in (")", "]") or part.kind == "quoted" or (part.kind == "word" and part.upper not in _NO_FUNCTIONS)


def _subscripts(parts: list[MutableToken]) -> list[MutableToken]:
    index = 1
    while index < len(parts):
        if parts[index].text == "[" and (parts[index - 1].kind in ("word", "quoted") or parts[index - 1].text == ")"):
            start, end = _operand_start(parts, index - 1), closing(parts, index)
            if any(part.text[0] == ":" and part.text != "::" for part in parts[index + 1 : end]):
                raise SqlError("0A000", "slices of arrays are not available in a query of the catalogue")
            item = [*_tokens("pg_array_item("), *parts[start:index], *_tokens(","), *_subscripts(parts[index + 1 : end]), *_tokens(")")]
            parts = [*parts[:start], *item, *parts[end + 1 :]]
            index = start + len(item)
        index += 1
    return parts


def _quantified(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``x = ANY (array)`` and ``x <> ALL (array)`` by IN or a call."""
    index = 2
    while index + 1 < len(parts):
        word = parts[index].upper
        if word in ("ANY", "SOME", "ALL") and parts[index + 1].text == "(":
            operator = parts[index - 1].text
            start, end = _operand_start(parts, index - 2), closing(parts, index + 1)
            if (operator, word == "ALL") not in (("=", False), ("<>", True), ("!=", True)):
                raise SqlError("0A000", f"{operator} {word} (…) is not available in a query of the catalogue")
            negation = _tokens("NOT") if word == "ALL" else []
            operand, inside = parts[start : index - 1], parts[index + 2 : end]
            if inside and inside[0].upper in ("SELECT", "WITH"):
                replacement = [*operand, *negation, *_tokens("IN ("), *inside, *_tokens(")")]
            else:
                replacement = [*negation, *_tokens("pg_array_has("), *inside, *_tokens(","), *operand, *_tokens(")")]
            parts = [*parts[:start], *replacement, *parts[end + 1 :]]
            index = start
        index += 1
    return parts


def _patterns(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace LIKE by GLOB, because LIKE is case-sensitive in PostgreSQL, and ILIKE by SQLite's LIKE. Both have the backslash as escape."""
    index = 0
    while index < len(parts):
        word = parts[index].upper
        if word in ("LIKE", "ILIKE"):
            end = _operand_end(parts, index + 1)
            pattern, next_index = parts[index + 1 : end], end
            escape = [MutableToken("string", "'\\'")]
            if end < len(parts) and parts[end].upper == "ESCAPE":
                next_index = _operand_end(parts, end + 1)
                escape = parts[end + 1 : next_index]
            if word == "LIKE":
                replacement = [*_tokens("GLOB triplicate_glob("), *pattern, *_tokens(","), *escape, *_tokens(")")]
            else:
                replacement = [*_tokens("LIKE ("), *pattern, *_tokens(") ESCAPE"), *escape]
            parts = [*parts[:index], *replacement, *parts[next_index:]]
            index += len(replacement)
        index += 1
    return parts


_EXPRESSION = re.compile(r"\^(?:\((?P<whole>[\w.*$]*)\)\$|(?P<exact>[\w]*)\$|(?P<start>\w*))")
"""The regular expressions that psql writes for its patterns: ``^(name.*)$`` and ``^pg_``."""


def _expressions(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``~`` and ``!~`` with one of psql's expressions by GLOB. No other expression is evaluated. Raises SqlError 0A000."""
    rewritten: list[MutableToken] = []
    for index, part in enumerate(parts):
        if rewritten and index and parts[index - 1].text in ("~", "!~"):
            continue
        if part.text not in ("~", "!~") or part.kind != "operator":
            rewritten.append(part)
            continue
        operand = parts[index + 1] if index + 1 < len(parts) else None
        found = _EXPRESSION.fullmatch(string_value(operand.text)) if operand is not None and operand.kind == "string" else None
        if found is None:
            raise SqlError("0A000", "this regular expression is not available in a query of the catalogue", hint="Use LIKE.")
        rewritten += [*(_tokens("NOT") if part.text == "!~" else []), *_tokens("GLOB"), MutableToken("string", quote_string(_glob(found)))]
    return rewritten


def _glob(found: re.Match[str]) -> str:
    if found["whole"] is not None:
        return found["whole"].replace(".*", "*").replace(".", "?")
    return found["exact"] if found["exact"] is not None else f"{found['start']}*"


def _operand_end(parts: Sequence[MutableToken], start: int) -> int:
    """The index after an operand of LIKE: that of the first token that does not bind more tightly than LIKE."""
    depth = 0
    for index in range(start, len(parts)):
        is_end = parts[index].upper in _OPERAND_ENDS or parts[index].text in (")", "]", ",", "=", "<>", "!=", "<", ">", "<=", ">=")
        if depth == 0 and index > start and is_end:
            return index
        depth += (parts[index].text in ("(", "[")) - (parts[index].text in (")", "]"))
    return len(parts)


# Set-returning functions.


def _unnested(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``unnest`` and ``generate_subscripts`` in a select list, and ``unnest`` in FROM, by ``pg_unnest`` in FROM."""
    index = 0
    while index + 1 < len(parts):
        if parts[index].upper in ("UNNEST", "GENERATE_SUBSCRIPTS") and parts[index + 1].text == "(":
            select, in_from = _clause_of(parts, index)
            parts = _unnest_in_from(parts, index) if in_from else _unnest_in_list(parts, select)
        index += 1
    return parts


def _clause_of(parts: Sequence[MutableToken], index: int) -> tuple[int, bool]:
    """(the index of the SELECT that contains a token, whether the token follows its FROM)."""
    depth, in_from = 0, False
    for at in range(index - 1, -1, -1):
        depth += (parts[at].text in (")", "]")) - (parts[at].text in ("(", "["))
        if depth < 0:
            raise SqlError("0A000", "unnest() is available in a select list and in FROM only")
        if depth == 0 and parts[at].upper == "FROM":
            in_from = True
        if depth == 0 and parts[at].upper == "SELECT":
            return at, in_from
    raise SqlError("0A000", "unnest() is available in a select list and in FROM only")


def _arguments(parts: Sequence[MutableToken], opening: int) -> list[list[MutableToken]]:
    arguments: list[list[MutableToken]] = [[]]
    depth = 0
    for part in parts[opening + 1 : closing(parts, opening)]:
        depth += (part.text in ("(", "[")) - (part.text in (")", "]"))
        if depth == 0 and part.text == ",":
            arguments.append([])
        else:
            arguments[-1].append(part)
    return arguments


def _unnest_in_list(parts: list[MutableToken], select: int) -> list[MutableToken]:
    arrays: list[list[MutableToken]] = []
    rewritten: list[MutableToken] = list(parts[: select + 1])
    index, depth = select + 1, 0
    while index < len(parts) and not (depth == 0 and parts[index].upper == "FROM") and depth >= 0:
        depth += (parts[index].text in ("(", "[")) - (parts[index].text in (")", "]"))
        word = parts[index].upper
        if depth == 0 and word in ("UNNEST", "GENERATE_SUBSCRIPTS") and parts[index + 1].text == "(":
            array = _arguments(parts, index + 1)[0]
            number = next((at for at, other in enumerate(arrays) if _text(other) == _text(array)), None)
            if number is None:
                number = len(arrays)
                arrays.append(array)
            rewritten += _tokens(f'"_u".value{number + 1}' if word == "UNNEST" else '"_u".subscript')
            index = closing(parts, index + 1) + 1
            continue
        rewritten.append(parts[index])
        index += 1
    call = _tokens("pg_unnest(")
    for array in arrays:
        call += [*array, *_tokens(",")]
    call = [*call[:-1], *_tokens(') AS "_u"')]
    if index >= len(parts) or parts[index].upper != "FROM":
        return [*rewritten, *_tokens("FROM"), *call, *parts[index:]]
    end = _from_end(parts, index)
    return [*rewritten, *parts[index:end], *_tokens(","), *call, *parts[end:]]


def _from_end(parts: Sequence[MutableToken], start: int) -> int:
    depth = 0
    for index in range(start, len(parts)):
        if depth == 0 and (parts[index].upper in _FROM_ENDS or parts[index].text == ")"):
            return index
        depth += (parts[index].text in ("(", "[")) - (parts[index].text in (")", "]"))
    return len(parts)


def _unnest_in_from(parts: list[MutableToken], index: int) -> list[MutableToken]:
    end = closing(parts, index + 1) + 1
    call = [*_tokens("pg_unnest"), *parts[index + 1 : end]]
    has_ordinality = [part.upper for part in parts[end : end + 2]] == ["WITH", "ORDINALITY"]
    end += 2 if has_ordinality else 0
    end += end < len(parts) and parts[end].upper == "AS"
    alias = parts[end] if end < len(parts) and parts[end].kind in ("word", "quoted") else None
    if alias is None or end + 1 >= len(parts) or parts[end + 1].text != "(":
        raise SqlError("0A000", "unnest() in FROM requires names for its columns: unnest(x) AS t(a)")
    names = [part.text.strip('"').lower() for argument in _arguments(parts, end + 1) for part in argument]
    after = closing(parts, end + 1) + 1
    columns = [f"value{number + 1}" for number in range(len(names))]
    if has_ordinality and names:
        columns[-1] = "ordinality"
    renamed = dict(zip(names, columns, strict=True))
    shown = {number for number in range(len(parts)) if parts[number].text.strip('"').lower() in renamed}
    rewritten = [
        MutableToken("word", renamed[part.text.strip('"').lower()]) if number in shown else part for number, part in enumerate(parts)
    ]
    return [*rewritten[:index], *call, *_tokens("AS"), alias, *rewritten[after:]]


def _named_values(parts: list[MutableToken]) -> list[MutableToken]:
    """Rewrite ``(VALUES …) AS t(a, b)``, because SQLite accepts no column names after the alias."""
    index = 0
    while index + 1 < len(parts):
        if parts[index].text == "(" and parts[index + 1].upper == "VALUES":
            end = closing(parts, index)
            alias = end + 1 + (end + 1 < len(parts) and parts[end + 1].upper == "AS")
            if alias + 1 < len(parts) and parts[alias].kind in ("word", "quoted") and parts[alias + 1].text == "(":
                names = [argument[0] for argument in _arguments(parts, alias + 1) if argument]
                replacement = _tokens("(SELECT")
                for number, name in enumerate(names, start=1):
                    replacement += [*_tokens(f"{',' if number > 1 else ''} column{number} AS"), name]
                replacement += [*_tokens("FROM"), *parts[index : end + 1], *_tokens(")"), parts[alias]]
                parts = [*parts[:index], *replacement, *parts[closing(parts, alias + 1) + 1 :]]
                index += len(replacement)
        index += 1
    return parts


def _text(parts: Sequence[MutableToken]) -> str:
    return " ".join(part.text for part in parts)
