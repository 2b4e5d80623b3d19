"""The table of producers: what is next, what is repeated, what is forgotten; and its node."""

from __future__ import annotations

import json

import pytest

from triplicate.errors import ArgumentError, CorruptionError, FormatError, ProducerFenced, SequenceGap, TooManyProducers
from triplicate.log.core.head import NODE_LIMIT_BYTES
from triplicate.log.core.payload import Producer
from triplicate.log.core.producer_table import (
    PRODUCERS_LIMIT,
    Batch,
    ProducerState,
    ProducerTable,
    Repeated,
    decode_producers,
    encode_producers,
    merged,
    producer_id,
)

P, Q, R = (producer_id(name) for name in "pqr")


def table(*saved: ProducerState, limit: int = 2) -> ProducerTable[str]:
    return ProducerTable("l", saved, 10_000_000, limit)


def test_a_producer_begins_anywhere_and_goes_on_without_gaps() -> None:
    known = table()
    assert known.check("p", P, 0, 7, 0) is None
    known.accept(P, 0, 7, 0, "entry")
    assert known.check("p", P, 0, 8, 0) is None
    for gap in (9, 2**64 - 1):
        with pytest.raises(SequenceGap, match=f"sequence number 8 comes next, {gap} was given"):
            known.check("p", P, 0, gap, 0)
    assert known.last_sequence(P) == 7
    assert known.check("q", Q, 0, 0, 0) is None, "another producer has numbers of its own"


def test_a_repetition_finds_the_entry_of_its_record() -> None:
    known = table()
    entries = [f"entry {place}" for place in range(10)]
    for sequence in range(20):
        known.accept(P, 0, sequence, 0, entries[sequence // 2])
    assert known.check("p", P, 0, 0, 0) == Repeated(0, Batch(0, 2, "entry 0")), "none of them is durable"
    for first in range(0, 16, 2):
        known.acknowledge(Producer(P, 0, first), 2, first, 0)
    assert known.check("p", P, 0, 19, 0) == Repeated(19, Batch(18, 2, "entry 9"))
    assert known.check("p", P, 0, 10, 0) == Repeated(10, Batch(10, 2, "entry 5"))
    assert known.check("p", P, 0, 9, 0) == Repeated(9, None), "five entries are remembered"


def test_an_entry_on_its_way_is_remembered_behind_any_number_of_others() -> None:
    known = table()
    for sequence in range(1000):
        known.accept(P, 0, sequence, 0, f"entry {sequence}")
    for sequence in range(1000):
        assert known.check("p", P, 0, sequence, 0) == Repeated(sequence, Batch(sequence, 1, f"entry {sequence}"))
    known.acknowledge(Producer(P, 0, 0), 1, 0, 0)
    known.acknowledge(Producer(P, 0, 1), 899, 1, 0)
    found = [known.check("p", P, 0, sequence, 0) for sequence in (0, 899, 900, 999)]
    assert [repeated is not None and repeated.batch is not None for repeated in found] == [False, False, True, True]
    known.acknowledge(Producer(P, 0, 900), 100, 900, 0)
    assert known.check("p", P, 0, 994, 0) == Repeated(994, None)
    assert known.check("p", P, 0, 995, 0) == Repeated(995, Batch(995, 1, "entry 995"))


def test_an_old_instance_of_a_producer_is_refused() -> None:
    known = table()
    known.accept(P, 3, 0, 0, "entry")
    assert known.check("p", P, 4, 1, 0) is None
    with pytest.raises(ProducerFenced, match=r"'p'.*epoch 3.*epoch 2"):
        known.check("p", P, 2, 1, 0)
    for epoch, sequence in ((2**32, 1), (-1, 1), (True, 1), (3, True), (3, -1), (3, 2**64)):
        with pytest.raises(ArgumentError):
            known.check("p", P, epoch, sequence, 0)


def test_only_what_is_acknowledged_is_durable() -> None:
    known = table(ProducerState(P, 1, 5, 50, 1))
    known.accept(P, 1, 6, 2, "entry")
    known.accept(P, 1, 7, 2, "entry")
    known.accept(Q, 0, 0, 2, "other")
    assert known.durable() == [ProducerState(P, 1, 5, 50, 1)]
    known.acknowledge(Producer(P, 1, 6), 2, 60, 3)
    assert known.durable() == [ProducerState(P, 1, 7, 61, 3)]
    assert known.last_sequence(P) == 7


def test_a_full_table_forgets_an_idle_producer_and_no_other() -> None:
    known = table()
    for identity, time_us in ((P, 1_000_000), (Q, 5_000_000)):
        known.accept(identity, 0, 0, time_us, "entry")
        known.acknowledge(Producer(identity, 0, 0), 1, 0, time_us)
    with pytest.raises(TooManyProducers, match="producer 'r' is not admitted"):
        known.check("r", R, 0, 0, 10_999_999)
    assert known.check("p", P, 0, 1, 10_999_999) is None, "those that it knows go on"
    assert known.check("r", R, 0, 0, 11_000_000) is None
    assert (known.last_sequence(P), known.last_sequence(Q)) == (None, 0)


def test_a_full_table_forgets_no_producer_whose_records_are_on_their_way() -> None:
    known = table(ProducerState(P, 0, 4, 4, 1_000_000))
    known.accept(P, 0, 5, 1_000_000, "entry")
    known.accept(Q, 0, 0, 2_000_000, "other")
    with pytest.raises(TooManyProducers):
        known.check("r", R, 0, 0, 99_000_000)
    known.acknowledge(Producer(Q, 0, 0), 1, 9, 2_000_000)
    assert known.check("r", R, 0, 0, 99_000_000) is None
    assert (known.last_sequence(P), known.last_sequence(Q)) == (5, None)


def test_records_that_were_counted_are_merged_with_what_was_saved() -> None:
    saved = [ProducerState(P, 0, 5, 50, 1), ProducerState(Q, 0, 1, 51, 2)]
    later = [ProducerState(P, 0, 6, 60, 3), ProducerState(R, 0, 0, 61, 4)]
    assert {state.id: state.sequence for state in merged(saved, later)} == {P: 6, Q: 1, R: 0}
    assert {state.id for state in merged(saved, later, limit=2)} == {P, R}, "the oldest is forgotten"


def test_a_full_node_is_small_enough() -> None:
    ids = [place.to_bytes(2, "big") + b"\xff" * 14 for place in range(PRODUCERS_LIMIT)]
    most = [ProducerState(identity, 2**32 - 1, 2**64 - 1, 2**63 - 1, 2**51) for identity in ids]
    data = encode_producers(most, 2**63 - 1)
    assert len(data) <= NODE_LIMIT_BYTES
    assert decode_producers(data, "l") == (most, 2**63 - 1)


def test_a_node_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(FormatError, match="the producers of log 'l'"):
        decode_producers(json.dumps({"v": 2, "producers": [], "end": 0}).encode(), "l")
    damaged: list[object] = [None, [[]], [["zz", 0, 0, 0, 0]], [["00", 0, 0]]]
    for producers in damaged:
        with pytest.raises(CorruptionError, match="the producers of log 'l'"):
            decode_producers(json.dumps({"v": 1, "producers": producers, "end": 0}).encode(), "l")


def test_a_producer_needs_a_name_of_limited_length() -> None:
    assert len({producer_id("p"), producer_id("P")}) == 2
    for name in ("", "x" * 257):
        with pytest.raises(ArgumentError):
            producer_id(name)
