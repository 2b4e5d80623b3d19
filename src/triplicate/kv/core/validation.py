"""Whether a request is within the limits of a store. Pure."""

from __future__ import annotations

from triplicate.errors import ArgumentError
from triplicate.kv.core.operations import (
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
    Put,
    StoreBatch,
    ValueIs,
    VersionIs,
    When,
)
from triplicate.kv.core.store_interface import KeyRange, StoreLimits

DEADLINE_MAX_MS = (1 << 62) - 1
"""Latest deadline, milliseconds since the epoch."""
_OPERATION_BYTES = 32
"""Bytes that an operation or a condition counts beside its key and its value."""


def check_bytes(what: str, value: object) -> None:
    """Raises ArgumentError: something is no bytes. Also a bytearray is none: it may be changed while its batch waits."""
    if not isinstance(value, bytes):
        raise ArgumentError(f"{what} is bytes, not {type(value).__name__}")


def check_key(key: bytes, limits: StoreLimits) -> None:
    """Raises ArgumentError: the key is no bytes, empty or too long."""
    if not isinstance(key, bytes):
        check_bytes("a key", key)
    if not 0 < len(key) <= limits.key_bytes:
        raise ArgumentError(f"a key has 1 to {limits.key_bytes} bytes, not {len(key)}")


def check_range(keys: KeyRange) -> None:
    """Raises ArgumentError: the range is no `KeyRange`, or one of its bounds is no bytes."""
    if not isinstance(keys, KeyRange):
        raise ArgumentError(f"the keys to read are a KeyRange, not {type(keys).__name__}; KeyRange.prefix(b'…') has the keys of a prefix")
    check_bytes("the start of a range of keys", keys.start)
    if keys.end is not None:
        check_bytes("the end of a range of keys", keys.end)


def check_integer(what: str, number: object) -> None:
    """Raises ArgumentError: something is no integer."""
    if type(number) is not int:
        raise ArgumentError(f"{what} is an integer, not {type(number).__name__}")


def check_count(what: str, number: int, limits: StoreLimits) -> None:
    """Raises ArgumentError: there are too many of something, or none, or its number is no integer."""
    check_integer(what, number)
    if not 0 < number <= limits.batch_operations:
        raise ArgumentError(f"{what}: 1 to {limits.batch_operations} at a time, not {number}; send them in parts")


def check_batch(batch: StoreBatch, limits: StoreLimits) -> int:
    """Check a batch. Returns its size, bytes.

    A batch that passes can be decided: for any content of the store, no operation fails by its types.

    Raises:
        ArgumentError: a key, a value, a deadline or the batch is beyond the limits, or something has a wrong type. The message names it.
    """
    check_count("operations and conditions of a batch", len(batch.operations) + len(batch.conditions), limits)
    size = 0
    for condition in batch.conditions:
        size += _check_condition(condition, limits)
    for operation in batch.operations:
        size += _check_operation(operation, limits)
    if size > limits.batch_bytes:
        raise ArgumentError(f"a batch has at most {limits.batch_bytes} bytes of keys and values, not {size}; send it in parts")
    return size


def _check_condition(condition: Condition, limits: StoreLimits) -> int:
    if not isinstance(condition, KeyExists | ValueIs | VersionIs):
        raise ArgumentError(f"a condition of a batch is a KeyExists, ValueIs or VersionIs, not {type(condition).__name__}")
    check_key(condition.key, limits)
    size = _OPERATION_BYTES + len(condition.key)
    if isinstance(condition, VersionIs):
        check_integer("a version", condition.version)
    elif isinstance(condition, ValueIs) and condition.value is not None:
        check_bytes("a value", condition.value)
        size += len(condition.value)
    return size


def _check_operation(operation: Operation, limits: StoreLimits) -> int:
    if isinstance(operation, Put):
        value = operation.value
        if operation.expiry is not NO_EXPIRY:
            _check_expiry(operation.expiry)
        if not isinstance(operation.when, When):
            raise ArgumentError(f"the condition of a put is a When, not {type(operation.when).__name__}")
    elif isinstance(operation, Append):
        value = operation.suffix
    elif isinstance(operation, Expire):
        value = b""
        _check_deadline(operation)
    elif isinstance(operation, Add):
        value = b""
        check_integer("an amount", operation.amount)
        if not -(1 << 63) <= operation.amount < 1 << 63:
            raise ArgumentError(f"an amount is a signed 64-bit integer, not {operation.amount}")
    elif isinstance(operation, Get | Delete):
        value = b""
    else:
        raise ArgumentError(f"an operation of a batch is a Get, Put, Delete, Expire, Add or Append, not {type(operation).__name__}")
    check_key(operation.key, limits)
    if not isinstance(value, bytes):
        check_bytes("a value", value)
    if len(value) > limits.value_bytes:
        raise ArgumentError(f"a value has at most {limits.value_bytes} bytes (store.value_bytes), not {len(value)}")
    return _OPERATION_BYTES + len(operation.key) + len(value)


def _check_deadline(operation: Expire) -> None:
    _check_expiry(operation.expiry)
    if operation.expiry.keeps:
        raise ArgumentError("a change of a deadline cannot keep the deadline: give a time, or no expiry to remove it")
    if not isinstance(operation.when, DeadlineWhen):
        raise ArgumentError(f"the condition of a deadline is a DeadlineWhen, not {type(operation.when).__name__}")


def _check_expiry(expiry: Expiry) -> None:
    if not isinstance(expiry, Expiry):
        raise ArgumentError(f"an expiry is an Expiry, not {type(expiry).__name__}")
    for number in (expiry.at_ms, expiry.after_ms):
        if number is not None:
            check_integer("a deadline", number)
    if (expiry.at_ms is not None) + (expiry.after_ms is not None) + expiry.keeps > 1:
        raise ArgumentError("an expiry is absolute, relative, or keeps the deadline: only one of them")
    if expiry.after_ms is not None and not 0 < expiry.after_ms <= DEADLINE_MAX_MS:
        raise ArgumentError(f"a relative expiry is 1 to {DEADLINE_MAX_MS} ms, not {expiry.after_ms}")
    if expiry.at_ms is not None and not -DEADLINE_MAX_MS <= expiry.at_ms <= DEADLINE_MAX_MS:
        raise ArgumentError(f"an absolute expiry is at most {DEADLINE_MAX_MS} ms since the epoch, not {expiry.at_ms}")
