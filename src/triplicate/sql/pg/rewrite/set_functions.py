"""Functions that return rows, in queries of the catalogue: they are rewritten to ``pg_unnest`` in FROM, SQLite's form of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.errors import SqlError
from triplicate.sql.catalogue.array_functions import EMPTY_SETS
from triplicate.sql.pg.rewrite.catalogue_types import select_items
from triplicate.sql.pg.rewrite.mutable_token import MutableToken, arguments_of, closing, tokens_of

FROM_ENDS = frozenset(("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "WINDOW", ";"))
_IN_LIST = {"UNNEST": "", "GENERATE_SUBSCRIPTS": "subscript", "PG_POSITION": "ordinality"}
"""Functions of rows in a select list, with the column of ``pg_unnest`` that is their value; empty for the elements."""
_EXPANDED = '"information_schema._pg_expandarray"'
_SETS = frozenset((*_IN_LIST, *map(str.upper, EMPTY_SETS), "GENERATE_SERIES", "LATERAL"))
DEPTH_MAX = 100
SETS_MAX = 50
"""Upper bound on the functions of rows, and uses of LATERAL, in one query."""
TOKENS_MAX = 100_000
"""Upper bound on the tokens of a query whose LATERAL is replaced: each use of a column is its expression then."""
_LIST_ENDS = FROM_ENDS | {"FROM"}
_AGGREGATES = frozenset(("COUNT", "SUM", "MIN", "MAX", "AVG", "BOOL_AND", "BOOL_OR", "STRING_AGG", "ARRAY_AGG"))


def check_size(parts: Sequence[MutableToken]) -> None:
    """Raises SqlError 54001: a query is nested too deeply, or has too many functions of rows, each of which is rewritten in time that grows
    with the query."""
    depth = 0
    for part in parts:
        depth += (part.text in ("(", "[")) - (part.text in (")", "]"))
        if depth > DEPTH_MAX:
            raise SqlError("54001", f"a query of the catalogue may be nested {DEPTH_MAX} levels deep")
    found = sum(part.upper in _SETS or part.text == _EXPANDED for part in parts)
    if found > SETS_MAX:
        raise SqlError("54001", f"a query of the catalogue may have {SETS_MAX} functions of rows, this one has {found}")


def unnested(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``unnest`` and ``generate_subscripts`` in a select list, and functions of rows in FROM, by ``pg_unnest`` in FROM."""
    parts = _as_unnest(parts)
    index = 0
    while index + 1 < len(parts):
        if parts[index].upper in _IN_LIST and parts[index + 1].text == "(":
            select, in_from = _clause_of(parts, index)
            parts = _unnest_in_from(parts, index, select) if in_from else _unnest_in_list(parts, select)
        index += 1
    return parts


