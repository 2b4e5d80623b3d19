"""The fragments of random ledgers, against a model that looks at one entry at a time."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.autorecovery.core.fragments import LedgerFragment, awaits_recovery, lacking_fragments, missing_runs, with_copies_moved
from triplicate.ledger import EnsembleSegment, LedgerMetadata, LedgerState, decode_availability, encode_availability, write_set

NAMES = [f"b{number}" for number in range(8)]
LOST = st.sets(st.sampled_from(NAMES), max_size=4)


@st.composite
def ledgers(draw: st.DrawFn) -> LedgerMetadata:
    size = draw(st.integers(1, 5))
    write_quorum = draw(st.integers(1, size))
    starts = [0, *sorted(draw(st.sets(st.integers(1, 60), max_size=4)))]
    closed = draw(st.booleans())
    return LedgerMetadata(
        ensemble_size=size,
        write_quorum=write_quorum,
        ack_quorum=draw(st.integers(1, write_quorum)),
        segments=tuple(EnsembleSegment(start, tuple(draw(st.permutations(NAMES))[:size])) for start in starts),
        state=LedgerState.CLOSED if closed else draw(st.sampled_from([LedgerState.OPEN, LedgerState.IN_RECOVERY])),
        last_entry_id=draw(st.integers(-1, 80)) if closed else -1,
    )


def fixed_entries(metadata: LedgerMetadata) -> range:
    """The entries whose bookies no writer can change any more."""
    return range(metadata.last_entry_id + 1 if metadata.is_closed else metadata.last_segment.first_entry_id)


def stores(metadata: LedgerMetadata, entry_id: int, bookie_id: str) -> bool:
    ensemble = metadata.ensemble_of(entry_id)
    return bookie_id in [ensemble[position] for position in write_set(entry_id, metadata.ensemble_size, metadata.write_quorum)]


def entry_ids(fragment: LedgerFragment) -> list[int]:
    return [entry_id for run in fragment.runs() for entry_id in run]


@settings(max_examples=examples(500), deadline=None)
@given(ledgers(), LOST)
def test_fragments_hold_exactly_the_entries_that_lost_bookies_store(metadata: LedgerMetadata, lost: set[str]) -> None:
    found = [(fragment.bookie_id, entry_id) for fragment in lacking_fragments(metadata, lost) for entry_id in entry_ids(fragment)]
    expected = {(name, entry_id) for entry_id in fixed_entries(metadata) for name in lost if stores(metadata, entry_id, name)}
    assert len(found) == len(set(found)), "no entry is copied twice to one place"
    assert set(found) == expected


@settings(max_examples=examples(300), deadline=None)
@given(ledgers(), LOST)
def test_a_fragment_counts_its_entries_and_knows_their_other_bookies(metadata: LedgerMetadata, lost: set[str]) -> None:
    for fragment in lacking_fragments(metadata, lost):
        assert fragment.count == len(entry_ids(fragment))
        assert entry_ids(fragment) == sorted(entry_ids(fragment))
        for entry_id in entry_ids(fragment):
            others = fragment.sources(entry_id)
            assert len(set(others)) == metadata.write_quorum - 1
            assert all(stores(metadata, entry_id, name) for name in others)
            assert fragment.bookie_id not in others


@settings(max_examples=examples(300), deadline=None)
@given(ledgers(), LOST, st.booleans())
def test_after_every_replacement_no_segment_of_fixed_end_names_a_lost_bookie(
    metadata: LedgerMetadata, lost: set[str], has_writer: bool
) -> None:
    spare = iter(f"new{number}" for number in range(100))
    present = metadata
    while fragments := lacking_fragments(present, lost, has_writer=has_writer):
        target = next(spare)
        changed = with_copies_moved(present, [(fragments[0], target)], has_writer=has_writer)
        assert changed is not None
        assert changed.ensemble_of(fragments[0].first_entry_id)[fragments[0].position] == target
        present = changed
    assert replace(present, segments=metadata.segments) == metadata, "nothing but bookies is changed"
    bounded = present.segments if metadata.is_closed or not has_writer else present.segments[:-1]
    assert not [name for segment in bounded for name in segment.ensemble if name in lost]
    if has_writer and not metadata.is_closed:
        assert present.last_segment == metadata.last_segment, "the last segment belongs to the writer"
        assert awaits_recovery(present, lost) == any(name in lost for name in metadata.last_segment.ensemble)
    else:
        assert not awaits_recovery(present, lost)
    for before, after in zip(metadata.segments, present.segments, strict=True):
        pairs = zip(before.ensemble, after.ensemble, strict=True)
        assert all(old == new for old, new in pairs if old not in lost)


@settings(max_examples=examples(300), deadline=None)
@given(ledgers(), LOST, st.sampled_from(NAMES))
def test_a_fragment_that_others_have_changed_is_left_as_it_is(metadata: LedgerMetadata, lost: set[str], name: str) -> None:
    for fragment in lacking_fragments(metadata, lost):
        changed = with_copies_moved(metadata, [(fragment, "new")])
        assert changed is not None
        assert with_copies_moved(changed, [(fragment, "other")]) is None, "another worker has replaced the bookie"
        assert (with_copies_moved(metadata, [(fragment, name)]) is None) == (name in fragment.ensemble), "no bookie stores two copies"
        if metadata.is_closed and metadata.last_entry_id >= fragment.first_entry_id and fragment.count:
            shorter = replace(metadata, last_entry_id=fragment.first_entry_id - 1)
            assert with_copies_moved(shorter, [(fragment, "new")]) is None, "its end is another one"


@settings(max_examples=examples(300), deadline=None)
@given(ledgers(), LOST, st.sets(st.integers(0, 80)))
def test_missing_are_the_entries_that_a_bookie_does_not_list(metadata: LedgerMetadata, lost: set[str], listed: set[int]) -> None:
    stored = decode_availability(encode_availability(range(entry_id, entry_id + 1) for entry_id in sorted(listed)))
    for fragment in lacking_fragments(metadata, lost):
        missing = [entry_id for run in missing_runs(fragment, stored) for entry_id in run]
        assert missing == [entry_id for entry_id in entry_ids(fragment) if entry_id not in listed]
