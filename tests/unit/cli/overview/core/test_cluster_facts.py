"""Counting ledgers by bookie, and the list of all bookies."""

from __future__ import annotations

from tests.unit.cli.overview.cluster_facts_rig import bookie
from triplicate.cli.overview.core.cluster_facts import BookieState, LedgerCensus, LedgerCounts, Registrations, all_bookies
from triplicate.ledger import EnsembleSegment, LedgerMetadata


def ledger(*ensembles: tuple[str, ...], closed: bool = False) -> LedgerMetadata:
    segments = tuple(EnsembleSegment(place * 10, ensemble) for place, ensemble in enumerate(ensembles))
    metadata = LedgerMetadata(len(ensembles[0]), 2, 2, segments)
    return metadata.closed(99, 100) if closed else metadata


def test_a_ledger_counts_once_for_each_bookie_that_it_names() -> None:
    census = LedgerCensus()
    census.add(1, ledger(("a", "b"), ("b", "c")))
    census.add(2, ledger(("a", "b"), closed=True))
    census.add(3, None)
    assert census.counts("late") == LedgerCounts(3, 1, {"a": 2, "b": 2, "c": 1}, (3,), "late")


def test_a_bookie_with_a_cookie_that_is_not_registered_is_lost() -> None:
    known = Registrations({"bookie-1": bookie(1)}, {}, ("bookie-1", "bookie-2"))
    found = {one.bookie_id: (one.state, one.has_cookie) for one in all_bookies(known, LedgerCounts())}
    assert found == {"bookie-1": (BookieState.WRITABLE, True), "bookie-2": (BookieState.LOST, True)}


def test_a_bookie_that_only_ledgers_name_is_lost() -> None:
    found = all_bookies(Registrations({}, {}, ()), LedgerCounts(1, 0, {"gone": 1}))
    assert [(one.bookie_id, one.state, one.has_cookie) for one in found] == [("gone", BookieState.LOST, False)]


def test_a_bookie_in_both_lists_is_becoming_read_only() -> None:
    known = Registrations({"bookie-1": bookie(1)}, {"bookie-1": bookie(1, BookieState.READ_ONLY)}, ("bookie-1",))
    assert [one.state for one in all_bookies(known, LedgerCounts())] == [BookieState.READ_ONLY]


def test_bookies_are_listed_by_location() -> None:
    known = Registrations({"bookie-3": bookie(3), "bookie-1": bookie(1)}, {"bookie-2": bookie(2, BookieState.READ_ONLY)}, ())
    assert [one.bookie_id for one in all_bookies(known, LedgerCounts())] == ["bookie-1", "bookie-2", "bookie-3"]
