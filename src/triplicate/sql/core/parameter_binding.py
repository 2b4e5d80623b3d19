"""Binding Python values to the parameters of a statement in SQLite's forms: ``?``, ``?NNN``, ``:name``, ``@name`` and ``$name``. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from triplicate.errors import SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.schema_cache import MAX_STATEMENT_BYTES

Parameters = Sequence[object] | Mapping[str, object]
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1


def check_text(sql: str) -> None:
    """Raises SqlError: 42804, a statement is no text; 54000, too long; 22021, it has a zero character, which ends it in SQLite."""
    if not isinstance(sql, str):
        raise SqlError("42804", f"a statement is a str, not {type(sql).__name__}")
    if len(sql) > MAX_STATEMENT_BYTES:
        raise SqlError("54000", f"a statement may have {MAX_STATEMENT_BYTES} characters, this one has {len(sql)}")
    if "\0" in sql:
        raise SqlError("22021", "a statement has no zero characters; give values that have them as parameters")


def bound(names: Sequence[str | None], parameters: Parameters) -> tuple[Value, ...]:
    """The values of a statement's parameters by index.

    Args:
        names: see `Prepared.parameters`.
        parameters: values by place, or by name without the sign before it.

    Raises:
        SqlError: 08P01, their number differs from the statement's, or a named one is missing; 22003, an integer has more than 64 bits;
            0A000, a value is NaN, of which SQLite would make NULL; 42804, a value has a type that SQLite does not store.
    """
    if isinstance(parameters, Mapping):
        return tuple(_value(_of_name(name, parameters), name or "?") for name in names)
    if isinstance(parameters, str | bytes | bytearray) or not isinstance(parameters, Sequence):
        raise SqlError("42804", f"parameters are a sequence or a mapping, not {type(parameters).__name__}")
    if len(parameters) != len(names):
        raise SqlError("08P01", f"the statement has {len(names)} parameters, and {len(parameters)} values were given")
    return tuple(_value(value, str(index)) for index, value in enumerate(parameters, 1))


def _of_name(name: str | None, parameters: Mapping[str, object]) -> object:
    if name is None or name[:1] == "?":
        raise SqlError("08P01", "the statement has parameters without names: give their values as a sequence")
    try:
        return parameters[name[1:]]
    except KeyError:
        raise SqlError("08P01", f"no value was given for parameter {name}") from None


def _value(value: object, name: str) -> Value:
    if value is None or isinstance(value, str | bytes):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            raise SqlError("0A000", f"parameter {name}: NaN cannot be stored", hint="None stands for no number.")
        return value
    if isinstance(value, int):
        if not INTEGER_MIN <= value <= INTEGER_MAX:
            raise SqlError("22003", f"parameter {name}: an integer has 64 bits, and {value.bit_length()} were given")
        return int(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise SqlError("42804", f"parameter {name}: type {type(value).__name__} is not supported; give None, int, float, str or bytes")
