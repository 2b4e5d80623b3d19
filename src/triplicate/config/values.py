"""Values of settings as text and TOML: parsing, units, bounds, and formatting.

Sizes may have the form ``64 MiB`` and durations the form ``200 ms``. A plain number is in the setting's unit.
"""

from __future__ import annotations

import math
import re
import types
import typing
from typing import Any

from triplicate.config.setting import SettingInfo
from triplicate.errors import ArgumentError

_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SECONDS = {"US": 1e-6, "MS": 1e-3, "S": 1.0, "MIN": 60.0, "H": 3600.0, "D": 86400.0}
SUFFIXES: dict[str, dict[str, float]] = {
    "bytes": {name: float(factor) for name, factor in _SIZES.items()},
    "seconds": _SECONDS,
    "milliseconds": {name: factor * 1000.0 for name, factor in _SECONDS.items()},
}
"""Suffixes of numbers and their factors, by the setting's unit. Case is ignored."""

_QUANTITY = re.compile(r"\s*([+-]?[0-9][0-9_]{0,99}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def check_seconds(what: str, seconds: float) -> float:
    """A time as it is given. Raises ArgumentError: it is no number, below 0, or not finite."""
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        raise ArgumentError(f"{what} is a number of seconds from 0 on, not {seconds!r}")
    return seconds


def plain_type(annotation: Any) -> tuple[Any, bool]:
    """The type without ``| None``, and whether None is allowed."""
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        arguments = [argument for argument in typing.get_args(annotation) if argument is not type(None)]
        assert len(arguments) == 1, f"a setting has one type, not {annotation}"
        return arguments[0], True
    return annotation, False


def type_name(annotation: Any) -> str:
    """The name of the type in the reference page."""
    kind, optional = plain_type(annotation)
    name = {int: "integer", float: "number", bool: "true or false", str: "text"}.get(kind, "list of text")
    return f"{name}, may be left out" if optional else name


def convert(raw: object, annotation: Any, info: SettingInfo) -> Any:
    """Convert a value from a file, variable or flag to the setting's type, and check bounds and choices.

    Args:
        raw: TOML's own types, or text from a variable or flag.
        annotation: int, float, bool, str, ``tuple[str, ...]``, or one of these ``| None``.

    Raises:
        ValueError: the message continues the sentence "setting = value: …".
    """
    kind, _ = plain_type(annotation)
    if kind is bool:
        return _convert_bool(raw)
    if kind is int or kind is float:
        return _convert_number(raw, kind, info)
    if kind is str:
        if not isinstance(raw, str):
            raise ValueError("text in quotes is expected")
        if info.choices and raw not in info.choices:
            raise ValueError(f"one of {', '.join(info.choices)} is expected")
        return raw
    return _convert_list(raw, info)


def _convert_bool(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in _TRUE + _FALSE:
        return raw.strip().lower() in _TRUE
    raise ValueError("true or false is expected")


def _convert_number(raw: object, kind: type, info: SettingInfo) -> int | float:
    if isinstance(raw, str):
        number = _parse_quantity(raw, info.unit)
    elif isinstance(raw, int | float) and not isinstance(raw, bool):
        number = raw
    else:
        raise ValueError(f"a number of {info.unit} is expected" if info.unit else "a number is expected")
    if not abs(number) < math.inf:
        raise ValueError("a finite number is expected")
    if kind is int and number != int(number):
        raise ValueError("a whole number is expected")
    _check_bounds(number, info, info.unit)
    return int(number) if kind is int else float(number)


def _parse_quantity(text: str, unit: str) -> int | float:
    match = _QUANTITY.fullmatch(text)
    suffixes = SUFFIXES.get(unit, {})
    if match is None or (match[2] and match[2].upper() not in suffixes):
        example = {"bytes": ", for example 64 MiB", "seconds": ", for example 200 ms"}.get(unit, "")
        raise ValueError(f"a number{f' of {unit}' if unit else ''} is expected{example}")
    digits = match[1].replace("_", "")
    number: int | float = float(digits) if any(mark in digits for mark in ".eE") else int(digits)
    factor = suffixes[match[2].upper()] if match[2] else 1
    # Integer factors keep integers exact: a large size must not be converted to a float.
    return number * int(factor) if factor == int(factor) else number * factor


def _convert_list(raw: object, info: SettingInfo) -> tuple[str, ...]:
    if isinstance(raw, str):
        items: list[object] = [item.strip() for item in raw.split(",") if item.strip()]
    elif isinstance(raw, list | tuple):
        items = list(raw)
    else:
        raise ValueError("a list of texts is expected")
    if not all(isinstance(item, str) for item in items):
        raise ValueError("every item of the list must be text in quotes")
    _check_bounds(len(items), info, "items")
    return tuple(str(item) for item in items)


def _check_bounds(number: float, info: SettingInfo, unit: str) -> None:
    unit = f" {unit}" if unit else ""
    if info.low is not None and number < info.low:
        raise ValueError(f"at least {number_text(info.low)}{unit} is allowed{_range_text(info)}")
    if info.high is not None and number > info.high:
        raise ValueError(f"at most {number_text(info.high)}{unit} is allowed{_range_text(info)}")


def _range_text(info: SettingInfo) -> str:
    if info.low is None or info.high is None:
        return ""
    return f" (from {number_text(info.low)} to {number_text(info.high)})"


def number_text(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)


def value_text(value: object, unit: str) -> str:
    """A value for display: sizes in the largest unit that divides them, lists with commas, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value) or "-"
    if isinstance(value, int) and unit == "bytes":
        for name, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if value and value % factor == 0:
                return f"{value // factor} {name}"
    if isinstance(value, int | float):
        return f"{number_text(value)} {unit}".rstrip()
    return str(value) or "-"


def toml_text(value: object) -> str:
    """One value in TOML.

    Raises:
        TypeError: no setting has a value of this type.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        escaped = "".join(
            f"\\{letter}" if letter in '"\\' else letter if letter.isprintable() else f"\\U{ord(letter):08X}" for letter in value
        )
        return f'"{escaped}"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_text(item) for item in value) + "]"
    raise TypeError(f"no setting has a value like {value!r}")
