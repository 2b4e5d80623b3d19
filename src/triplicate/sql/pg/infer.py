"""Types of parameters and of result expressions, told from the statement's tokens and the tables' declared types. Pure.

A PostgreSQL client wants types before anything runs; SQLite has none to give but the columns'. The rules are few and documented:
an open parameter gets the declared type of the column that it is inserted into, assigned to or compared with, LIMIT and OFFSET
are integers, anything else is text; an expression's type is told by a table of functions and operators, or stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triplicate.sql.pg import types
from triplicate.sql.pg.lexer import Token, tokenize

Tables = Mapping[str, Sequence[tuple[str, str]]]
"""Lower-case table name to (column, declared type) in order."""

_COMPARISONS = {"=", "==", "<", ">", "<=", ">=", "<>", "!=", "LIKE", "GLOB", "IS", "IN", "BETWEEN", "NOT", "AND", "REGEXP", "MATCH"}
_ARITHMETIC = {"+", "-", "*", "/", "%"}
_CLAUSES = {
    "WHERE", "GROUP", "ORDER", "LIMIT", "HAVING", "WINDOW", "SET", "VALUES", "SELECT", "ON", "USING", "RETURNING", "DEFAULT", "UNION",
}  # fmt: skip
_LIST_ENDS = {"FROM", "WHERE", "GROUP", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "HAVING"}
_PREDICATES = {"=", "==", "<", ">", "<=", ">=", "<>", "!=", "AND", "OR", "IN", "LIKE", "IS", "BETWEEN"}
_JOINS = {"LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "NATURAL", "JOIN", "INDEXED", "NOT", "EXCEPT", "INTERSECT"}

_INT_FUNCTIONS = {
    "COUNT", "LENGTH", "OCTET_LENGTH", "INSTR", "UNICODE", "RANDOM", "CHANGES", "TOTAL_CHANGES", "LAST_INSERT_ROWID", "ROW_NUMBER",
    "RANK", "DENSE_RANK", "NTILE", "SIGN", "JSON_ARRAY_LENGTH", "UNIXEPOCH", "PG_CURRENT_XACT_ID", "TXID_CURRENT", "PG_BACKEND_PID",
}  # fmt: skip
_FLOAT_FUNCTIONS = {
    "AVG", "TOTAL", "ROUND", "JULIANDAY", "PERCENT_RANK", "CUME_DIST", "SQRT", "EXP", "LN", "LOG", "LOG2", "LOG10", "POW", "POWER", "PI",
    "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "ATAN2", "DEGREES", "RADIANS",
}  # fmt: skip
_TEXT_FUNCTIONS = {
    "LOWER", "UPPER", "SUBSTR", "SUBSTRING", "TRIM", "LTRIM", "RTRIM", "REPLACE", "PRINTF", "FORMAT", "HEX", "QUOTE", "CHAR", "TYPEOF",
    "GROUP_CONCAT", "STRING_AGG", "DATE", "TIME", "DATETIME", "STRFTIME", "TIMEDIFF", "JSON", "JSON_OBJECT", "JSON_ARRAY",
    "JSON_GROUP_ARRAY", "JSON_GROUP_OBJECT", "JSON_TYPE", "SQLITE_VERSION", "VERSION",
    "CURRENT_DATABASE", "CURRENT_SCHEMA", "PG_XACT_STATUS", "CONCAT",
    "CONCAT_WS", "CURRENT_SETTING",
}  # fmt: skip
_BLOB_FUNCTIONS = {"RANDOMBLOB", "ZEROBLOB", "UNHEX"}
_BOOL_FUNCTIONS = {"PG_IS_IN_RECOVERY", "PG_ADVISORY_UNLOCK_ALL"}
_SAME_AS_ARGUMENT = {"MAX", "MIN", "COALESCE", "IFNULL", "NULLIF", "ABS", "SUM", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"}


def table_names(tokens: Sequence[Token]) -> dict[str, str]:
    """Every table the statement names after FROM, JOIN, INTO or UPDATE: alias or name in lower case to the table's name."""
    found: dict[str, str] = {}
    in_from = False
    for index, token in enumerate(tokens):
        word = token.upper
        if word in ("FROM", "JOIN", "INTO", "UPDATE"):
            in_from = True
        elif word in _CLAUSES or token.text == "(" or token.text == ")":
            in_from = False
            continue
        elif not (in_from and token.text == ","):
            continue
        at = index + 1
        if word == "UPDATE" and at + 1 < len(tokens) and tokens[at].upper == "OR":
            at += 2
        if at + 2 < len(tokens) and tokens[at + 1].text == "." and tokens[at].name:
            at += 2
        name = tokens[at].name if at < len(tokens) else None
        if name is None or tokens[at].upper in _CLAUSES:
            continue
        found[name.lower()] = name
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        if after is not None and after.upper == "AS" and at + 2 < len(tokens):
            after = tokens[at + 2]
        if after is not None and after.name and after.upper not in _CLAUSES | _JOINS | {"AS"}:
            found[after.name.lower()] = name
    return found


