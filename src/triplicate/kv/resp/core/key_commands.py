"""Commands on keys that they name: the operations of each, and the reply that follows from the outcomes.

Source: Redis documentation, "Commands"; its replies and error texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from triplicate.kv.core.operations import (
    KEEP_EXPIRY,
    NO_EXPIRY,
    Add,
    Append,
    Condition,
    DeadlineWhen,
    Delete,
    Expire,
    Expiry,
    Get,
    KeyExists,
    Operation,
    Outcome,
    Put,
    ValueIs,
    When,
)
from triplicate.kv.core.store_interface import Record, StoreLimits
from triplicate.kv.resp.core.arguments import (
    INTEGER_MIN,
    OptionWords,
    add_decimals,
    decimal,
    expiry_after,
    expiry_or_past,
    integer,
    read_expiry,
)
from triplicate.kv.resp.core.command_errors import SYNTAX, CommandError
from triplicate.kv.resp.core.replies import OK, Reply, Simple

Outcomes = Sequence[Outcome]


class KeyCommand(NamedTuple):
    """A command whose operations are known before anything is read."""

    operations: tuple[Operation, ...]
    render: Callable[[Outcomes, int], Reply]
    """Makes the reply from the outcomes, one for each operation, and the time in milliseconds by which deadlines were compared.

    The outcomes are empty if the conditions did not hold."""
    conditions: tuple[Condition, ...] = ()
    """Without them nothing happens. A command that has some is a batch by itself."""
    is_read: bool = False
    """Whether it only reads."""


@dataclass(frozen=True, slots=True)
class ComputedCommand:
    """A change that is computed from the present value of its one key, and made only if the key is still the same.

    Args:
        compute: makes the operation, None where nothing is to be changed, and the reply. Raises CommandError.
    """

    key: bytes
    compute: Callable[[Record | None, StoreLimits], tuple[Operation | None, Reply]]


def check_sizes(operations: Sequence[Operation], limits: StoreLimits) -> int:
    """The bytes of the keys and values. Raises CommandError: a key or value is beyond the limits of the store."""
    if len(operations) > limits.batch_operations:
        raise CommandError(f"ERR a command names at most {limits.batch_operations} keys")
    size = 0
    for operation in operations:
        if not 0 < len(operation.key) <= limits.key_bytes:
            raise CommandError(f"ERR a key has 1 to {limits.key_bytes} bytes")
        size += len(operation.key)
        if isinstance(operation, (Put, Append)):
            data_bytes = len(operation.value if isinstance(operation, Put) else operation.suffix)
            if data_bytes > limits.value_bytes:
                raise too_long(limits)
            size += data_bytes
    if size > limits.batch_bytes:
        raise CommandError(f"ERR the keys and values of a command have at most {limits.batch_bytes} bytes")
    return size


def too_long(limits: StoreLimits) -> CommandError:
    return CommandError(f"ERR string exceeds maximum allowed size ({limits.value_bytes} bytes)")


def outcome_of_record(record: Record | None) -> Outcome:
    """The outcome of a `Get` that found this."""
    return Outcome(False) if record is None else Outcome(True, record.value, record.version, record.deadline_ms)


# Replies from outcomes.


def _value(outcomes: Outcomes, _: int) -> Reply:
    return outcomes[0].value


def _values(outcomes: Outcomes, _: int) -> Reply:
    return [outcome.value for outcome in outcomes]


def _ok(_outcomes: Outcomes, _: int) -> Reply:
    return OK


def _ok_if_applied(outcomes: Outcomes, _: int) -> Reply:
    return OK if outcomes[0].applied else None


def _applied(outcomes: Outcomes, _: int) -> Reply:
    return sum(outcome.applied for outcome in outcomes)


def _length(outcomes: Outcomes, _: int) -> Reply:
    return len(outcomes[0].value or b"")


def _sum(outcomes: Outcomes, _: int) -> Reply:
    return int(outcomes[0].value or b"0")


def _held(outcomes: Outcomes, _: int) -> Reply:
    return 1 if outcomes else 0


def _kind(outcomes: Outcomes, _: int) -> Reply:
    return Simple("string" if outcomes[0].applied else "none")


def _slice(start: int, end: int, outcomes: Outcomes, _: int) -> Reply:
    """As Redis: an end before the first byte is the first byte, unless both ends are counted from behind and are in the wrong order."""
    value = outcomes[0].value or b""
    first, last = (max(at + len(value), 0) if at < 0 else at for at in (start, end))
    return b"" if end < start < 0 else value[first : last + 1]


def _time(unit_ms: int, outcomes: Outcomes, time_ms: int, *, is_absolute: bool) -> Reply:
    found = outcomes[0]
    if not found.applied:
        return -2
    if not found.deadline_ms:
        return -1
    left_ms = found.deadline_ms if is_absolute else max(found.deadline_ms - time_ms, 0)
    return (left_ms + unit_ms // 2) // unit_ms


# Commands.


def _reading(operations: tuple[Operation, ...], render: Callable[[Outcomes, int], Reply]) -> KeyCommand:
    return KeyCommand(operations, render, (), True)


def get(words: list[bytes]) -> KeyCommand:
    return _reading((Get(words[1]),), _value)


def mget(words: list[bytes]) -> KeyCommand:
    return _reading(tuple(map(Get, words[1:])), _values)


def exists(words: list[bytes]) -> KeyCommand:
    return _reading(tuple(map(Get, words[1:])), _applied)


def strlen(words: list[bytes]) -> KeyCommand:
    return _reading((Get(words[1]),), _length)


def getrange(words: list[bytes]) -> KeyCommand:
    return _reading((Get(words[1]),), partial(_slice, integer(words[2]), integer(words[3])))


def type_of(words: list[bytes]) -> KeyCommand:
    return _reading((Get(words[1]),), _kind)


def time_left(unit_ms: int, words: list[bytes], *, is_absolute: bool = False) -> KeyCommand:
    """TTL, PTTL, EXPIRETIME, PEXPIRETIME."""
    return _reading((Get(words[1]),), partial(_time, unit_ms, is_absolute=is_absolute))


def set_value(words: list[bytes]) -> KeyCommand:
    if len(words) == 3:
        return KeyCommand((Put(words[1], words[2]),), _ok)
    expiry, flags = read_expiry(OptionWords(words, 3), "set", keep=b"KEEPTTL", kept=KEEP_EXPIRY)
    if flags - {b"NX", b"XX", b"GET"} or flags >= {b"NX", b"XX"}:
        raise CommandError(SYNTAX)
    when = When.IF_ABSENT if b"NX" in flags else When.IF_PRESENT if b"XX" in flags else When.ALWAYS
    put = Put(words[1], words[2], expiry or NO_EXPIRY, when, returns_old=b"GET" in flags)
    return KeyCommand((put,), _value if b"GET" in flags else _ok_if_applied)


def setnx(words: list[bytes]) -> KeyCommand:
    return KeyCommand((Put(words[1], words[2], when=When.IF_ABSENT),), _applied)


def set_for(unit_ms: int, name: str, words: list[bytes]) -> KeyCommand:
    """SETEX and PSETEX."""
    return KeyCommand((Put(words[1], words[3], expiry_after(integer(words[2]), unit_ms, name)),), _ok)


def getset(words: list[bytes]) -> KeyCommand:
    return KeyCommand((Put(words[1], words[2], returns_old=True),), _value)


def getdel(words: list[bytes]) -> KeyCommand:
    return KeyCommand((Delete(words[1], returns_old=True),), _value)


def getex(words: list[bytes]) -> KeyCommand:
    expiry, flags = read_expiry(OptionWords(words, 2), "getex", keep=b"PERSIST", kept=NO_EXPIRY)
    if flags:
        raise CommandError(SYNTAX)
    key = Get(words[1])
    return _reading((key,), _value) if expiry is None else KeyCommand((key, Expire(key.key, expiry)), _value)


def _pairs(words: list[bytes], name: str) -> tuple[Put, ...]:
    if len(words) % 2 == 0:
        raise CommandError(f"ERR wrong number of arguments for '{name}' command")
    return tuple(Put(words[at], words[at + 1]) for at in range(1, len(words), 2))


def mset(words: list[bytes]) -> KeyCommand:
    return KeyCommand(_pairs(words, "mset"), _ok)


def msetnx(words: list[bytes]) -> KeyCommand:
    puts = _pairs(words, "msetnx")
    return KeyCommand(puts, _held, tuple(KeyExists(key, False) for key in dict.fromkeys(put.key for put in puts)))


def delete(words: list[bytes]) -> KeyCommand:
    return KeyCommand(tuple(map(Delete, words[1:])), _applied)


def increment(sign: int, words: list[bytes]) -> KeyCommand:
    """INCR, DECR, INCRBY, DECRBY."""
    amount = integer(words[2]) if len(words) > 2 else 1
    if sign < 0 and amount == INTEGER_MIN:
        raise CommandError("ERR decrement would overflow")
    return KeyCommand((Add(words[1], sign * amount),), _sum)


def append(words: list[bytes]) -> KeyCommand:
    return KeyCommand((Append(words[1], words[2]),), _length)


def expire(unit_ms: int, name: str, words: list[bytes], *, is_absolute: bool = False) -> KeyCommand | ComputedCommand:
    """EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT."""
    expiry = expiry_or_past(integer(words[2]), unit_ms, is_absolute=is_absolute, command=name)
    flags = {word.upper() for word in words[3:]}
    unknown = flags - {b"NX", b"XX", b"GT", b"LT"}
    if unknown:
        raise CommandError(f"ERR Unsupported option {min(unknown).decode('utf-8', 'backslashreplace')}")
    if b"NX" in flags and len(flags) > 1:
        raise CommandError("ERR NX and XX, GT or LT options at the same time are not compatible")
    if flags >= {b"GT", b"LT"}:
        raise CommandError("ERR GT and LT options at the same time are not compatible")
    if flags == {b"XX", b"LT"}:
        return ComputedCommand(words[1], partial(_sooner_than_some, words[1], expiry))
    when = (
        DeadlineWhen.IF_NONE
        if b"NX" in flags
        else DeadlineWhen.IF_LATER  # A key without a deadline has an infinite one, so XX adds nothing.
        if b"GT" in flags
        else DeadlineWhen.IF_SOONER
        if b"LT" in flags
        else DeadlineWhen.IF_SOME
        if b"XX" in flags
        else DeadlineWhen.ALWAYS
    )
    return KeyCommand((Expire(words[1], expiry, when),), _applied)


def _sooner_than_some(key: bytes, expiry: Expiry, record: Record | None, _: StoreLimits) -> tuple[Operation | None, Reply]:
    if record is None or not record.deadline_ms:
        return None, 0
    return Expire(key, expiry, DeadlineWhen.IF_SOONER), APPLIED


def persist(words: list[bytes]) -> KeyCommand:
    return KeyCommand((Expire(words[1], NO_EXPIRY),), _applied)


def incrbyfloat(words: list[bytes]) -> ComputedCommand:
    return ComputedCommand(words[1], partial(_float_sum, words[1], words[2]))


def _float_sum(key: bytes, word: bytes, record: Record | None, _: StoreLimits) -> tuple[Operation | None, Reply]:
    total = add_decimals(decimal(record.value if record is not None else b"0"), decimal(word))
    return Put(key, total, KEEP_EXPIRY), total


def setrange(words: list[bytes]) -> ComputedCommand:
    offset = integer(words[2])
    if offset < 0:
        raise CommandError("ERR offset is out of range")
    return ComputedCommand(words[1], partial(_overwritten, words[1], offset, words[3]))


def _overwritten(key: bytes, offset: int, part: bytes, record: Record | None, limits: StoreLimits) -> tuple[Operation | None, Reply]:
    before = b"" if record is None else record.value
    if not part:
        return None, len(before)
    if offset + len(part) > limits.value_bytes:
        raise too_long(limits)
    value = before[:offset].ljust(offset, b"\0") + part + before[offset + len(part) :]
    return Put(key, value, KEEP_EXPIRY), len(value)


def compare_and_set(words: list[bytes]) -> KeyCommand:
    """TRIPLICATE.CAS: set a key that has the old value, and keep its deadline."""
    return KeyCommand((Put(words[1], words[3], KEEP_EXPIRY),), _held, (ValueIs(words[1], words[2]),))


APPLIED = Simple("applied")
"""Stands for 1 if the operation of a `ComputedCommand` was applied, else for 0."""
