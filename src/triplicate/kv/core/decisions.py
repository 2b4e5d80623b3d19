"""The effects of a batch: the leader decides them from the state before it, the time and the position of its record. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from triplicate.errors import ArgumentError, StoreError, SumOutOfRange, WrongValue
from triplicate.kv.core.key_expiry import is_expired, new_deadline_ms
from triplicate.kv.core.operations import (
    NEVER,
    NO_EXPIRY,
    Add,
    Append,
    BatchResult,
    Condition,
    DeadlineWhen,
    Delete,
    Expire,
    Get,
    KeyExists,
    Operation,
    Outcome,
    Put,
    StoreBatch,
    ValueIs,
    When,
)
from triplicate.kv.core.store_interface import ChangeKind, Record, StoreLimits
from triplicate.kv.core.store_records import EFFECT_OVERHEAD, Effect, size_of

_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 63) - 1

Lookup = Callable[[bytes], Record | None]
"""The stored record of a key, which may be expired."""


class BatchDecision(NamedTuple):
    """The effects and the answer of a batch."""

    result: BatchResult | StoreError | ArgumentError
    effects: Sequence[Effect]
    """Those that are logged; empty if nothing changes."""


def decide(batch: StoreBatch, lookup: Lookup, time_ms: int, before: int, limits: StoreLimits) -> BatchDecision:
    """Decide a batch that was checked.

    Args:
        lookup: the state before the batch.
        time_ms: time of the entry.
        before: position before the record of the batch.
    """
    put = _plain_put(batch, limits)
    if put is not None:
        return _decided_put(put, lookup(put.key), time_ms, before)
    view = _View(lookup, time_ms, before + 1, limits.answer_bytes)
    try:
        return _decide_all(batch, view, before, limits)
    except ArgumentError as error:
        return BatchDecision(error, view.expiries())


def _decide_all(batch: StoreBatch, view: _View, before: int, limits: StoreLimits) -> BatchDecision:
    """Raises ArgumentError: the batch needs, returns or changes more than the limits allow."""
    if not all(_holds(condition, view.get(condition.key)) for condition in batch.conditions):
        return _result(view, before, view.expiries(), held=False)
    outcomes: list[Outcome] = []
    answer_bytes = 0
    for operation in batch.operations:
        try:
            outcome = _run(operation, view, limits)
        except WrongValue as error:
            if not batch.continues_after_errors:
                return BatchDecision(error, view.expiries())
            outcome = _outcome(view.get(operation.key), applied=False, error=error)
        outcomes.append(outcome)
        if outcome.value is not None:
            answer_bytes += len(outcome.value)
            if answer_bytes > limits.answer_bytes:
                raise ArgumentError(f"the values that a batch returns have at most {limits.answer_bytes} bytes together; send it in parts")
    size = size_of(effects := view.effects())
    if size > limits.batch_bytes:
        raise ArgumentError(f"the changes of a batch have at most {limits.batch_bytes} bytes, not {size}; send them in parts")
    return _result(view, before, effects, held=True, outcomes=outcomes)


def _plain_put(batch: StoreBatch, limits: StoreLimits) -> Put | None:
    """The put of the most frequent batch: one that always applies, without a deadline."""
    if len(batch.operations) != 1 or batch.conditions:
        return None
    put = batch.operations[0]
    if not isinstance(put, Put) or put.when is not When.ALWAYS or put.expiry is not NO_EXPIRY or put.returns_old:
        return None
    return put if EFFECT_OVERHEAD + len(put.key) + len(put.value) <= limits.batch_bytes else None


def _decided_put(put: Put, stored: Record | None, time_ms: int, before: int) -> BatchDecision:
    """As a batch with a plain put is decided otherwise, at a fraction of the cost."""
    old_ms = NEVER if stored is None else stored.deadline_ms
    effect = Effect(ChangeKind.PUT, put.key, put.value, NEVER, old_ms, stored is not None)
    return BatchDecision(BatchResult(True, (Outcome(True, None, before + 1),), before + 1, time_ms), (effect,))


def _result(view: _View, before: int, effects: Sequence[Effect], *, held: bool, outcomes: Sequence[Outcome] = ()) -> BatchDecision:
    return BatchDecision(BatchResult(held, outcomes, before + (1 if effects else 0), view.time_ms), effects)


class _View:
    """The state that the operations of one batch see and change.

    Args:
        version: the version of the keys that the batch changes.
        limit_bytes: upper bound of the values from before the batch that are held at a time.
    """

    def __init__(self, lookup: Lookup, time_ms: int, version: int, limit_bytes: int) -> None:
        self._lookup = lookup
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self.time_ms = time_ms
        self.version = version
        self._stored: dict[bytes, Record | None] = {}
        """Of each key that was looked at: the record before the batch, which may be expired. One that is expired, or was replaced, has no
        value any more."""
        self._now: dict[bytes, Record | None] = {}
        self._valued: set[bytes] = set()
        """Keys whose value the batch has stored."""

    def get(self, key: bytes) -> Record | None:
        """The record of a key. Raises ArgumentError: the values that the batch looks at are too large together."""
        if key in self._now:
            return self._now[key]
        stored = self._stored[key] = self._lookup(key)
        found = self._now[key] = stored
        if stored is not None:
            self._held_bytes += len(stored.value)
            if is_expired(stored.deadline_ms, self.time_ms):
                self._forget_value(key)
                found = self._now[key] = None
            elif self._held_bytes > self._limit_bytes:
                raise ArgumentError(f"the values that a batch looks at have at most {self._limit_bytes} bytes together; send it in parts")
        return found

    def _forget_value(self, key: bytes) -> None:
        """The value from before the batch is not needed any more."""
        stored = self._stored[key]
        if stored is not None and stored.value:
            self._held_bytes -= len(stored.value)
            self._stored[key] = stored._replace(value=b"")

    def put(self, key: bytes, value: bytes, deadline_ms: int) -> None:
        """Store a value. A deadline that has passed deletes the key."""
        self._valued.add(key)
        self._forget_value(key)
        self.keep(key, value, deadline_ms)

    def keep(self, key: bytes, value: bytes, deadline_ms: int) -> None:
        """Set the deadline of a key that has this value."""
        is_gone = is_expired(deadline_ms, self.time_ms)
        self._now[key] = None if is_gone else Record(value, self.version, deadline_ms)

    def delete(self, key: bytes) -> None:
        self._forget_value(key)
        self._now[key] = None

    def effects(self) -> list[Effect]:
        """The differences to the state before, by key."""
        found = (self._effect(key, stored, self._now[key]) for key, stored in self._stored.items())
        return [effect for effect in found if effect is not None]

    def expiries(self) -> list[Effect]:
        """The effects of a batch that changes nothing: an answer that depends on an expiry is given after the expiry is in the log."""
        expired = ((key, stored) for key, stored in self._stored.items() if stored and is_expired(stored.deadline_ms, self.time_ms))
        return [Effect(ChangeKind.EXPIRE, key, None, NEVER, stored.deadline_ms, True) for key, stored in expired]

    def _effect(self, key: bytes, stored: Record | None, now: Record | None) -> Effect | None:
        if now is stored:
            return None
        old_ms = NEVER if stored is None else stored.deadline_ms
        if now is None:
            if stored is None:
                return None
            kind = ChangeKind.EXPIRE if is_expired(old_ms, self.time_ms) else ChangeKind.DELETE
            return Effect(kind, key, None, NEVER, old_ms, True)
        kind = ChangeKind.PUT if key in self._valued else ChangeKind.DEADLINE
        return Effect(kind, key, now.value, now.deadline_ms, old_ms, stored is not None)


def _holds(condition: Condition, found: Record | None) -> bool:
    if isinstance(condition, KeyExists):
        return (found is not None) is condition.expected
    if isinstance(condition, ValueIs):
        return (None if found is None else found.value) == condition.value
    return (0 if found is None else found.version) == condition.version


def _outcome(found: Record | None, *, applied: bool, value: bytes | None = None, error: StoreError | None = None) -> Outcome:
    if found is None:
        return Outcome(applied, value, error=error)
    return Outcome(applied, value, found.version, found.deadline_ms, error)


def _run(operation: Operation, view: _View, limits: StoreLimits) -> Outcome:
    """Run one operation. Raises WrongValue."""
    key = operation.key
    found = view.get(key)
    if isinstance(operation, Get):
        return _outcome(found, applied=found is not None, value=None if found is None else found.value)
    if isinstance(operation, Put):
        old = found.value if found is not None and operation.returns_old else None
        if operation.when is When.ALWAYS or (operation.when is When.IF_PRESENT) is (found is not None):
            view.put(key, operation.value, new_deadline_ms(operation.expiry, view.time_ms, _deadline(found)))
            return _outcome(view.get(key), applied=True, value=old)
        return _outcome(found, applied=False, value=old)
    if isinstance(operation, Delete):
        view.delete(key)
        return Outcome(found is not None, found.value if found is not None and operation.returns_old else None)
    if isinstance(operation, Expire):
        return _expire(operation, found, view)
    value = _added(operation, found) if isinstance(operation, Add) else _appended(operation, found, limits)
    view.put(key, value, _deadline(found))
    return _outcome(view.get(key), applied=True, value=value)


def _deadline(found: Record | None) -> int:
    return NEVER if found is None else found.deadline_ms


def _expire(operation: Expire, found: Record | None, view: _View) -> Outcome:
    if found is None:
        return Outcome(False)
    deadline_ms = new_deadline_ms(operation.expiry, view.time_ms, found.deadline_ms)
    applies = found.deadline_ms != NEVER if operation.expiry == NO_EXPIRY else _is_due(operation.when, found.deadline_ms, deadline_ms)
    if applies:
        view.keep(operation.key, found.value, deadline_ms)
    return _outcome(view.get(operation.key), applied=applies)


def _is_due(when: DeadlineWhen, old_ms: int, new_ms: int) -> bool:
    """Whether a deadline is to be replaced."""
    match when:
        case DeadlineWhen.ALWAYS:
            return True
        case DeadlineWhen.IF_NONE:
            return old_ms == NEVER
        case DeadlineWhen.IF_SOME:
            return old_ms != NEVER
        case DeadlineWhen.IF_LATER:
            return old_ms != NEVER and new_ms > old_ms
        case DeadlineWhen.IF_SOONER:
            return old_ms == NEVER or new_ms < old_ms


def _added(operation: Add, found: Record | None) -> bytes:
    text = b"0" if found is None else found.value
    old = int(text) if _INTEGER.fullmatch(text) else None
    if old is None or not _INTEGER_MIN <= old <= _INTEGER_MAX:
        raise WrongValue("the value is not the decimal text of a signed 64-bit integer; store one, or delete the key, before adding to it")
    if not _INTEGER_MIN <= old + operation.amount <= _INTEGER_MAX:
        raise SumOutOfRange(f"{old} and {operation.amount} have a sum that is no signed 64-bit integer")
    return b"%d" % (old + operation.amount)


def _appended(operation: Append, found: Record | None, limits: StoreLimits) -> bytes:
    value = (b"" if found is None else found.value) + operation.suffix
    if len(value) > limits.value_bytes:
        raise WrongValue(f"the value would have {len(value)} bytes; a value has at most {limits.value_bytes} (store.value_bytes)")
    return value
