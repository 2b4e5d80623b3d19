"""The verdict on random ledgers agrees with one that regards every entry alone."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.autorecovery.core.ledger_copies import BookieAnswer
from triplicate.autorecovery.core.needed_copies import difference, intersection, lacking_bookies, names_any, settled_end
from triplicate.ledger import Availability, EnsembleSegment, LedgerMetadata, decode_availability, encode_availability, write_set

BOOKIES = "abcdef"
LEAVING = "z"


def availability(entries: set[int]) -> Availability:
    return decode_availability(encode_availability(range(entry, entry + 1) for entry in sorted(entries)))


@st.composite
def ledgers(draw: st.DrawFn) -> LedgerMetadata:
    size = draw(st.integers(1, 5))
    quorum = draw(st.integers(1, size))
    starts = sorted({0, *draw(st.lists(st.integers(1, 40), max_size=3))})
    orders = [draw(st.permutations(BOOKIES)) for _ in starts]
    segments = tuple(EnsembleSegment(start, tuple(order[:size])) for start, order in zip(starts, orders, strict=True))
    metadata = LedgerMetadata(ensemble_size=size, write_quorum=quorum, ack_quorum=1, segments=segments)
    return metadata.closed(draw(st.integers(starts[-1] - 1, 50)), 1) if draw(st.booleans()) else metadata


@settings(max_examples=examples(200), deadline=None)
@given(ledgers(), st.integers(0, 2**32), st.sets(st.sampled_from(BOOKIES), max_size=2))
def test_the_verdict_names_each_bookie_that_lacks_an_entry(metadata: LedgerMetadata, seed: int, silent: set[str]) -> None:
    rng = random.Random(seed)
    end = settled_end(metadata)
    stored = {entry for entry in range(60) if rng.random() < 0.5}
    lists: dict[str, set[int]] = {name: set() for name in BOOKIES}
    for entry in range(end + 1):
        ensemble = metadata.ensemble_of(entry)
        for position in write_set(entry, metadata.ensemble_size, metadata.write_quorum):
            if rng.random() < 0.9:
                lists[ensemble[position]].add(entry)
    answers = {
        name: BookieAnswer(silence="away") if name in silent else BookieAnswer(availability(entries)) for name, entries in lists.items()
    }
    expected: dict[str, set[int]] = {}
    for entry in stored & set(range(end + 1)):
        ensemble = metadata.ensemble_of(entry)
        for position in write_set(entry, metadata.ensemble_size, metadata.write_quorum):
            name = ensemble[position]
            if name in silent or entry not in lists[name]:
                expected.setdefault(name, set()).add(entry)
    found = lacking_bookies(metadata, availability(stored), answers)
    assert {one.bookie_id: {entry for run in one.runs for entry in run} for one in found} == expected
    assert {one.bookie_id for one in found if one.silence} == silent & expected.keys()
    assert not names_any(metadata, [LEAVING])


@settings(max_examples=examples(200), deadline=None)
@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_runs_are_intersected_and_subtracted(first: set[int], second: set[int]) -> None:
    def entries(runs: list[range]) -> list[int]:
        return [entry for run in runs for entry in run]

    one, other = availability(first), availability(second)
    assert entries(list(intersection(one.runs(), other.runs()))) == sorted(first & second)
    assert entries(list(difference(one.runs(), other.runs()))) == sorted(first - second)
