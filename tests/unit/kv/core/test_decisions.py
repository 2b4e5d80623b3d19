"""The leader's decision on a batch holds a bounded number of bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from triplicate.errors import ArgumentError
from triplicate.kv import Append, BatchResult, ChangeKind, Delete, Expire, Expiry, Get, KeyExists, Operation, Put, Record, VersionIs, When
from triplicate.kv.core import decisions
from triplicate.kv.core.decisions import BatchDecision
from triplicate.kv.core.operations import Condition, StoreBatch
from triplicate.kv.core.store_interface import StoreLimits
from triplicate.kv.core.store_records import Effect, encode_record, held_size_of, size_of

LIMITS = StoreLimits(answer_bytes=100)
TIME_MS = 50


def decided(operations: Sequence[Operation], conditions: Sequence[Condition] = (), deadline_ms: int = 0) -> BatchDecision:
    """The decision of a batch on a store in which each key has 60 bytes."""
    batch = StoreBatch(operations, conditions, True)
    return decisions.decide(batch, lambda key: Record(b"x" * 60, 3, deadline_ms), TIME_MS, 7, LIMITS)


@pytest.mark.parametrize(
    ("operations", "conditions"),
    [
        ([Get(b"a"), Get(b"b")], ()),
        ([Get(b"a"), Get(b"a")], ()),
        ([Append(b"a", b"y"), Append(b"a", b"y")], ()),
        ([Put(b"a", b"", returns_old=True), Delete(b"b", returns_old=True)], ()),
        ([Put(b"a", b"", when=When.IF_ABSENT), Put(b"b", b"", when=When.IF_ABSENT)], ()),
        ([Expire(b"a", Expiry(after_ms=1)), Expire(b"b", Expiry(after_ms=1))], ()),
        ([], [VersionIs(b"a", 3), VersionIs(b"b", 3)]),
        ([], [KeyExists(b"a"), KeyExists(b"b")]),
    ],
)
def test_a_batch_that_needs_or_returns_too_much_changes_nothing(operations: Sequence[Operation], conditions: Sequence[Condition]) -> None:
    decision = decided([Put(b"c", b"1"), *operations], conditions)
    assert isinstance(decision.result, ArgumentError)
    assert "at most 100 bytes together" in str(decision.result)
    assert decision.effects == []


@pytest.mark.parametrize("make", [Delete, lambda key: Put(key, b"1"), lambda key: Put(key, b"1", when=When.IF_PRESENT)])
def test_values_that_are_replaced_or_deleted_are_not_held(make: Callable[[bytes], Operation]) -> None:
    decision = decided([make(b"%d" % number) for number in range(10)])
    assert isinstance(decision.result, BatchResult)
    assert len(decision.effects) == 10


def test_the_values_of_changed_deadlines_are_held_and_not_logged() -> None:
    limits = StoreLimits(answer_bytes=100, batch_bytes=70)
    batch = StoreBatch([Expire(b"a", Expiry(after_ms=1))])
    decision = decisions.decide(batch, lambda key: Record(b"x" * 60, 3, 0), TIME_MS, 7, limits)
    assert isinstance(decision.result, BatchResult)
    assert len(encode_record(decision.effects)) <= size_of(decision.effects) + 2 < 70
    assert held_size_of(decision.effects) == size_of(decision.effects) + 60
    put = Effect(ChangeKind.PUT, b"a", b"x" * 60)
    assert held_size_of([put]) == size_of([put]) > 60


def test_values_of_expired_keys_are_not_held() -> None:
    decision = decided([Get(b"%d" % number) for number in range(10)], deadline_ms=TIME_MS)
    assert isinstance(decision.result, BatchResult)
    assert [effect.kind for effect in decision.effects] == [ChangeKind.EXPIRE] * 10
