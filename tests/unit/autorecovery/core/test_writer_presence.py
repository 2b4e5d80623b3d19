from __future__ import annotations

from dataclasses import replace

import pytest

from triplicate.autorecovery.core.writer_presence import KEPT_S, FirstViews, OpenLedgerView, WriterPresence, writer_presence
from triplicate.ledger import EnsembleSegment, LedgerState

FIRST = OpenLedgerView(LedgerState.OPEN, EnsembleSegment(0, ("a", "b")), 5, 100.0)


@pytest.mark.parametrize(
    ("state", "segment", "last_entry_id", "seconds", "expected"),
    [
        (LedgerState.OPEN, FIRST.segment, 5, 29.9, WriterPresence.UNKNOWN),
        (LedgerState.OPEN, FIRST.segment, 5, 30.0, WriterPresence.GONE),
        (LedgerState.OPEN, FIRST.segment, 6, 31.0, WriterPresence.ALIVE),
        (LedgerState.OPEN, FIRST.segment, 6, 1.0, WriterPresence.ALIVE),
        (LedgerState.OPEN, FIRST.segment, -1, 31.0, WriterPresence.GONE),
        (LedgerState.OPEN, EnsembleSegment(6, ("a", "c")), 5, 31.0, WriterPresence.ALIVE),
        (LedgerState.OPEN, EnsembleSegment(0, ("a", "c")), 5, 31.0, WriterPresence.ALIVE),
        (LedgerState.IN_RECOVERY, FIRST.segment, 6, 0.0, WriterPresence.GONE),
    ],
)
def test_a_writer_is_gone_only_if_nothing_changed_over_the_whole_grace_period(
    state: LedgerState, segment: EnsembleSegment, last_entry_id: int, seconds: float, expected: WriterPresence
) -> None:
    present = OpenLedgerView(state, segment, last_entry_id, FIRST.seen_at + seconds)
    assert writer_presence(FIRST, present, 30.0) is expected


def test_a_grace_period_of_nothing_is_over_at_once() -> None:
    assert writer_presence(FIRST, FIRST, 0.0) is WriterPresence.GONE


def test_a_look_that_too_few_bookies_answered_shows_no_absence() -> None:
    present = OpenLedgerView(LedgerState.OPEN, FIRST.segment, -1, FIRST.seen_at + 31.0, is_conclusive=False)
    assert writer_presence(FIRST, present, 30.0) is WriterPresence.UNKNOWN
    further = OpenLedgerView(LedgerState.OPEN, FIRST.segment, 6, FIRST.seen_at + 31.0, is_conclusive=False)
    assert writer_presence(FIRST, further, 30.0) is WriterPresence.ALIVE


def test_a_view_counts_only_for_the_mark_under_which_it_was_seen() -> None:
    views, later = FirstViews(30.0), replace(FIRST, seen_at=130.0)
    assert views.first(1, 5000, FIRST) is FIRST
    assert views.first(1, 5000, later) is FIRST
    assert views.first(1, 6000, later) is later
    assert views.first(1, 6000, FIRST) is later
    views.drop(1)
    assert views.seen_at(1) is None


def test_views_of_ledgers_that_are_looked_at_no_more_are_dropped() -> None:
    views, kept_s = FirstViews(30.0), 30.0 + KEPT_S
    for ledger_id in range(1000):
        views.first(ledger_id, 5000, FIRST)
    again = replace(FIRST, seen_at=FIRST.seen_at + kept_s)
    assert views.first(7, 5000, again) is FIRST
    assert len(views) == 1000
    later = replace(FIRST, seen_at=FIRST.seen_at + kept_s + 1)
    views.renew(2000, 5000, later)
    assert len(views) == 2
    assert views.first(7, 5000, later) is FIRST, "a grace period whose ledger is looked at goes on"