def expanded_arrays(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace ``information_schema._pg_expandarray(a)``, which pgjdbc asks for: the elements of an array and their positions.

    ``(f(a)).n`` becomes ``pg_position(a)``. ``f(a) AS keys`` becomes two columns, ``"keys.x"`` and ``"keys.n"``, and ``(q.keys).x`` the
    first of them.
    """
    names: set[str] = set()
    index = 0
    while index + 1 < len(parts):
        if parts[index].text == _EXPANDED and parts[index + 1].text == "(":
            end = closing(parts, index + 1) + 1
            array = parts[index + 1 : end]
            following = [part.text.lower() for part in parts[end : end + 3]]
            if index and parts[index - 1].text == "(" and following[:2] == [")", "."] and following[2:] in (["x"], ["n"]):
                function = "unnest" if following[2] == "x" else "pg_position"
                parts = [*parts[: index - 1], *tokens_of(function), *array, *parts[end + 3 :]]
            elif following[:1] == ["as"] and len(following) > 1:
                name = _name(parts[end + 1])
                names.add(name)
                values = [*tokens_of("unnest"), *array, *tokens_of(f'AS "{name}.x", pg_position'), *array, *tokens_of(f'AS "{name}.n"')]
                parts = [*parts[:index], *values, *parts[end + 2 :]]
        index += 1
    for index in range(len(parts) - 1, 1, -1):
        if parts[index].text.lower() in ("x", "n") and [part.text for part in parts[index - 2 : index]] == [")", "."]:
            begin = index - 3
            while begin and parts[begin].text != "(":
                begin -= 1
            if _name(parts[index - 3]) in names and index - 3 - begin in (1, 3):
                column = MutableToken("quoted", f'"{_name(parts[index - 3])}.{parts[index].text.lower()}"')
                parts = [*parts[:begin], *parts[begin + 1 : index - 3], column, *parts[index + 1 :]]
    return parts


def _as_unnest(parts: list[MutableToken]) -> list[MutableToken]:
    """Replace the other functions of rows by ``unnest`` of an array: ``unnest(pg_series(1, 3)) AS s(s)``."""
    index = 0
    while index + 1 < len(parts):
        name = parts[index].text.lower()
        if parts[index].kind == "word" and parts[index + 1].text == "(" and (name in EMPTY_SETS or name == "generate_series"):
            end = closing(parts, index + 1) + 1
            function = "pg_series" if name == "generate_series" else name
            call = [*tokens_of(f"unnest({function}"), *parts[index + 1 : end], *tokens_of(")")]
            alias = end + (end < len(parts) and parts[end].upper == "AS")
            is_named = alias < len(parts) and parts[alias].kind in ("word", "quoted") and parts[alias].upper not in FROM_ENDS
            named = parts[end : alias + 1] if is_named else tokens_of(f"AS {name}")
            columns: list[MutableToken] = []
            if len(EMPTY_SETS.get(name, ())) > 1:
                columns = [*named, *tokens_of(f"({', '.join(EMPTY_SETS[name])})")]
                end = alias + 1 if is_named else end
            parts = [*parts[:index], *call, *columns, *parts[end:]]
            index += len(call) + len(columns)
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


def _unnest_in_list(parts: list[MutableToken], select: int) -> list[MutableToken]:
    arrays: list[list[MutableToken]] = []
    rewritten: list[MutableToken] = list(parts[: select + 1])
    index, depth = select + 1, 0
    while index < len(parts) and not (depth == 0 and (parts[index].upper in _LIST_ENDS or parts[index].text == ")")):
        depth += (parts[index].text in ("(", "[")) - (parts[index].text in (")", "]"))
        word = parts[index].upper
        if depth == 0 and word in _IN_LIST and parts[index + 1].text == "(":
            array = arguments_of(parts, index + 1)[0]
            number = next((at for at, other in enumerate(arrays) if _text(other) == _text(array)), None)
            if number is None:
                number = len(arrays)
                arrays.append(array)
            rewritten += tokens_of(f'"_u".{_IN_LIST[word] or f"value{number + 1}"}')
            index = closing(parts, index + 1) + 1
            continue
        rewritten.append(parts[index])
        index += 1
    call = tokens_of("pg_unnest(")
    for array in arrays:
        call += [*array, *tokens_of(",")]
    call = [*call[:-1], *tokens_of(') AS "_u"')]
    if index >= len(parts) or parts[index].upper != "FROM":
        return [*rewritten, *tokens_of("FROM"), *call, *parts[index:]]
    end = _from_end(parts, index)
    return [*rewritten, *parts[index:end], *tokens_of(","), *call, *parts[end:]]


def _from_end(parts: Sequence[MutableToken], start: int) -> int:
    depth = 0
    for index in range(start, len(parts)):
        if depth == 0 and (parts[index].upper in FROM_ENDS or parts[index].text == ")"):
            return index
        depth += (parts[index].text in ("(", "[")) - (parts[index].text in (")", "]"))
    return len(parts)


def _unnest_in_from(parts: list[MutableToken], index: int, select: int) -> list[MutableToken]:
    end = closing(parts, index + 1) + 1
    call = [*tokens_of("pg_unnest"), *parts[index + 1 : end]]
    has_ordinality = [part.upper for part in parts[end : end + 2]] == ["WITH", "ORDINALITY"]
    end += 2 if has_ordinality else 0
    end += end < len(parts) and parts[end].upper == "AS"
    alias = parts[end] if end < len(parts) and parts[end].kind in ("word", "quoted") and parts[end].upper not in FROM_ENDS else None
    if alias is None:
        raise SqlError("0A000", "unnest() in FROM requires a name: unnest(x) AS t(a)")
    end += 1
    names = [_name(alias)]
    if end < len(parts) and parts[end].text == "(":
        names = [_name(part) for argument in arguments_of(parts, end) for part in argument]
        end = closing(parts, end) + 1
    columns = [f"value{number + 1}" for number in range(len(names))]
    if has_ordinality and names:
        columns[-1] = "ordinality"
    renamed = dict(zip(names, columns, strict=True))
    stop = _query_end(parts, select)
    before, after = _renamed(parts[select:index], alias, renamed), _renamed(parts[end:stop], alias, renamed)
    items = select_items(before, 0)
    if select and parts[select - 1].text == "(" and any(item and item[-1].text == "*" for item in items):
        # The query around this one knows the columns by their names.
        named = [token for name, column in renamed.items() for token in (*tokens_of(","), alias, *tokens_of(f'.{column} AS "{name}"'))]
        at = _from_of(before)
        before = [*before[:at], *named, *before[at:]]
    return [*parts[:select], *before, *call, *tokens_of("AS"), alias, *after, *parts[stop:]]


def _name(part: MutableToken) -> str:
    return part.text.strip('"').lower()


def _query_end(parts: Sequence[MutableToken], select: int) -> int:
    """The index behind the query that begins with the SELECT at an index."""
    depth = 0
    for index in range(select, len(parts)):
        depth += (parts[index].text in ("(", "[")) - (parts[index].text in (")", "]"))
        if depth < 0:
            return index
    return len(parts)


def _renamed(parts: Sequence[MutableToken], alias: MutableToken, columns: dict[str, str]) -> list[MutableToken]:
    """Tokens of a query with the columns of ``pg_unnest`` for those of an alias. An item of its select list keeps its name."""
    rewritten: list[MutableToken] = []
    depth = 0
    for index, part in enumerate(parts):
        depth += (part.text in ("(", "[")) - (part.text in (")", "]"))
        following = parts[index + 1].upper if index + 1 < len(parts) else ""
        is_qualified = index > 1 and parts[index - 1].text == "."
        is_own = not is_qualified or _name(parts[index - 2]) == _name(alias)
        if part.kind not in ("word", "quoted") or _name(part) not in columns or not is_own or following in (".", "("):
            rewritten.append(part)
            continue
        before = parts[index - 3 if is_qualified else index - 1].upper if index > 2 * is_qualified else ""
        if before == "AS":
            rewritten.append(part)
            continue
        column = MutableToken("word", columns[_name(part)])
        rewritten += [column] if is_qualified else [alias, *tokens_of("."), column]
        if depth == 0 and before in ("SELECT", "DISTINCT", ",") and following in (",", "FROM"):
            rewritten += [*tokens_of("AS"), part]
    return rewritten


def lateral_inlined(parts: list[MutableToken]) -> list[MutableToken]:
    """Put the expressions of ``LATERAL (SELECT sum(…) AS a FROM …) t`` for ``t.a``. SQLite has no LATERAL.

    Raises:
        SqlError: 0A000 for a query that may have none or several rows.
    """
    index = 0
    while index + 1 < len(parts):
        if parts[index].upper != "LATERAL" or parts[index + 1].text != "(":
            index += 1
            continue
        end = closing(parts, index + 1)
        inner = parts[index + 2 : end]
        alias = end + 1 + (end + 1 < len(parts) and parts[end + 1].upper == "AS")
        items = [item for item in select_items(inner, 0) if len(item) > 2 and item[-2].upper == "AS"]
        begin = _from_of(inner)
        has_one_row = any(part.upper in _AGGREGATES for item in items for part in item)
        if parts[index - 1].text != "," or alias >= len(parts) or not has_one_row or any(part.upper == "GROUP" for part in inner[begin:]):
            raise SqlError("0A000", "LATERAL is available for a query of aggregates without GROUP BY, behind a comma")
        values = {_name(item[-1]): [*tokens_of("(SELECT"), *item[:-2], *inner[begin:], *tokens_of(")")] for item in items}
        parts = _with_values([*parts[: index - 1], *parts[alias + 1 :]], _name(parts[alias]), values)
    return parts


def _with_values(parts: Sequence[MutableToken], alias: str, values: dict[str, list[MutableToken]]) -> list[MutableToken]:
    rewritten: list[MutableToken] = []
    index = 0
    while index < len(parts):
        is_use = index + 2 < len(parts) and parts[index + 1].text == "." and _name(parts[index]) == alias
        value = values.get(_name(parts[index + 2])) if is_use else None
        rewritten += [parts[index]] if value is None else value
        index += 1 if value is None else 3
        if value is not None and len(rewritten) > TOKENS_MAX:
            raise SqlError("54001", f"a query of the catalogue with LATERAL may have {TOKENS_MAX} tokens when it is replaced")
    return rewritten


def _from_of(parts: Sequence[MutableToken]) -> int:
    depth = 0
    for index, part in enumerate(parts):
        depth += (part.text in ("(", "[")) - (part.text in (")", "]"))
        if depth == 0 and part.upper == "FROM":
            return index
    return len(parts)


def named_values(parts: list[MutableToken]) -> list[MutableToken]:
    """Rewrite ``(VALUES …) AS t(a, b)``, because SQLite accepts no column names after the alias."""
    index = 0
    while index + 1 < len(parts):
        if parts[index].text == "(" and parts[index + 1].upper == "VALUES":
            end = closing(parts, index)
            alias = end + 1 + (end + 1 < len(parts) and parts[end + 1].upper == "AS")
            if alias + 1 < len(parts) and parts[alias].kind in ("word", "quoted") and parts[alias + 1].text == "(":
                names = [argument[0] for argument in arguments_of(parts, alias + 1) if argument]
                replacement = tokens_of("(SELECT")
                for number, name in enumerate(names, start=1):
                    replacement += [*tokens_of(f"{',' if number > 1 else ''} column{number} AS"), name]
                replacement += [*tokens_of("FROM"), *parts[index : end + 1], *tokens_of(")"), parts[alias]]
                parts = [*parts[:index], *replacement, *parts[closing(parts, alias + 1) + 1 :]]
                index += len(replacement)
        index += 1
    return parts


def _text(parts: Sequence[MutableToken]) -> str:
    return " ".join(part.text for part in parts)
