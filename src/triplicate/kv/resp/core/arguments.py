"""Arguments of commands: numbers and deadlines, as Redis reads them."""

from __future__ import annotations

import re
from decimal import Context, Decimal, InvalidOperation, Overflow, localcontext

from triplicate.kv.core.operations import Expiry
from triplicate.kv.resp.core.command_errors import NOT_A_FLOAT, NOT_AN_INTEGER, SYNTAX, CommandError

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
UNSIGNED_MAX, UNSIGNED_DIGITS_MAX = 2**64 - 1, 20
DEADLINE_MS_MAX = 2**53 - 1
"""The last deadline, milliseconds since the epoch."""

_INTEGER = re.compile(rb"-?[1-9][0-9]{0,18}|0", re.ASCII)
_FLOAT = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_DECIMALS = Context(prec=17, Emin=-308, Emax=308)
"""The precision of Redis, which computes with long doubles and shows 17 digits."""
FLOAT_BYTES_MAX = 400

UNITS = {b"EX": 1000, b"PX": 1, b"EXAT": 1000, b"PXAT": 1}
"""Milliseconds of the units of SET, GETEX and their kin."""


def integer(word: bytes, error: str = NOT_AN_INTEGER) -> int:
    """A signed integer of 64 bits, in its only decimal form. Raises CommandError."""
    if _INTEGER.fullmatch(word) is None:
        raise CommandError(error)
    value = int(word)
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise CommandError(error)
    return value


def unsigned(word: bytes, error: str) -> int:
    """An integer of 64 bits without sign, of at most 20 digits. Raises CommandError."""
    if len(word) > UNSIGNED_DIGITS_MAX or not word.isdigit() or int(word) > UNSIGNED_MAX:
        raise CommandError(error)
    return int(word)


def decimal(word: bytes) -> Decimal:
    """A finite decimal number. Raises CommandError."""
    if len(word) > FLOAT_BYTES_MAX or _FLOAT.fullmatch(word) is None:
        raise CommandError(NOT_A_FLOAT)
    return Decimal(word.decode())


def add_decimals(one: Decimal, other: Decimal) -> bytes:
    """The sum with 17 digits, without an exponent and without zeros at the end. Raises CommandError: it is out of range."""
    with localcontext(_DECIMALS) as context:
        context.traps[Overflow] = context.traps[InvalidOperation] = True
        try:
            total = one + other
        except (Overflow, InvalidOperation):
            raise CommandError("ERR increment would produce NaN or Infinity") from None
    text = f"{total:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return b"0" if text in ("-0", "") else text.encode()


def expiry_after(amount: int, unit_ms: int, command: str) -> Expiry:
    """The deadline of a key after a number of units. Raises CommandError: it is not in the future, or too far in it."""
    if not 0 < amount * unit_ms <= DEADLINE_MS_MAX:
        raise invalid_time(command)
    return Expiry(after_ms=amount * unit_ms)


def expiry_at(amount: int, unit_ms: int, command: str) -> Expiry:
    """The end of a key's life at a time, in units since the epoch. Raises CommandError: it is out of range."""
    if not 0 < amount * unit_ms <= DEADLINE_MS_MAX:
        raise invalid_time(command)
    return Expiry(at_ms=amount * unit_ms)


def expiry_of_option(option: bytes, word: bytes, command: str) -> Expiry:
    """The deadline of an option such as ``EX 10``. Raises CommandError."""
    make = expiry_at if option.endswith(b"AT") else expiry_after
    return make(integer(word), UNITS[option], command)


def expiry_or_past(amount: int, unit_ms: int, *, is_absolute: bool, command: str) -> Expiry:
    """The deadline of EXPIRE and its kin, whose time may have passed already: then the key is deleted. Raises CommandError."""
    time_ms = amount * unit_ms
    if abs(time_ms) > DEADLINE_MS_MAX:
        raise invalid_time(command)
    if time_ms <= 0:
        return Expiry(at_ms=1)
    return Expiry(at_ms=time_ms) if is_absolute else Expiry(after_ms=time_ms)


def invalid_time(command: str) -> CommandError:
    return CommandError(f"ERR invalid expire time in '{command}' command")


class OptionWords:
    """The words behind the fixed arguments of a command, read from the left."""

    def __init__(self, words: list[bytes], at: int) -> None:
        self._words = words
        self._at = at

    def next(self) -> bytes | None:
        """The next word in capitals; None at the end."""
        if self._at == len(self._words):
            return None
        self._at += 1
        return self._words[self._at - 1].upper()

    def value(self) -> bytes:
        """The next word as it is. Raises CommandError: there is none."""
        if self._at == len(self._words):
            raise CommandError(SYNTAX)
        self._at += 1
        return self._words[self._at - 1]


def read_expiry(options: OptionWords, command: str, *, keep: bytes, kept: Expiry) -> tuple[Expiry | None, set[bytes]]:
    """Read all options: at most one deadline, and words without a value.

    Args:
        keep: the word that stands for `kept`.

    Returns:
        The deadline, None without any; the other words.

    Raises:
        CommandError: a deadline is invalid, or there are two.
    """
    expiry: Expiry | None = None
    others: set[bytes] = set()
    while (word := options.next()) is not None:
        if word in UNITS or word == keep:
            if expiry is not None:
                raise CommandError(SYNTAX)
            expiry = kept if word == keep else expiry_of_option(word, options.value(), command)
        else:
            others.add(word)
    return expiry, others
