"""Random batches of a key-value store against a dictionary: answers, effects, and the copies that apply the effects."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.errors import ArgumentError, WrongValue
from triplicate.kv import (
    KEEP_EXPIRY,
    NO_EXPIRY,
    Add,
    Append,
    BatchResult,
    ChangeKind,
    Delete,
    Expire,
    Expiry,
    Get,
    KeyExists,
    Operation,
    Put,
    Record,
    StoreBatch,
    StoreLimits,
    ValueIs,
    VersionIs,
    When,
)
from triplicate.kv.core.decisions import decide
from triplicate.kv.core.operations import Condition
from triplicate.kv.core.store_records import Effect, decode_record, encode_record

LIMITS = StoreLimits(value_bytes=20)
KEYS = st.sampled_from([b"a", b"b", b"\xff"])
VALUES = st.sampled_from([b"", b"1", b"-7", b"text", b"9223372036854775807", b"01"])
EXPIRIES = st.one_of(
    st.just(NO_EXPIRY),
    st.just(KEEP_EXPIRY),
    st.builds(lambda ms: Expiry(after_ms=ms), st.integers(1, 30)),
    st.builds(Expiry, st.integers(0, 60)),
)
OPERATIONS = st.one_of(
    st.builds(Get, KEYS),
    st.builds(Put, KEYS, VALUES, EXPIRIES, st.sampled_from(When), st.booleans()),
    st.builds(Delete, KEYS, st.booleans()),
    st.builds(Expire, KEYS, EXPIRIES.filter(lambda expiry: not expiry.keeps)),
    st.builds(Add, KEYS, st.integers(-2, 2)),
    st.builds(Append, KEYS, VALUES),
)
CONDITIONS = st.one_of(
    st.builds(KeyExists, KEYS, st.booleans()), st.builds(ValueIs, KEYS, st.none() | VALUES), st.builds(VersionIs, KEYS, st.integers(0, 4))
)
BATCHES = st.builds(StoreBatch, st.lists(OPERATIONS, min_size=1, max_size=4), st.lists(CONDITIONS, max_size=2), st.booleans())


class Model:
    """Keys with value, version and deadline, as one process without a log would keep them."""

    def __init__(self) -> None:
        self.keys: dict[bytes, Record] = {}

    def expire(self, time_ms: int) -> None:
        self.keys = {key: record for key, record in self.keys.items() if not record.deadline_ms or record.deadline_ms > time_ms}

    def is_met(self, wanted: Condition) -> bool:
        record = self.keys.get(wanted.key)
        match wanted:
            case KeyExists(_, expected):
                return (record is not None) == expected
            case ValueIs(_, value):
                return (record.value if record else None) == value
            case VersionIs(_, version):
                return (record.version if record else 0) == version

    def run(self, operation: Operation, time_ms: int, version: int) -> tuple[bool, bytes | None]:
        """Whether it was applied, and its value."""
        key, record = operation.key, self.keys.get(operation.key)
        old_ms = record.deadline_ms if record else 0
        match operation:
            case Get():
                return record is not None, record.value if record else None
            case Put(_, value, expiry, when, returns_old):
                old = record.value if record and returns_old else None
                if when is When.ALWAYS or (when is When.IF_ABSENT) == (record is None):
                    self.store(key, Record(value, version, deadline(expiry, time_ms, old_ms)), time_ms)
                    return True, old
                return False, old
            case Delete(_, returns_old):
                self.keys.pop(key, None)
                return record is not None, record.value if record and returns_old else None
            case Expire(_, expiry):
                if record is None or (expiry == NO_EXPIRY and not old_ms):
                    return False, None
                self.store(key, record._replace(version=version, deadline_ms=deadline(expiry, time_ms, old_ms)), time_ms)
                return True, None
            case Add(_, amount):
                text = record.value if record else b"0"
                if text not in (b"0", b"1", b"-7", b"9223372036854775807") and (not text.lstrip(b"-").isdigit() or text == b"01"):
                    raise WrongValue
                if text.startswith((b"0", b"-0")) and text != b"0":
                    raise WrongValue
                if abs(int(text) + amount) >= 1 << 63:
                    raise WrongValue
                value = str(int(text) + amount).encode()
            case Append(_, suffix):
                value = (record.value if record else b"") + suffix
                if len(value) > LIMITS.value_bytes:
                    raise WrongValue
        self.store(key, Record(value, version, old_ms), time_ms)
        return True, value

    def store(self, key: bytes, record: Record, time_ms: int) -> None:
        self.keys[key] = record
        self.expire(time_ms)


def deadline(expiry: Expiry, time_ms: int, old_ms: int) -> int:
    if expiry.keeps:
        return old_ms
    if expiry.at_ms is not None:
        return expiry.at_ms or 1
    return time_ms + expiry.after_ms if expiry.after_ms is not None else 0


def apply_effects(stored: dict[bytes, Record], effects: list[Effect], version: int) -> None:
    """Apply a record, as every copy does."""
    for effect in effects:
        assert effect.existed == (effect.key in stored)
        assert effect.old_deadline_ms == (stored[effect.key].deadline_ms if effect.existed else 0)
        if effect.kind is ChangeKind.PUT:
            assert effect.value is not None
            stored[effect.key] = Record(effect.value, version, effect.deadline_ms)
        elif effect.kind is ChangeKind.DEADLINE:
            stored[effect.key] = Record(stored[effect.key].value, version, effect.deadline_ms)
        else:
            del stored[effect.key]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(BATCHES, st.integers(0, 8)), max_size=8))
def test_batches_do_what_a_dictionary_does(steps: list[tuple[StoreBatch, int]]) -> None:
    model, stored, time_ms, position = Model(), dict[bytes, Record](), 1, 0
    for batch, passed_ms in steps:
        time_ms += passed_ms
        model.expire(time_ms)
        before = dict(model.keys)
        decision = decide(batch, stored.get, time_ms, position, LIMITS)
        expected: list[tuple[bool, bytes | None]] | None = None
        if all(model.is_met(condition) for condition in batch.conditions):
            expected = []
            for operation in batch.operations:
                try:
                    expected.append(model.run(operation, time_ms, position + 1))
                except WrongValue:
                    if not batch.continues_after_errors:
                        model.keys, expected = before, None
                        break
                    expected.append((False, None))
            if expected is None:
                assert isinstance(decision.result, WrongValue)
            else:
                assert isinstance(decision.result, BatchResult)
                assert [(outcome.applied, outcome.value) for outcome in decision.result.outcomes] == expected
        else:
            assert isinstance(decision.result, BatchResult)
            assert not decision.result.held
        if decision.effects:
            position += 1
            apply_effects(stored, decode_record(encode_record(decision.effects)), position)
        if isinstance(decision.result, BatchResult):
            assert decision.result.position == position
        visible = {key: record for key, record in stored.items() if not record.deadline_ms or record.deadline_ms > time_ms}
        assert {key: record[::2] for key, record in visible.items()} == {key: record[::2] for key, record in model.keys.items()}


@given(KEYS, VALUES, st.none() | st.builds(Record, VALUES, st.integers(1, 4), st.integers(0, 8)), st.integers(1, 8))
def test_a_plain_put_is_decided_as_in_a_batch_with_others(key: bytes, value: bytes, stored: Record | None, time_ms: int) -> None:
    lookup = {key: stored}.get
    alone = decide(StoreBatch((Put(key, value),)), lambda key: lookup(key), time_ms, 4, LIMITS)
    # A condition that always holds makes it a batch like any other.
    general = decide(StoreBatch((Put(key, value),), (KeyExists(b"absent", False),)), lambda key: lookup(key), time_ms, 4, LIMITS)
    assert isinstance(general.result, BatchResult)
    assert alone.result == general.result._replace(outcomes=tuple(general.result.outcomes))
    assert list(alone.effects) == list(general.effects)


def test_a_plain_put_beyond_the_limit_of_a_batch_is_refused() -> None:
    limits = StoreLimits(value_bytes=100, batch_bytes=100)
    assert isinstance(decide(StoreBatch((Put(b"k", b"v" * 75),)), lambda _: None, 1, 0, limits).result, BatchResult)
    assert isinstance(decide(StoreBatch((Put(b"k", b"v" * 76),)), lambda _: None, 1, 0, limits).result, ArgumentError)
