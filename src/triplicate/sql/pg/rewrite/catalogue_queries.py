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
from triplicate.sql.catalogue.virtual_tables import SESSION_TABLES
from triplicate.sql.core.lexer import Statement, Token, quote_string, tokenize
from triplicate.sql.core.session_roles import SessionName
from triplicate.sql.pg.analysis.calls import AGGREGATES, FUNCTIONS
from triplicate.sql.pg.rewrite.catalogue_names import result_names
from triplicate.sql.pg.rewrite.catalogue_types import OBJECT_TYPES, column_types, parameter_oids, result_oids, select_items
from triplicate.sql.pg.rewrite.live_uses import LiveUse, live_uses
from triplicate.sql.pg.rewrite.mutable_token import MutableToken, arguments_of, closing, table_places, tokens_of, type_at
from triplicate.sql.pg.rewrite.set_functions import FROM_ENDS, check_size, expanded_arrays, lateral_inlined, named_values, unnested
from triplicate.sql.pg.syntax.missing_constructs import refuse_missing

_TRIGGERS = {name.upper() for name in TABLES if not name.startswith("information_schema.")} | {
    "TO_REGCLASS", "TO_REGTYPE", "FORMAT_TYPE", "PG_GET_EXPR", "PG_GET_CONSTRAINTDEF", "PG_GET_INDEXDEF", "PG_TABLE_IS_VISIBLE",
    "PG_TYPE_IS_VISIBLE", "CURRENT_SCHEMAS", "OBJ_DESCRIPTION", "COL_DESCRIPTION", "HAS_TABLE_PRIVILEGE", "HAS_SCHEMA_PRIVILEGE",
    "HAS_DATABASE_PRIVILEGE", "HAS_COLUMN_PRIVILEGE", "HAS_ANY_COLUMN_PRIVILEGE", "PG_HAS_ROLE",
    "PG_GET_USERBYID", "PG_GET_SERIAL_SEQUENCE", "INFORMATION_SCHEMA",
    "PG_GET_VIEWDEF", "PG_GET_TRIGGERDEF", "PG_TABLE_SIZE", "PG_RELATION_SIZE", "PG_INDEXES_SIZE", "PG_TOTAL_RELATION_SIZE",
    "PG_DATABASE_SIZE", "PG_SIZE_PRETTY", *OBJECT_TYPES, "PG_STAT_USER_TABLES", "PG_AUTHID", "PG_SHADOW",
}  # fmt: skip
"""Words that identify such a query. They include tables that do not exist here, so that the error contains their names."""
_MAY_ASK = re.compile(rf"\b(?:{'|'.join(sorted(_TRIGGERS))})\b", re.IGNORECASE)
_PIECES = ("pg_", "triplicate_", "reg", "_schema", "format_type", "_description", "has_")
"""Each trigger contains one of these."""
_INTEGERS = {"OID", "INT", "INTEGER", "INT2", "INT4", "INT8", "BIGINT", "SMALLINT", "XID"}
_TEXTS = {"TEXT", "VARCHAR", "NAME", "CHARACTER VARYING", "CHAR", "BPCHAR", "UNKNOWN"}
_NO_FUNCTIONS = {
    "AND", "OR", "NOT", "IN", "ANY", "ALL", "SOME", "SELECT", "WHERE", "ON", "THEN", "ELSE", "WHEN", "CASE", "AS", "BY", "FROM", "JOIN",
    "USING", "VALUES", "HAVING", "LIKE", "BETWEEN", "IS", "UNION", "LIMIT", "DISTINCT",
}  # fmt: skip
_OPERAND_ENDS = FROM_ENDS | {"AND", "OR", "ESCAPE", "IS", "THEN", "ELSE", "END", "WHEN", "AS", "ASC", "DESC"}
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
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "trim"}
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
    tables: frozenset[str] = frozenset()
    """The catalogue's tables from which it reads."""


