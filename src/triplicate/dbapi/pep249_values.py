"""Values of PEP 249: type objects, constructors, adapters of Python's types, and converters of columns."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = memoryview

Adapter = Callable[[Any], Any]
Converter = Callable[[bytes], Any]


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of a time in seconds since the epoch."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of the day, likewise."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time, likewise."""
    return Timestamp(*time.localtime(ticks)[:6])


class TypeObject:
    """Equal to the type codes of the columns of its kind, see `DatabaseCursor.description`.

    Args:
        parts: parts of declared types. SQLite's rules of affinity look for them likewise.
    """

    def __init__(self, name: str, *parts: str) -> None:
        self._name = name
        self._parts = parts

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return any(part in other.upper() for part in self._parts)
        return self is other

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return self._name


STRING = TypeObject("STRING", "CHAR", "CLOB", "TEXT")
BINARY = TypeObject("BINARY", "BLOB", "BYTEA")
NUMBER = TypeObject("NUMBER", "INT", "REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL", "SERIAL")
DATETIME = TypeObject("DATETIME", "DATE", "TIME")
ROWID = TypeObject("ROWID", "INTEGER", "BIGINT")

_adapters: dict[type, Adapter] = {
    datetime.date: lambda value: value.isoformat(),
    datetime.datetime: lambda value: value.isoformat(" "),
}
_converters: dict[str, Converter] = {
    "DATE": lambda data: datetime.date.fromisoformat(data.decode()),
    "TIMESTAMP": lambda data: datetime.datetime.fromisoformat(data.decode()),
}


def register_adapter(kind: type, adapter: Adapter) -> None:
    """Store values of exactly this type as what the adapter returns for them."""
    _adapters[kind] = adapter


def register_converter(name: str, converter: Converter) -> None:
    """Convert the values of columns of this declared type. It applies to connections with `detect_types`."""
    _converters[name.upper()] = converter


def converter_of(name: str) -> Converter | None:
    """The converter of a declared type, by its first word without a length."""
    words = name.replace("(", " ").split()
    return _converters.get(words[0].upper()) if words else None


def adapted(parameters: Sequence[Any] | Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
    """Parameters with the values of adapted types replaced."""
    if isinstance(parameters, Mapping):
        return {name: _adapted(value) for name, value in parameters.items()}
    if isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes):
        return [_adapted(value) for value in parameters]
    return parameters


def _adapted(value: Any) -> Any:
    adapter = _adapters.get(type(value))
    return value if adapter is None else adapter(value)
