"""Types of parameters and results in queries of the catalogue, from the casts, the columns' names and the functions in them. Pure.

Most columns of the catalogue have unique names (``relname``, ``conrelid``). One with several types (``tls``, ``key``) has the type of
the tables from which the query reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from triplicate.errors import SqlError
from triplicate.sql.catalogue.relations import TABLES
from triplicate.sql.catalogue.type_names import TYPES, type_named
from triplicate.sql.core.interface import Column
from triplicate.sql.pg.values import types


class CatalogueToken(Protocol):
    """A token of a query."""

    kind: str
    text: str
    upper: str


CHAR1, NAME, INT2VECTOR, INT2_ARRAY, TEXT_ARRAY = 18, 19, 22, 1005, 1009
"""Types that only the catalogue's columns have."""
_KINDS = {
    "oid": types.OID, "name": NAME, "integer": types.INT8, "bigint": types.INT8, "boolean": types.BOOL, "char1": CHAR1,
    "text": types.TEXT, "real": types.FLOAT8, "int2vector": INT2VECTOR, "int2[]": INT2_ARRAY, "text[]": TEXT_ARRAY,
    "timestamptz": types.TIMESTAMPTZ, "jsonb": types.JSONB, "regproc": types.TEXT, "oidvector": 30, "oid[]": 1028,
    "regtype": types.TEXT, "anyarray": types.TEXT,
}  # fmt: skip
COLUMNS = {table: {name: _KINDS[kind] for name, kind in map(str.split, columns.split(","))} for table, columns in TABLES.items()}
"""Type of each column of the catalogue, by its table and its name."""


def column_types(tables: Iterable[str]) -> Mapping[str, int]:
    """Type of each column of these tables of the catalogue, by its name. A name that has several types in them is left out."""
    found: dict[str, set[int]] = {}
    for table in tables:
        for name, oid in COLUMNS[table].items():
            found.setdefault(name, set()).add(oid)
    return {
        name: types.TEXT if len(oids) > 1 else next(iter(oids))
        for name, oids in found.items()
        if len(oids) == 1 or oids == {NAME, types.TEXT}
    }


def is_catalogue_table(name: str, columns: Sequence[str]) -> bool:
    """Whether a table of these columns is the catalogue's table of this name, and not a user's."""
    return [column.split()[0] for column in TABLES[name].split(",")] == list(columns)


def column_oid(column: Column) -> int | None:
    """The type of a result's column that is a column of a table; None for an expression.

    Raises:
        SqlError: 42703 for the number of a row, which SQLite also calls oid where a table has no such column.
    """
    if column.table in TABLES and column.origin is not None:
        if column.origin.lower() == "rowid":
            raise SqlError("42703", f'column "oid" of "{column.table}" does not exist')
        return types.OID if column.origin == "tableoid" else COLUMNS[column.table][column.origin]
    return types.oid_of_declared(column.declared_type) if column.declared_type else None