def catalogue_query(statement: Statement) -> CatalogueQuery | None:
    """The rewritten query; None for a statement that does not query the catalogue.

    Raises:
        SqlError: 0A000 for a cast, a quantifier or a use of unnest() that no rule covers, or for a user's table in the same query; 42601
            for a syntax error; 42P01 for a table of the catalogue in schema public.
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
    parts = _with_commas(_with_subscripts(parts))
    check_size(parts)
    parts = expanded_arrays(parts)
    common = _common_names(parts)
    tables = _catalogue_tables(parts, common)
    names = result_names(parts)
    parts, users = _session_names(_privilege_roles(parts))
    parts, live = live_uses(parts, len(users), common)
    columns_of_tables = column_types(tables)
    parameters = parameter_oids(parts, columns_of_tables)
    for use in live:
        parameters |= use.parameter_oids
    columns = result_oids(parts, columns_of_tables)
    parts = _arrays(lateral_inlined(parts))
    parts = _shown_names(_casts(parts))
    parts = _subscripts(parts)
    parts = _quantified(parts)
    parts = unnested(parts)
    parts = _patterns(_expressions(parts))
    parts = _called_as_ours(named_values(parts))
    return CatalogueQuery(" ".join(part.text for part in parts), parameters, columns, names, users, live, tables)


def _plain(token: Token) -> MutableToken:
    """A token of the client, with a string as SQLite writes it."""
    return MutableToken(token.kind, token.text if token.is_plain else quote_string(token.string()))


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


def _with_commas(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``trim(trailing x from y)`` by ``rtrim(y, x)``, and ``substring(x from 1 for 2)`` by ``substring(x, 1, 2)``."""
    index = 0
    while index + 2 < len(parts):
        function = _TRIMS.get(parts[index + 2].upper)
        if parts[index].upper == "TRIM" and parts[index + 1].text == "(" and function is not None:
            end = closing(parts, index + 1)
            inside = parts[index + 3 : end]
            at = next((place for place, part in enumerate(inside) if part.upper == "FROM"), 0)
            characters = [*tokens_of(","), *inside[:at]] if at else []
            parts = [*parts[:index], *tokens_of(f"{function}("), *inside[at + 1 :], *characters, *parts[end:]]
        index += 1
    functions: list[str] = []
    for index, part in enumerate(parts):
        if part.text in ("(", "["):
            functions.append(parts[index - 1].upper if index else "")
        elif part.text in (")", "]"):
            functions[-1:] = []
        elif functions and functions[-1] == "SUBSTRING" and part.upper in ("FROM", "FOR"):
            parts[index] = MutableToken("operator", ",")
    return parts


def _without_schemas(parts: list[MutableToken]) -> list[MutableToken]:
    rewritten: list[MutableToken] = []
    index = 0
    while index < len(parts):
        part = parts[index]
        has_name = index + 2 < len(parts) and parts[index + 1].text == "." and parts[index + 2].kind in ("word", "quoted")
        if has_name and part.upper in ("PG_CATALOG", "PUBLIC"):
            name = parts[index + 2].text.strip('"').lower()
            if part.upper == "PUBLIC" and name in TABLES:
                raise SqlError("42P01", f'relation "public.{name}" does not exist', hint=f"{name} is a table of schema pg_catalog.")
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


