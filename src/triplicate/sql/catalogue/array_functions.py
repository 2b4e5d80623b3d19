"""Arrays of the catalogue: text in PostgreSQL's form, which functions and one virtual table parse and build."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.core.value_checks import check_aggregate

WIDTH = 4
"""Upper bound on the arrays of one ``pg_unnest``."""
EMPTY_SETS = {
    "pg_options_to_table": ("option_name", "option_value"),
    "pg_partition_ancestors": ("relid",),
    "pg_partition_tree": ("relid", "parentrelid", "isleaf", "level"),
    "ts_token_type": ("tokid", "alias", "description"),
}
"""Functions that return rows of what does not exist here, with the columns of the rows."""
SERIES_MAX = 10_000
"""Upper bound on the numbers of one series, which is an array."""
_COLUMNS = [*(f"value{number}" for number in range(1, WIDTH + 1)), "ordinality", "subscript"]


def array_element(value: Value) -> str:
    """One element in the form that it has in an array's text, in quotes where the text needs them."""
    if value is None:
        return "NULL"
    text = "\\x" + value.hex() if isinstance(value, bytes) else str(value)
    if text and text.upper() != "NULL" and not any(mark in text for mark in '{}",\\ \t\n\r\f\v'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def array_text(values: Sequence[Value]) -> str:
    return "{" + ",".join(array_element(value) for value in values) + "}"


def array_values(text: Value) -> list[Value]:
    """The elements of an array's text, of an int2vector's, or of a JSON array. Digits become integers.

    Raises:
        SqlError: 22P02 if the text is none of these, 0A000 for more than one dimension.
    """
    if text is None:
        return []
    if not isinstance(text, str):
        raise SqlError("22P02", f"{text!r:.60} is not an array")
    stripped = text.strip()
    if stripped.startswith("["):
        found = json.loads(stripped)
        return [item if item is None or isinstance(item, (int, float, str)) else json.dumps(item) for item in found]
    if not stripped.startswith("{"):
        try:
            return [int(part) for part in stripped.split()]
        except ValueError:
            raise SqlError("22P02", f'malformed array literal: "{stripped:.60}"') from None
    return _elements(stripped)


def _elements(text: str) -> list[Value]:
    elements: list[Value] = []
    at, size = 1, len(text)
    while at < size and text[at] != "}":
        if text[at] == "{":
            raise SqlError("0A000", "arrays of more than one dimension are not available")
        characters: list[str] = []
        quoted = text[at] == '"'
        at += quoted
        while at < size and not (text[at] == '"' if quoted else text[at] in ",}"):
            at += text[at] == "\\"
            characters.append(text[at : at + 1])
            at += 1
        at += quoted
        elements.append("".join(characters) if quoted else _plain("".join(characters).strip()))
        if at < size and text[at] == ",":
            at += 1
    if at >= size or text[at:] != "}":
        raise SqlError("22P02", f'malformed array literal: "{text:.60}"')
    return elements


def _plain(text: str) -> Value:
    if text.upper() == "NULL":
        return None
    return int(text) if text.removeprefix("-").isdigit() and len(text) < 19 else text


def array_has(array: Value, value: Value) -> Value:
    """``value = ANY (array)``: NULL when no element is equal and one is NULL."""
    if array is None or value is None:
        return None
    values = array_values(array)
    if any(element is not None and (element == value or str(element) == str(value)) for element in values):
        return 1
    return None if None in values else 0


def array_item(array: Value, subscript: Value) -> Value:
    """``array[subscript]``; NULL beyond the ends. The subscripts of an array begin with 1, those of a vector with 0."""
    if array is None or not isinstance(subscript, int):
        return None
    values = array_values(array)
    index = subscript if isinstance(array, str) and array.strip()[:1] not in ("{", "[") else subscript - 1
    return values[index] if 0 <= index < len(values) else None


def array_remove(array: Value, value: Value) -> Value:
    return None if array is None else array_text([element for element in array_values(array) if element != value])


def array_upper(array: Value, dimension: Value) -> Value:
    """The last subscript of an array's only dimension; NULL for an empty array."""
    return len(array_values(array)) or None if array is not None and dimension == 1 else None


def _series(first: Value, last: Value) -> Value:
    """The numbers of `generate_series` as an array. Raises SqlError 54000 for too many."""
    if not isinstance(first, int) or not isinstance(last, int):
        return None
    if last - first >= SERIES_MAX:
        raise SqlError("54000", f"generate_series() makes {SERIES_MAX} numbers in a query of the catalogue, not {last - first + 1}")
    return array_text([*range(first, last + 1)])


class _ArrayAggregate:
    """An aggregate of values as an array; NULL, or an empty array, for no rows."""

    def __init__(self, empty: Value) -> None:
        self._empty = empty
        self._values: list[Value] = []
        self._size = 0

    def step(self, *values: Value) -> None:
        self._size = check_aggregate(self._size + (len(values[0]) if isinstance(values[0], str | bytes) else 1))
        self._values.append(values[0])

    def final(self) -> Value:
        return array_text(self._values) if self._values else self._empty


class _BooleanAggregate:
    """The aggregate bool_and, or bool_or: NULL without a value that is not NULL."""

    def __init__(self, *, conjunction: bool) -> None:
        self._conjunction = conjunction
        self._result: bool | None = None

    def step(self, *values: Value) -> None:
        if values[0] is None:
            return
        value = bool(values[0])
        if self._result is None:
            self._result = value
        else:
            self._result = (self._result and value) if self._conjunction else (self._result or value)

    def final(self) -> Value:
        return None if self._result is None else int(self._result)


class _Unnest:
    """``pg_unnest(array, …)``: a row per position, with the value of each array."""

    def Connect(self, connection: apsw.Connection, modulename: str, databasename: str, tablename: str, *args: Any) -> tuple[str, _Unnest]:
        connection.vtab_config(apsw.SQLITE_VTAB_DIRECTONLY)
        hidden = ", ".join(f"a{number} hidden" for number in range(1, WIDTH + 1))
        return f"create table t({', '.join(_COLUMNS)}, {hidden})", self

    Create = Connect

    def BestIndex(self, constraints: Sequence[tuple[int, int]], _orders: object) -> Any:
        used: list[Any] = []
        arguments: list[str] = []
        for column, operator in constraints:
            if operator == apsw.SQLITE_INDEX_CONSTRAINT_EQ and column >= len(_COLUMNS):
                used.append((len(arguments), True))
                arguments.append(str(column - len(_COLUMNS)))
            else:
                used.append(None)
        return used, 0, ",".join(arguments), False, 10.0 if arguments else 1e9

    def Open(self) -> _UnnestCursor:
        return _UnnestCursor()

    def Disconnect(self) -> None:
        """There is nothing to close."""

    Destroy = Disconnect


class _UnnestCursor:
    def __init__(self) -> None:
        self._arrays: list[list[Value]] = []
        self._arguments: dict[int, Any] = {}
        self._first_subscript = 1
        self._row_index = 0
        self._count = 0

    def Filter(self, _number: int, arguments: str | None, values: Sequence[Any] | None) -> None:
        numbers = [int(number) for number in arguments.split(",")] if arguments else []
        self._arguments = dict(zip(numbers, values or (), strict=True))
        arrays = [self._arguments.get(number) for number in range(WIDTH)]
        self._arrays = [array_values(array) for array in arrays]
        first = arrays[0]
        # The subscripts of an int2vector begin with 0 in PostgreSQL, those of an array with 1.
        self._first_subscript = 0 if isinstance(first, str) and first.strip()[:1] not in ("{", "[") else 1
        self._count = max(len(array) for array in self._arrays)
        self._row_index = 0

    def Eof(self) -> bool:
        return self._row_index >= self._count

    def Rowid(self) -> int:
        return self._row_index

    def Column(self, number: int) -> Any:
        if 0 <= number < WIDTH:
            array = self._arrays[number]
            return array[self._row_index] if self._row_index < len(array) else None
        if number == WIDTH:
            return self._row_index + 1
        if number == WIDTH + 1:
            return self._row_index + self._first_subscript
        return self._arguments.get(number - len(_COLUMNS)) if number >= 0 else self._row_index

    def Next(self) -> None:
        self._row_index += 1

    def Close(self) -> None:
        self._arrays = []


def register_arrays(connection: apsw.Connection) -> None:
    """Register the array functions and ``pg_unnest`` on a connection."""
    flags = apsw.SQLITE_DIRECTONLY
    connection.create_scalar_function("pg_array", lambda *values: array_text(values), -1, flags=flags)
    connection.create_scalar_function("pg_array_has", lambda *values: array_has(values[0], values[1]), 2, flags=flags)
    connection.create_scalar_function("pg_array_item", lambda *values: array_item(values[0], values[1]), 2, flags=flags)
    connection.create_scalar_function("array_remove", lambda *values: array_remove(values[0], values[1]), 2, flags=flags)
    for name in ("array_upper", "array_length"):
        connection.create_scalar_function(name, lambda *values: array_upper(values[0], values[1]), 2, flags=flags)
    connection.create_scalar_function("pg_series", lambda *values: _series(values[0], values[1]), 2, flags=flags)
    for name in EMPTY_SETS:
        connection.create_scalar_function(name, lambda *_: "{}", -1, flags=flags)
    connection.create_aggregate_function("array_agg", lambda: _ArrayAggregate(None), 1, flags=flags)
    connection.create_aggregate_function("pg_array_of", lambda: _ArrayAggregate("{}"), 1, flags=flags)
    for name in ("bool_and", "every"):
        connection.create_aggregate_function(name, lambda: _BooleanAggregate(conjunction=True), 1, flags=flags)
    connection.create_aggregate_function("bool_or", lambda: _BooleanAggregate(conjunction=False), 1, flags=flags)
    connection.create_module("pg_unnest", _Unnest(), eponymous=True, eponymous_only=True, read_only=True)  # type: ignore[arg-type]