_NAMED_OBJECTS = frozenset(("REGPROC", "REGPROCEDURE", "REGOPER", "REGOPERATOR", "REGCONFIG", "REGDICTIONARY"))
"""Types of objects that are names here, because the catalogue does not list the objects."""
OBJECT_TYPES = frozenset(("REGCLASS", "REGTYPE", "REGNAMESPACE", "REGROLE")) | _NAMED_OBJECTS
_BOOL_CALLS = {
    "PG_TABLE_IS_VISIBLE", "PG_TYPE_IS_VISIBLE", "PG_COLLATION_IS_VISIBLE", "BOOL_AND", "BOOL_OR", "EVERY", "HAS_TABLE_PRIVILEGE",
    "HAS_SCHEMA_PRIVILEGE", "HAS_DATABASE_PRIVILEGE", "HAS_COLUMN_PRIVILEGE", "HAS_ANY_COLUMN_PRIVILEGE", "PG_HAS_ROLE", "EXISTS",
    "PG_IS_IN_RECOVERY", "PG_RELATION_IS_PUBLISHABLE", *(f"PG_{kind}_IS_VISIBLE" for kind in (
        "CONVERSION", "FUNCTION", "OPCLASS", "OPERATOR", "OPFAMILY", "STATISTICS_OBJ", "TS_CONFIG", "TS_DICT", "TS_PARSER", "TS_TEMPLATE")),
}  # fmt: skip
_OID_CALLS = {"TO_REGCLASS", "TO_REGTYPE"}
_INT_CALLS = {
    "COUNT", "GENERATE_SUBSCRIPTS", "PG_POSITION", "ROW_NUMBER", "LENGTH", "PG_TABLE_SIZE", "PG_RELATION_SIZE", "PG_INDEXES_SIZE",
    "PG_TOTAL_RELATION_SIZE", "PG_DATABASE_SIZE", "PG_TABLESPACE_SIZE", "ARRAY_UPPER", "ARRAY_LENGTH", "PG_CHAR_TO_ENCODING",
}  # fmt: skip
_SAME_CALLS = {"MIN", "MAX", "COALESCE", "UNNEST", "NULLIF"}
_BOOL_WORDS = {"=", "<>", "!=", "<", ">", "<=", ">=", "AND", "OR", "NOT", "IN", "IS", "LIKE", "ILIKE", "BETWEEN", "~", "!~", "~*", "!~*"}
_LIST_ENDS = {"FROM", "WHERE", "GROUP", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "HAVING"}
_DEEPEST = 12
SomeToken = TypeVar("SomeToken", bound=CatalogueToken)


@dataclass(frozen=True, slots=True)
class _Named:
    """The meanings of names.

    Args:
        items: the expressions of ``expression AS name`` in any select list, the outer ones first.
        columns: the type of each column, as `column_types` has it.
    """

    items: dict[str, list[list[CatalogueToken]]]
    columns: Mapping[str, int]


def parameter_oids(parts: Sequence[CatalogueToken], columns: Mapping[str, int]) -> dict[int, int]:
    """Maps the number of a parameter to its type's oid: from a cast of it, or from the column that it is compared with.

    Args:
        columns: see `column_types`.
    """
    oids: dict[int, int] = {}
    for index, part in enumerate(parts):
        if part.kind != "parameter" or not part.text[1:].isdigit():
            continue
        number = int(part.text[1:])
        after = parts[index + 1].upper if index + 1 < len(parts) else ""
        oid = (
            _type_at(parts, index + 2) if after == "::" or (after == "AS" and _in_cast(parts, index)) else _compared(parts, index, columns)
        )
        if oid is not None:
            oids.setdefault(number, types.TEXT if oid in (NAME, CHAR1) else oid)
    return oids


def _in_cast(parts: Sequence[CatalogueToken], index: int) -> bool:
    return index >= 2 and parts[index - 1].text == "(" and parts[index - 2].upper == "CAST"


def _type_at(parts: Sequence[CatalogueToken], start: int) -> int | None:
    words: list[str] = []
    at = start
    while at < len(parts) and parts[at].kind in ("word", "quoted") and len(words) < 4:
        if words and parts[at].upper not in ("VARYING", "PRECISION", "WITH", "WITHOUT", "TIME", "ZONE"):
            break
        words.append(parts[at].text)
        at += 1
    is_array = at + 1 < len(parts) and parts[at].text == "[" and parts[at + 1].text == "]"
    name = " ".join(words)
    if name.upper() in OBJECT_TYPES:
        return types.TEXT  # The parameter is a name.
    return type_named(name + ("[]" if is_array else ""))


def _compared(parts: Sequence[CatalogueToken], index: int, columns: Mapping[str, int]) -> int | None:
    """The type of the column that the parameter is compared with, directly or as an element of a list."""
    at = index - 1
    while at >= 0 and (
        parts[at].text in ("(", ",", "[", "=", "<>", "!=", "<", ">", "ANY", "any")
        or parts[at].upper in ("IN", "NOT", "ARRAY")
        or parts[at].kind == "parameter"
    ):
        at -= 1
    return columns.get(parts[at].text.strip('"').lower()) if 0 <= at < index - 1 else None