def _catalogue_tables(parts: Sequence[MutableToken], common: set[str]) -> frozenset[str]:
    """The tables of the catalogue from which a query reads.

    Raises:
        SqlError: 0A000 for a user's table in the same query, because SQLite's rules would compare and sort its values.
    """
    places = table_places(parts)
    found: set[str] = set()
    for index, part in enumerate(parts):
        name = part.text.strip('"').lower()
        is_function = index + 1 < len(parts) and parts[index + 1].text == "(" and name not in LIVE_TABLES
        if part.kind not in ("word", "quoted") or is_function or part.upper in ("SELECT", "VALUES", "LATERAL", "ONLY", "UNNEST"):
            continue
        if index not in places or name in common:
            continue
        if name in TABLES:
            found.add(name)
        elif not name.startswith(("pg_", "information_schema", "sqlite_")):
            raise SqlError(
                "0A000",
                f'a query of the catalogue cannot read table "{part.text}" as well',
                hint="Query the catalogue and the table separately.",
            )
    return frozenset(found)


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
        arguments = arguments_of(parts, index)
        if len(arguments) == count - 1:
            arguments.insert(0, [])
        for number in roles:
            if number < len(arguments) and arguments[number]:
                arguments[number] = [*tokens_of("pg_role_named("), *arguments[number], *names, *tokens_of(")")]
        if not arguments[0]:
            arguments[0] = [MutableToken(_SUPPLIED, SessionName.ACTING.name)]
        inside = [token for argument in arguments for token in (MutableToken("operator", ","), *argument)][1:]
        parts = [*parts[: index + 1], *inside, *parts[closing(parts, index) :]]
    return parts


def _session_names(parts: list[MutableToken]) -> tuple[list[MutableToken], tuple[SessionName, ...]]:
    """Replace ``current_user`` and its kin, and what `_privilege_roles` supplies, by parameters. Give the names to tables of roles."""
    numbers = [int(part.text[1:]) for part in parts if part.kind == "parameter" and part.text[1:].isdigit()]
    first, users, rewritten = max(numbers, default=0) + 1, list[SessionName](), list[MutableToken]()
    places = table_places(parts)

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
        elif part.text.lower() in SESSION_TABLES and not opens and index in places:
            names = [marker(SessionName.SESSION), *tokens_of(","), marker(SessionName.LOGGED_IN)]
            rewritten += [part, *tokens_of("("), *names, *tokens_of(")")]
        else:
            rewritten.append(part)
    return rewritten, tuple(users)


