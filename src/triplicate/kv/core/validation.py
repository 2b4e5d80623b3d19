"""Whether a request is within the limits of a store. Pure."""

from __future__ import annotations

from triplicate.errors import ArgumentError
from triplicate.kv.core.operations import NO_EXPIRY, Add, Append, Condition, Expire, Expiry, Operation, Put, StoreBatch, ValueIs
from triplicate.kv.core.store_interface import StoreLimits

DEADLINE_MAX_MS = (1 << 62) - 1
"""Latest deadline, milliseconds since the epoch."""
_OPERATION_BYTES = 32
"""Bytes that an operation or a condition counts beside its key and its value."""


def check_key(key: bytes, limits: StoreLimits) -> None:
    """Raises ArgumentError: the key is empty or too long."""
    if not 0 < len(key) <= limits.key_bytes:
        raise ArgumentError(f"a key has 1 to {limits.key_bytes} bytes, not {len(key)}")


def check_count(what: str, number: int, limits: StoreLimits) -> None:
    """Raises ArgumentError: there are too many of something, or none."""
    if not 0 < number <= limits.batch_operations:
        raise ArgumentError(f"{what}: 1 to {limits.batch_operations} at a time, not {number}; send them in parts")


def check_batch(batch: StoreBatch, limits: StoreLimits) -> int:
    """Check a batch. Returns its size, bytes.

    Raises:
        ArgumentError: a key, a value, a deadline or the batch is beyond the limits. The message names the limit.
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
    check_key(condition.key, limits)
    return _OPERATION_BYTES + len(condition.key) + (len(condition.value or b"") if isinstance(condition, ValueIs) else 0)


def _check_operation(operation: Operation, limits: StoreLimits) -> int:
    check_key(operation.key, limits)
    value = b""
    if isinstance(operation, Put):
        value = operation.value
        if operation.expiry is not NO_EXPIRY:
            _check_expiry(operation.expiry)
    elif isinstance(operation, Append):
        value = operation.suffix
    elif isinstance(operation, Expire):
        _check_expiry(operation.expiry)
        if operation.expiry.keeps:
            raise ArgumentError("a change of a deadline cannot keep the deadline: give a time, or no expiry to remove it")
    elif isinstance(operation, Add) and not -(1 << 63) <= operation.amount < 1 << 63:
        raise ArgumentError(f"an amount is a signed 64-bit integer, not {operation.amount}")
    if len(value) > limits.value_bytes:
        raise ArgumentError(f"a value has at most {limits.value_bytes} bytes (store.value_bytes), not {len(value)}")
    return _OPERATION_BYTES + len(operation.key) + len(value)


def _check_expiry(expiry: Expiry) -> None:
    if (expiry.at_ms is not None) + (expiry.after_ms is not None) + expiry.keeps > 1:
        raise ArgumentError("an expiry is absolute, relative, or keeps the deadline: only one of them")
    if expiry.after_ms is not None and not 0 < expiry.after_ms <= DEADLINE_MAX_MS:
        raise ArgumentError(f"a relative expiry is 1 to {DEADLINE_MAX_MS} ms, not {expiry.after_ms}")
    if expiry.at_ms is not None and not -DEADLINE_MAX_MS <= expiry.at_ms <= DEADLINE_MAX_MS:
        raise ArgumentError(f"an absolute expiry is at most {DEADLINE_MAX_MS} ms since the epoch, not {expiry.at_ms}")