# Results.


def result_oids(parts: Sequence[CatalogueToken], columns: Mapping[str, int]) -> tuple[int | None, ...]:
    """The type of each item of the outer select list; empty if the list contains a star.

    Args:
        columns: see `column_types`.
    """
    items = select_items(parts, main_select(parts))
    if any(item and item[-1].text == "*" for item in items):
        return ()
    named = _Named(_named_items(parts), columns)
    return tuple(_expression(item, named, 0) for item in items)


def main_select(parts: Sequence[CatalogueToken]) -> int:
    """The index of the SELECT of the whole query."""
    depth = 0
    for index, part in enumerate(parts):
        if depth == 0 and part.upper == "SELECT":
            return index
        depth += (part.text in ("(", "[")) - (part.text in (")", "]"))
    return 0


def select_items(parts: Sequence[SomeToken], select: int) -> list[list[SomeToken]]:
    """The tokens of each item of the select list behind the SELECT at an index."""
    items: list[list[SomeToken]] = [[]]
    depth = 0
    start = select + 1
    if start < len(parts) and parts[start].upper in ("DISTINCT", "ALL"):
        start += 1
    for part in parts[start:]:
        depth += (part.text in ("(", "[")) - (part.text in (")", "]"))
        if depth < 0 or (depth == 0 and part.upper in _LIST_ENDS):
            break
        if depth == 0 and part.text == ",":
            items.append([])
        else:
            items[-1].append(part)
    return items


def _named_items(parts: Sequence[CatalogueToken]) -> dict[str, list[list[CatalogueToken]]]:
    named: dict[str, list[list[CatalogueToken]]] = {}
    for index, part in enumerate(parts):
        if part.upper == "SELECT":
            for item in select_items(parts, index):
                if len(item) > 2 and item[-2].upper == "AS":
                    name = item[-1].text.strip('"').lower()
                    is_itself = len(item) in (3, 5) and item[-3].text.strip('"').lower() == name
                    if not is_itself:
                        named.setdefault(name, []).append(item[:-2])
    return named


def _expression(item: Sequence[CatalogueToken], named: _Named, depth: int) -> int | None:
    if len(item) > 2 and item[-2].upper == "AS":
        item = item[:-2]
    if not item or depth > _DEEPEST:
        return None
    while len(item) > 2 and item[0].text == "(" and _closes_at_end(item):
        item = item[1:-1]
        if item[0].upper == "SELECT":
            return _expression(select_items(item, 0)[0], named, depth + 1)
    top = _top(item)
    if item[0].upper == "CASE":
        return _case(item, named, depth) if any(part.upper == "THEN" for part in top) else None
    if item[0].upper in ("NOT", "EXISTS") or any(part.upper in _BOOL_WORDS for part in top):
        return types.BOOL
    if any(part.text == "||" for part in top):
        return types.TEXT
    if "::" in [part.text for part in top]:
        operator = max(index for index, part in enumerate(item) if part.text == "::")
        return _cast_oid(item, operator + 1, depth)
    return _operand(item, named, depth)


def _operand(item: Sequence[CatalogueToken], named: _Named, depth: int) -> int | None:
    first = item[0]
    if item[-1].text == "]" and first.upper != "ARRAY":
        opening = max(index for index, part in enumerate(item) if part.text == "[")
        return types.TEXT if _expression(item[:opening], named, depth + 1) == TEXT_ARRAY else types.INT8
    if len(item) > 2 and item[1].text == "(" and _closes_at_end(item[1:]):
        return _call(item, named, depth)
    if first.kind in ("word", "quoted") and all(part.kind in ("word", "quoted") or part.text == "." for part in item):
        name = item[-1].text.strip('"').lower()
        if named.items.get(name):
            # Within the query of a name's expression, the same name refers to a nested query.
            expression, *inner = named.items[name]
            return _expression(expression, _Named({**named.items, name: inner}, named.columns), depth + 1)
        return named.columns.get(name)
    if first.kind == "number":
        return types.INT8
    return types.TEXT if first.kind == "string" else None