def _arrays(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``ARRAY[…]`` and ``ARRAY(SELECT …)`` by calls."""
    index = 0
    while index + 1 < len(parts):
        if parts[index].upper == "ARRAY" and parts[index + 1].text == "[":
            end = closing(parts, index + 1)
            parts = [*parts[:index], *tokens_of("pg_array("), *parts[index + 2 : end], *tokens_of(")"), *parts[end + 1 :]]
        elif parts[index].upper == "ARRAY" and parts[index + 1].text == "(":
            end = closing(parts, index + 1)
            query = parts[index + 2 : end]
            whole = [*tokens_of('(WITH "_a"("v") AS ('), *query, *tokens_of(') SELECT pg_array_of("v") FROM "_a")')]
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
    if name in OBJECT_TYPES:
        return [MutableToken("word", f"pg_cast_{name.lower()}"), *tokens_of("("), *operand, *tokens_of(")")]
    first = next((part for part in operand if part.text != "("), operand[0])
    if operand[0].text == "(" and first.text.startswith("pg_cast_") and closing(operand, 0) == len(operand) - 1:
        return _cast(operand[1:-1], name)
    of_object = operand[0].text.removeprefix("pg_cast_") if operand[0].text.startswith("pg_cast_") else ""
    if name in _TEXTS:
        if of_object:
            return [MutableToken("word", f"pg_{of_object}_text"), *tokens_of("("), *operand, *tokens_of(")")]
        return [*tokens_of("CAST("), *operand, *tokens_of("AS TEXT)")]
    if name in _INTEGERS:
        return [*tokens_of("CAST("), *operand, *tokens_of("AS INTEGER)")]
    if name.endswith("[]"):
        return operand
    if name in ("BOOL", "BOOLEAN"):
        return [*tokens_of("("), *operand, *tokens_of(")")]
    raise SqlError("0A000", f"a cast to {name.lower()} is not available in a query of the catalogue")


def _called_as_ours(parts: list[MutableToken]) -> list[MutableToken]:
    """Call the functions that SQLite has under another name, or not at all, as users' statements call them."""
    for index, part in enumerate(parts[:-1]):
        name = "substr" if part.upper == "SUBSTRING" else part.text.lower()
        signature = FUNCTIONS.get(name) if part.kind == "word" and parts[index + 1].text == "(" else None
        if signature is not None and signature.sqlite and name not in AGGREGATES:
            parts[index] = MutableToken("word", signature.sqlite)
    return parts


def _shown_names(parts: list[MutableToken]) -> list[MutableToken]:
    """The names of the objects for results that are a cast to a type of objects, which are oids in expressions."""
    depth, index = 0, 0
    while index < len(parts):
        depth += (parts[index].text in ("(", "[")) - (parts[index].text in (")", "]"))
        if depth == 0 and parts[index].upper == "SELECT":
            items = [_with_shown_name(item) for item in select_items(parts, index)]
            listed = [token for item in items for token in (MutableToken("operator", ","), *item)][1:]
            start = index + 1 + (index + 1 < len(parts) and parts[index + 1].upper in ("DISTINCT", "ALL"))
            length = sum(map(len, select_items(parts, index))) + len(items) - 1
            parts = [*parts[:start], *listed, *parts[start + length :]]
            index = start + len(listed) - 1
        index += 1
    return parts


def _with_shown_name(item: list[MutableToken]) -> list[MutableToken]:
    if len(item) < 3 or not item[0].text.startswith("pg_cast_") or item[1].text != "(":
        return item
    end = closing(item, 1) + 1
    kind = item[0].text.removeprefix("pg_cast_")
    behind = item[end:]
    is_whole = not behind or behind[0].upper == "AS" or (len(behind) == 1 and behind[0].kind in ("word", "quoted"))
    return [MutableToken("word", f"pg_{kind}_text"), *tokens_of("("), *item[:end], *tokens_of(")"), *behind] if is_whole else item


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
            item = [
                *tokens_of("pg_array_item("),
                *parts[start:index],
                *tokens_of(","),
                *_subscripts(parts[index + 1 : end]),
                *tokens_of(")"),
            ]
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
            negation = tokens_of("NOT") if word == "ALL" else []
            operand, inside = parts[start : index - 1], parts[index + 2 : end]
            if inside and inside[0].upper in ("SELECT", "WITH"):
                replacement = [*operand, *negation, *tokens_of("IN ("), *inside, *tokens_of(")")]
            else:
                replacement = [*negation, *tokens_of("pg_array_has("), *inside, *tokens_of(","), *operand, *tokens_of(")")]
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
                replacement = [*tokens_of("GLOB triplicate_glob("), *pattern, *tokens_of(","), *escape, *tokens_of(")")]
            else:
                replacement = [*tokens_of("LIKE ("), *pattern, *tokens_of(") ESCAPE"), *escape]
            parts = [*parts[:index], *replacement, *parts[next_index:]]
            index += len(replacement)
        index += 1
    return parts


def _expressions(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``~`` and its kin by a call of the function that users' statements call."""
    index = 1
    while index + 1 < len(parts):
        operator = parts[index].text
        if parts[index].kind == "operator" and operator in ("~", "~*", "!~", "!~*"):
            start, end = _operand_start(parts, index - 1), _operand_end(parts, index + 1)
            call = tokens_of("NOT triplicate_matches(" if operator[0] == "!" else "triplicate_matches(")
            case = tokens_of(f", {int(operator[-1] == '*')})")
            whole = [*call, *parts[start:index], *tokens_of(","), *parts[index + 1 : end], *case]
            parts = [*parts[:start], *whole, *parts[end:]]
            index = start + len(whole)
        index += 1
    return parts


def _operand_end(parts: Sequence[MutableToken], start: int) -> int:
    """The index after an operand of LIKE: that of the first token that does not bind more tightly than LIKE."""
    depth = 0
    for index in range(start, len(parts)):
        is_end = parts[index].upper in _OPERAND_ENDS or parts[index].text in (")", "]", ",", "=", "<>", "!=", "<", ">", "<=", ">=")
        if depth == 0 and index > start and is_end:
            return index
        depth += (parts[index].text in ("(", "[")) - (parts[index].text in (")", "]"))
    return len(parts)
