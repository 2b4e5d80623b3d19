"""The leader's checks of values against the declared types of columns, before they are stored. Pure.

SQLite has converted a value to the column's affinity before. A value that it could not convert is refused with PostgreSQL's codes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.datetime_text import STORED_FORMS
from triplicate.sql.core.declared_types import Declared, Kind, parse_declared

AGGREGATE_BYTES = 64 * 1024 * 1024
"""Upper bound on the values that an aggregate function in Python keeps, as SQLite has one on each value."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_SERIAL = re.compile(r"(BIG|SMALL)?SERIAL", re.IGNORECASE)
_NULL: type = type(None)
_ACCEPTED: dict[Kind, tuple[type, ...]] = {
    Kind.BOOL: (int,),
    Kind.INTEGER: (int,),
    # SQLite stores whole numbers of a REAL column as integers, and the hook shows them so.
    Kind.FLOAT: (float, int),
    Kind.NUMERIC: (int, float),
    Kind.BYTEA: (bytes,),
    # A number is JSON, and SQLite stores it as a number.
    Kind.JSON: (str, int, float),
    Kind.JSONB: (str, int, float),
}
_NAMES: dict[type, str] = {int: "integer", float: "double precision", str: "text", bytes: "bytea"}
_HINTS = {
    Kind.BOOL: "write true or false, or 1 or 0",
    Kind.INTEGER: "round() makes an integer of a number, CAST(… AS INTEGER) cuts it",
    Kind.BYTEA: "write x'…', or send it as a parameter",
    Kind.DATE: "write YYYY-MM-DD",
    Kind.TIME: "write HH:MM:SS, or with six digits of a fraction",
    Kind.TIMESTAMP: "write YYYY-MM-DD HH:MM:SS, or with six digits of a fraction",
    Kind.TIMESTAMPTZ: "write YYYY-MM-DD HH:MM:SS+00:00, in UTC, or with six digits of a fraction",
    Kind.UUID: "write it in small letters, with hyphens",
}


Fits = Callable[[Any], bool]
"""Whether a value of an accepted type can be stored."""


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """The values that one column accepts."""

    index: int
    """Index of the value in a row of SQLite's hook."""
    name: str
    declared: Declared
    accepted: tuple[type, ...]
    fits: Fits | None
    """A check of values whose type does not decide; None when it always does."""
    is_serial: bool
    """Whether the declared type is SERIAL or similar, which is no type of SQLite. Earlier releases stored such types."""

    def accepts(self, value: Value) -> bool:
        if value is None:
            return not self.is_serial
        return type(value) in self.accepted and (self.fits is None or self.fits(value))

    def refusal(self, table: str, value: Value) -> SqlError:
        """The error for a value that is not accepted."""
        return _refusal(self, f'column "{self.name}" of table "{table}"', value)


class RowRules:
    """The values that the columns of one table accept. The types of their values alone decide most rows."""

    def __init__(self, columns: list[tuple[int, str, str]]) -> None:
        """
        Args:
            columns: index in a row, name and declared type of each column.
        """
        rules = [_rule(index, name, declared) for index, name, declared in columns]
        self._rules = [rule for rule in rules if rule is not None]

    @property
    def has_any(self) -> bool:
        """Whether a column refuses some values."""
        return bool(self._rules)

    def inspections(self, kinds: tuple[type, ...]) -> tuple[tuple[int, Fits], ...] | None:
        """The checks that a row of these types needs; None when a type is refused."""
        present = [rule for rule in self._rules if kinds[rule.index] is not _NULL or rule.is_serial]
        if any(kinds[rule.index] not in rule.accepted for rule in present):
            return None
        return tuple((rule.index, rule.fits) for rule in present if rule.fits is not None)

    def refused(self, row: tuple[Value, ...]) -> list[ColumnRule]:
        """Every rule that a row violates."""
        return [rule for rule in self._rules if not rule.accepts(row[rule.index])]


def _rule(index: int, name: str, text: str) -> ColumnRule | None:
    declared = parse_declared(text)
    if declared.kind is Kind.ANY:
        return None
    is_serial = _SERIAL.match(text) is not None
    return ColumnRule(index, name, declared, _ACCEPTED.get(declared.kind, (str,)), _inspection(declared), is_serial)


def _inspection(declared: Declared) -> Fits | None:
    kind, length = declared.kind, declared.length
    if kind is Kind.BOOL:
        return (0, 1).__contains__
    if kind is Kind.NUMERIC and declared.precision is not None:
        return _numeric(declared.precision, declared.scale)
    if kind in (Kind.TEXT, Kind.VARCHAR) and length is not None:
        return lambda value: len(value) <= length
    if kind in STORED_FORMS:
        return STORED_FORMS[kind]
    if kind is Kind.UUID:
        return lambda value: _UUID.fullmatch(value) is not None
    if kind in (Kind.JSON, Kind.JSONB):
        return lambda value: is_json(value) if type(value) is str else math.isfinite(value)
    return None


def _numeric(precision: int, scale: int) -> Fits:
    bound = 10 ** (precision - scale) if precision >= scale else 10.0 ** (precision - scale)
    # Rounding to `scale` digits returns the float nearest to a number of that scale; any other float changes.
    return lambda value: -bound < value < bound and value == round(value, scale)


def is_json(text: str) -> bool:
    """Whether a text is JSON as its standard has it, without Python's additions."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)  # Numbers may be of any length.
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _refusal(rule: ColumnRule, place: str, value: Value) -> SqlError:
    if value is None:
        return SqlError(
            "23502",
            f"{place} has no sequence: the table was created by a release without SERIAL",
            hint="Make the table again, copy the rows, drop the old one and rename the new one; or give the value.",
        )
    kind = rule.declared.kind
    shown = f"{value!r:.60}"
    hint = _HINTS.get(kind)
    if kind is Kind.INTEGER and isinstance(value, float) and abs(value) >= 2**63:
        return SqlError("22003", f"bigint out of range: {place} was given {shown}")
    if kind is Kind.NUMERIC and type(value) in rule.accepted:
        digits = f"numeric({rule.declared.precision},{rule.declared.scale})"
        return SqlError(
            "22003", f"{shown} does not fit {digits} of {place}", hint=f"round(…, {rule.declared.scale}) cuts what is too precise"
        )
    if kind in (Kind.TEXT, Kind.VARCHAR) and isinstance(value, str):
        return SqlError("22001", f"value too long for type {kind.value}({rule.declared.length}): {place} was given {len(value)} characters")
    is_text = isinstance(value, str) and kind is not Kind.BYTEA
    if is_text or (kind in (Kind.JSON, Kind.JSONB) and isinstance(value, float)):
        state = "22007" if kind in STORED_FORMS else "22P02"
        return SqlError(state, f"invalid input syntax for type {kind.value}: {place} was given {shown}", hint=hint)
    given = _NAMES.get(type(value), type(value).__name__)
    return SqlError("42804", f"{place} is of type {kind.value} but the value {shown} is of type {given}", hint=hint)


def check_aggregate(size: int) -> int:
    """Check the characters and bytes that an aggregate keeps, and return them. Raises SqlError 54000."""
    if size > AGGREGATE_BYTES:
        raise SqlError("54000", f"an aggregate may keep {AGGREGATE_BYTES} bytes of values, this one has more", hint="Aggregate fewer rows.")
    return size
