"""Which copies are missing, damaged or unknown, and which entries are without any."""

from __future__ import annotations

import pytest

from triplicate.autorecovery.core.ledger_copies import BookieAnswer, LedgerCopies, copies_of, covered_by
from triplicate.ledger import Availability, AvailabilityGroup, EnsembleSegment, LedgerMetadata


def ledger(*ensembles: str, write_quorum: int | None = None, last_entry_id: int | None = 9, every: int = 5) -> LedgerMetadata:
    """One letter for each bookie; each segment begins `every` entries after the one before; closed at `last_entry_id`, or open."""
    segments = tuple(EnsembleSegment(place * every, tuple(ensemble)) for place, ensemble in enumerate(ensembles))
    metadata = LedgerMetadata(len(ensembles[0]), write_quorum or len(ensembles[0]), 1, segments)
    return metadata if last_entry_id is None else metadata.closed(last_entry_id, 100)


def stored(*runs: range) -> BookieAnswer:
    return BookieAnswer(Availability([AvailabilityGroup(run.start, run.start, len(run), 0) for run in runs]))


ALL = stored(range(10))


def check(metadata: LedgerMetadata, last_entry_id: int = 9, **answers: BookieAnswer) -> LedgerCopies:
    return copies_of(7, metadata, last_entry_id, answers)


def test_a_ledger_with_all_copies_is_complete() -> None:
    found = check(ledger("abc"), a=ALL, b=ALL, c=stored(range(12)))
    assert found.is_complete
    assert [(one.bookie_id, one.expected, one.has, one.lacks, one.bad) for one in found.bookies] == [
        (name, 10, 10, 0, ()) for name in "abc"
    ]
    assert found.without_copy == ()


def test_an_entry_that_a_bookie_does_not_list_is_missing() -> None:
    found = check(ledger("abc"), a=ALL, b=stored(range(3), range(5, 9)), c=ALL)
    assert not found.is_complete
    assert found.bookies[1].missing == (range(3, 5), range(9, 10))
    assert (found.bookies[1].has, found.bookies[1].lacks) == (7, 3)
    assert found.without_copy == ()


def test_a_damaged_copy_is_no_copy() -> None:
    found = check(ledger("ab"), a=BookieAnswer(ALL.stored, bad=(4,)), b=stored(range(4), range(5, 10)))
    assert not found.is_complete
    assert (found.bookies[0].bad, found.bookies[0].has, found.bookies[0].lacks) == ((4,), 9, 0)
    assert found.without_copy == (range(4, 5),)


def test_an_entry_that_is_listed_and_denied_is_missing() -> None:
    found = check(ledger("ab"), a=BookieAnswer(ALL.stored, denied=(0, 1)), b=ALL)
    assert found.bookies[0].missing == (range(2),)
    assert not found.is_complete


def test_a_silent_bookie_proves_nothing() -> None:
    found = check(ledger("ab"), a=BookieAnswer(silence="gone"), b=stored(range(8)))
    assert not found.is_complete
    assert (found.bookies[0].silence, found.bookies[0].missing, found.bookies[0].has) == ("gone", (), 0)
    assert found.without_copy == (range(8, 10),)
    found = check(ledger("ab"), b=ALL)
    assert found.bookies[0].silence == "no answer"
    assert not found.is_complete


def test_each_segment_has_its_own_bookies() -> None:
    found = check(ledger("ab", "bc"), a=stored(range(5)), b=stored(range(10)), c=stored(range(6, 10)))
    assert {one.bookie_id: (one.expected, one.missing) for one in found.bookies} == {
        "a": (5, ()),
        "b": (10, ()),
        "c": (5, (range(5, 6),)),
    }


def test_a_striped_ledger_needs_only_the_copies_of_its_write_sets() -> None:
    """Entry e is on positions e and e + 1 modulo 3."""
    answers = {"a": stored(range(1), range(2, 4), range(5, 6)), "b": stored(range(2), range(3, 5)), "c": stored(range(1, 3), range(4, 6))}
    found = check(ledger("abc", write_quorum=2, last_entry_id=5), 5, **answers)
    assert found.is_complete
    assert [one.expected for one in found.bookies] == [4, 4, 4]
    answers |= {"a": stored(range(2, 4), range(5, 6)), "b": stored(range(1, 2), range(3, 5))}
    found = check(ledger("abc", write_quorum=2, last_entry_id=5), 5, **answers)
    assert [one.missing for one in found.bookies] == [(range(1),), (range(1),), ()]
    assert found.without_copy == (range(1),)


def test_only_confirmed_entries_of_an_open_ledger_count() -> None:
    found = check(ledger("ab", last_entry_id=None), 3, a=stored(range(4)), b=stored(range(9)))
    assert found.is_complete
    assert (found.is_closed, found.last_entry_id) == (False, 3)
    assert check(ledger("ab", last_entry_id=None), -1, a=BookieAnswer(silence="gone"), b=stored()).is_complete


@pytest.mark.parametrize(
    ("runs", "depth", "expected"),
    [
        ([range(5), range(3, 8)], 1, [range(8)]),
        ([range(5), range(3, 8)], 2, [range(3, 5)]),
        ([range(2), range(2, 4)], 1, [range(4)]),
        ([range(2), range(5, 6)], 1, [range(2), range(5, 6)]),
        ([], 1, []),
    ],
)
def test_runs_are_joined_by_depth(runs: list[range], depth: int, expected: list[range]) -> None:
    assert list(covered_by(runs, depth)) == expected