class _Scope:
    """Looks up the declared type of a column written anywhere in the statement."""

    def __init__(self, tokens: Sequence[Token], tables: Tables) -> None:
        self._aliases = table_names(tokens)
        self._tables = tables

    def columns(self, table: str) -> Sequence[tuple[str, str]]:
        return self._tables.get(self._aliases.get(table.lower(), table).lower(), ())

    def declared(self, tokens: Sequence[Token], end: int) -> str | None:
        """Declared type of the column reference whose last token is at `end`; None where there is none, as SQLite allows."""
        name = tokens[end].name if 0 <= end < len(tokens) else None
        if name is None:
            return None
        owner = tokens[end - 2].name if end >= 2 and tokens[end - 1].text == "." else None
        candidates = list(self._aliases) if owner is None else [owner]
        for table in candidates:
            for column, declared in self.columns(table):
                if column.lower() == name.lower():
                    return declared or None
            if name.lower() in ("rowid", "_rowid_", "oid") and self.columns(table):
                return "INTEGER"
        return None


def parameter_types(sql: str, tables: Tables) -> dict[str, int]:
    """Type oids of the parameters, by the text of the parameter (``$1``); parameters of unknown type are left out (text).

    Args:
        sql: one statement.
        tables: the columns of every table that `table_names` found and that exists.
    """
    tokens = tokenize(sql)
    scope = _Scope(tokens, tables)
    found: dict[str, int] = {}
    for at, oid in _insert_positions(tokens, scope).items():
        found.setdefault(tokens[at].text, oid)
    for at, token in enumerate(tokens):
        if token.kind == "parameter" and token.text not in found:
            told = _type_at(tokens, at, scope)
            if told is not None:
                found[token.text] = told
    return found


def _insert_positions(tokens: Sequence[Token], scope: _Scope) -> dict[int, int]:
    """Parameters that stand alone in a VALUES list, by token index, with the type of the column at their place."""
    places: dict[int, int] = {}
    into = next((i for i, token in enumerate(tokens) if token.upper == "INTO"), None)
    if into is None:
        return places
    at = into + 1
    if at + 2 < len(tokens) and tokens[at + 1].text == ".":
        at += 2
    table = tokens[at].name if at < len(tokens) else None
    if table is None:
        return places
    columns = [(name.lower(), declared) for name, declared in scope.columns(table)]
    declared_by_name = dict(columns)
    types_in_order = [declared for _, declared in columns]
    at += 1
    if at + 1 < len(tokens) and tokens[at].upper == "AS":
        at += 2
    if at < len(tokens) and tokens[at].text == "(":
        types_in_order = []
        while at < len(tokens) and tokens[at].text != ")":
            if name := tokens[at].name:
                types_in_order.append(declared_by_name.get(name.lower(), ""))
            at += 1
        at += 1
    if at >= len(tokens) or tokens[at].upper not in ("VALUES", "SELECT"):
        return places
    depth, wanted, column = 0, 1 if tokens[at].upper == "VALUES" else 0, 0
    for index in range(at + 1, len(tokens)):
        text = tokens[index].text
        if tokens[index].upper in ("ON", "RETURNING", "FROM", "WHERE") and depth == 0:
            break
        if text == "(":
            depth += 1
            column = 0 if depth == wanted else column
        elif text == ")":
            depth -= 1
        elif text == "," and depth == wanted:
            column += 1
        elif depth == wanted and tokens[index].kind == "parameter" and column < len(types_in_order):
            neighbours = (tokens[index - 1].text, tokens[index + 1].text if index + 1 < len(tokens) else ")")
            if neighbours[0].upper() in ("(", ",", "SELECT") and neighbours[1] in (")", ","):
                places[index] = types.oid_of_declared(types_in_order[column])
    return places


