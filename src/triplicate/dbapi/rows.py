"""Rows whose columns have names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triplicate.dbapi.cursor import DatabaseCursor


class Row:
    """A row as `sqlite3.Row` is one: a column by place, or by name in either case. Set it as a connection's `row_factory`."""

    __slots__ = ("_names", "_values")

    def __init__(self, cursor: DatabaseCursor, values: tuple[Any, ...]) -> None:
        self._names = tuple(column[0] for column in cursor.description or ())
        self._values = values

    def keys(self) -> list[str]:
        """The names of the columns."""
        return list(self._names)

    def __getitem__(self, key: int | slice | str) -> Any:
        if not isinstance(key, str):
            return self._values[key]
        wanted = key.lower()
        for name, value in zip(self._names, self._values, strict=True):
            if name.lower() == wanted:
                return value
        raise IndexError(f"no column {key!r} in this row; it has {', '.join(self._names)}")

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and (self._names, self._values) == (other._names, other._values)

    def __hash__(self) -> int:
        return hash((self._names, self._values))

    def __repr__(self) -> str:
        return f"<Row {', '.join(f'{name}={value!r}' for name, value in zip(self._names, self._values, strict=True))}>"