def _call(item: Sequence[CatalogueToken], named: _Named, depth: int) -> int | None:
    name = item[0].upper
    inside = item[2:-1]
    if name == "CAST":
        as_index = max((index for index, part in enumerate(inside) if part.upper == "AS"), default=0)
        return _cast_oid(inside, as_index + 1, depth)
    if name in _BOOL_CALLS:
        return types.BOOL
    if name in _OID_CALLS:
        return types.OID
    if name in _INT_CALLS:
        return types.INT8
    if name in _SAME_CALLS:
        argument: list[CatalogueToken] = []
        level = 0
        for part in inside:
            level += (part.text == "(") - (part.text == ")")
            if level == 0 and part.text == ",":
                break
            argument.append(part)
        return _expression(argument, named, depth + 1)
    if name in ("ARRAY_AGG", "ARRAY"):
        return _array_of(_aggregated(inside, named, depth))
    if name == "CURRENT_SCHEMAS":
        return TEXT_ARRAY
    return types.TEXT


def _aggregated(inside: Sequence[CatalogueToken], named: _Named, depth: int) -> int | None:
    if inside and inside[0].upper == "SELECT":
        return _expression(select_items(inside, 0)[0], named, depth + 1)
    level, end = 0, len(inside)
    for index, part in enumerate(inside):
        level += (part.text == "(") - (part.text == ")")
        if level == 0 and part.upper == "ORDER":
            end = index
            break
    return _expression(inside[:end], named, depth + 1)


def _array_of(element: int | None) -> int:
    facts = TYPES.get(element or types.TEXT)
    # Drivers have the type text[] and do not have name[].
    return TEXT_ARRAY if facts is None or element in (NAME, CHAR1) or not facts.array else facts.array


def _cast_oid(parts: Sequence[CatalogueToken], start: int, depth: int) -> int | None:
    """The type of a cast. One to a type of objects is an oid in expressions, and the object's name as a result."""
    oid = _type_at(parts, start)
    word = parts[start].upper if start < len(parts) else ""
    return oid if word not in OBJECT_TYPES else types.TEXT if depth == 0 or word in _NAMED_OBJECTS else types.OID


def _case(item: Sequence[CatalogueToken], named: _Named, depth: int) -> int | None:
    """The type of the first branch whose type is determined."""
    level, cases = 0, 0
    branch: list[CatalogueToken] | None = None
    for part in item:
        level += (part.text == "(") - (part.text == ")")
        cases += (part.upper == "CASE") - (part.upper == "END")
        ends = level == 0 and ((cases == 1 and part.upper in ("WHEN", "ELSE")) or cases == 0)
        if branch is not None and ends:
            oid = _expression(branch, named, depth + 1)
            if oid is not None:
                return oid
            branch = None
        if level == 0 and cases == 1 and part.upper in ("THEN", "ELSE"):
            branch = []
        elif branch is not None:
            branch.append(part)
    return None


def _top(item: Sequence[CatalogueToken]) -> list[CatalogueToken]:
    top: list[CatalogueToken] = []
    level = 0
    for part in item:
        level -= part.text in (")", "]")
        if level == 0:
            top.append(part)
        level += part.text in ("(", "[")
    return top


def _closes_at_end(item: Sequence[CatalogueToken]) -> bool:
    """Whether the first bracket closes at the end of the item."""
    level = 0
    for index, part in enumerate(item):
        level += (part.text in ("(", "[")) - (part.text in (")", "]"))
        if level == 0:
            return index == len(item) - 1
    return False
