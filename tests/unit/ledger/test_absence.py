"""An absence that lasts is a loss; one that ends counts from the start the next time."""

from __future__ import annotations

from triplicate.ledger import Absences


def test_a_bookie_is_lost_once_it_was_absent_for_the_limit() -> None:
    absences = Absences(30.0)
    assert absences.observe("abc", "ab", 100.0) == []
    assert absences.observe("abc", "b", 129.0) == []
    assert absences.observe("abc", "b", 130.0) == ["c"]
    assert absences.observe("abc", "b", 159.0) == ["a", "c"]


def test_a_bookie_that_came_back_is_absent_from_the_start() -> None:
    absences = Absences(30.0)
    absences.observe("a", "", 0.0)
    absences.observe("a", "a", 20.0)
    assert absences.observe("a", "", 40.0) == []
    assert absences.observe("a", "", 69.0) == []
    assert absences.observe("a", "", 70.0) == ["a"]


def test_a_bookie_out_of_use_is_forgotten() -> None:
    absences = Absences(30.0)
    absences.observe("a", "", 0.0)
    absences.observe("", "", 10.0)
    assert absences.observe("a", "", 40.0) == []