def _type_at(tokens: Sequence[Token], at: int, scope: _Scope) -> int | None:
    before = tokens[at - 1] if at else None
    if before is not None and before.upper in ("LIMIT", "OFFSET"):
        return types.INT8
    if before is not None and before.text == "," and at >= 3 and tokens[at - 3].upper == "LIMIT":
        return types.INT8
    if before is not None and before.upper == "(" and at >= 2 and tokens[at - 2].upper == "CAST":
        return _cast_target(tokens, at + 1)
    if before is not None and before.upper in ("LIKE", "GLOB", "||"):
        return types.TEXT
    left = _operand_before(tokens, at)
    declared = scope.declared(tokens, left) if left is not None else None
    if declared is None:
        right = _operand_after(tokens, at)
        declared = scope.declared(tokens, right) if right is not None else None
    return None if declared is None else types.oid_of_declared(declared)


def _operand_before(tokens: Sequence[Token], at: int) -> int | None:
    """Index of the last token of the column compared with the parameter, walking back over operators, lists and BETWEEN."""
    index = at - 1
    while index >= 0:
        token = tokens[index]
        is_operator = token.upper in _COMPARISONS or token.text in _ARITHMETIC or token.text in ("(", ",")
        if is_operator or token.kind in ("parameter", "number", "string"):
            index -= 1
        else:
            break
    if index < 0 or index == at - 1 or tokens[index].name is None or tokens[index].upper in _CLAUSES:
        return None
    operator = tokens[index + 1]
    return index if operator.upper in _COMPARISONS or operator.text in _ARITHMETIC else None


def _operand_after(tokens: Sequence[Token], at: int) -> int | None:
    """Index of the last token of the column on the right of the parameter's operator: ``$1 < t.c``."""
    if at + 2 >= len(tokens) or not (tokens[at + 1].upper in _COMPARISONS or tokens[at + 1].text in _ARITHMETIC):
        return None
    index = at + 2
    if index + 2 < len(tokens) and tokens[index + 1].text == "." and tokens[index + 2].name:
        index += 2
    return index if tokens[index].name else None


def _cast_target(tokens: Sequence[Token], after: int) -> int | None:
    """The oid of ``AS type`` that begins at `after`."""
    if after + 1 < len(tokens) and tokens[after].upper == "AS":
        return types.oid_of_declared(tokens[after + 1].text)
    return None


# Result expressions.


def result_types(sql: str, column_count: int, tables: Tables) -> list[int | None]:
    """Types of the result's columns as far as the statement's text tells; None where it does not.

    The select list (or RETURNING list) is cut at its commas. Where a ``*`` hides how many columns there are, only those before it
    (from the left) and behind it (from the right) are told.
    """
    tokens = tokenize(sql)
    scope = _Scope(tokens, tables)
    items = _result_items(tokens)
    told: list[int | None] = [None] * column_count
    stars = [i for i, item in enumerate(items) if item and item[-1].text == "*"]
    if not stars:
        if len(items) == column_count:
            told = [expression_type(item, scope) for item in items]
        return told
    for index, item in enumerate(items[: stars[0]]):
        told[index] = expression_type(item, scope)
    for back, item in enumerate(reversed(items[stars[-1] + 1 :]), start=1):
        told[-back] = expression_type(item, scope)
    return told


def _result_items(tokens: Sequence[Token]) -> list[list[Token]]:
    """The items of the last RETURNING list, or of the first SELECT list outside brackets."""
    start = None
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and (token.upper == "RETURNING" or (token.upper == "SELECT" and start is None)):
            start = index + 1
    if start is None:
        return []
    if start < len(tokens) and tokens[start].upper in ("DISTINCT", "ALL"):
        start += 1
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[start:]:
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0 or (depth == 0 and token.upper in _LIST_ENDS):
            break
        if depth == 0 and token.text == ",":
            items.append([])
        else:
            items[-1].append(token)
    return items


def expression_type(tokens: Sequence[Token], scope: _Scope) -> int | None:
    """The type of one expression, with or without an alias; None when the rules do not tell."""
    tokens = _without_alias(tokens)
    if not tokens:
        return None
    while len(tokens) > 2 and tokens[0].text == "(" and _closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    top = _top_level(tokens)
    words = {token.upper for token in top}
    if tokens[0].upper in ("NOT", "EXISTS") or words & _PREDICATES:
        return types.INT8 if tokens[0].upper != "CASE" else None
    if "||" in words:
        return types.TEXT
    if words & _ARITHMETIC and len(tokens) > 1 and tokens[-1].text != "*":
        return _arithmetic_type(tokens, scope)
    return _operand_type(tokens, scope)


def _without_alias(tokens: Sequence[Token]) -> Sequence[Token]:
    for index, depth in _depths(tokens):
        if depth == 0 and tokens[index].upper == "AS":
            return tokens[:index]
    if len(tokens) > 1 and tokens[-1].name and tokens[-1].upper != "END":
        before = tokens[-2]
        if before.text == ")" or before.kind in ("word", "quoted", "number", "string"):
            return tokens[:-1]
    return tokens


def _depths(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    found, depth = [], 0
    for index, token in enumerate(tokens):
        depth -= token.text == ")"
        found.append((index, depth))
        depth += token.text == "("
    return found


def _top_level(tokens: Sequence[Token]) -> list[Token]:
    return [tokens[index] for index, depth in _depths(tokens) if depth == 0]


def _closing(tokens: Sequence[Token], opening: int) -> int:
    for index, depth in _depths(tokens[opening:])[1:]:
        if depth == 0:
            return opening + index
    return len(tokens)


def _arithmetic_type(tokens: Sequence[Token], scope: _Scope) -> int | None:
    operand: list[Token] = []
    kinds: list[int | None] = []
    for index, depth in _depths(tokens):
        if depth == 0 and tokens[index].text in _ARITHMETIC:
            if operand:
                kinds.append(_operand_type(operand, scope))
            operand = []
        else:
            operand.append(tokens[index])
    if operand:
        kinds.append(_operand_type(operand, scope))
    if types.FLOAT8 in kinds:
        return types.FLOAT8
    return types.INT8 if kinds and all(kind == types.INT8 for kind in kinds) else None


def _operand_type(tokens: Sequence[Token], scope: _Scope) -> int | None:
    first = tokens[0]
    if first.text == "(":
        return expression_type(tokens, scope)
    if len(tokens) == 1 and first.kind == "number":
        return types.FLOAT8 if any(c in first.text for c in ".eE") and not first.text.lower().startswith("0x") else types.INT8
    if len(tokens) == 1 and first.kind == "string":
        return types.BYTEA if first.text[0] in "xX" else types.TEXT
    if first.upper in ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME"):
        return types.TEXT
    if len(tokens) >= 2 and tokens[1].text == "(":
        return _function_type(tokens, scope)
    declared = scope.declared(tokens, len(tokens) - 1)
    return None if declared is None else types.oid_of_declared(declared)


def _function_type(tokens: Sequence[Token], scope: _Scope) -> int | None:
    name = tokens[0].upper
    if name == "CAST":
        end = _closing(tokens, 1)
        at = next((i for i in range(end - 1, 1, -1) if tokens[i].upper == "AS"), None)
        return None if at is None else _cast_target(tokens, at)
    for names, oid in (
        (_INT_FUNCTIONS, types.INT8),
        (_FLOAT_FUNCTIONS, types.FLOAT8),
        (_TEXT_FUNCTIONS, types.TEXT),
        (_BLOB_FUNCTIONS, types.BYTEA),
        (_BOOL_FUNCTIONS, types.BOOL),
    ):
        if name in names:
            return oid
    if name in _SAME_AS_ARGUMENT:
        argument: list[Token] = []
        for token, (_, depth) in zip(tokens[2 : _closing(tokens, 1)], _depths(tokens[2 : _closing(tokens, 1)]), strict=True):
            if depth == 0 and token.text == ",":
                break
            argument.append(token)
        return expression_type(argument, scope) if argument else None
    return None
