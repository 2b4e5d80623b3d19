"""The checker of additional reads, judged by written histories."""

from __future__ import annotations

from triplicate_simulator.checkers.hedge_rules import Hedged, hedging_keeps_its_budget
from triplicate_simulator.checkers.history import History, judge


def late(spent: int, reads: int, *, reason: str = "late", client: str = "tailer-1 (v2)", share: float = 0.05) -> Hedged:
    return Hedged(float(spent), client, reason, reads, spent, share)


def violations(*events: Hedged) -> list[str]:
    (verdict,) = judge(History(list(events)), {hedging_keeps_its_budget.__name__: hedging_keeps_its_budget})
    assert verdict.decided == len(events)
    return verdict.violations


def test_a_few_additional_reads_are_saved_up_and_then_a_share_of_the_reads_is_allowed() -> None:
    few = [late(spent, 0) for spent in range(1, 11)]
    assert violations(*few) == []
    (text,) = violations(*few, late(11, 10))
    assert "additional reads 11 of 10, more than 0.05 of them" in text
    assert violations(*few, late(11, 20), late(12, 40)) == []


def test_no_more_than_a_few_are_saved_up() -> None:
    many = [late(spent, 10_000) for spent in range(1, 11)]
    assert violations(*many) == []
    assert len(violations(*many, late(11, 10_001))) == 1


def test_a_read_after_silence_is_not_bounded_but_paid_for_by_later_ones() -> None:
    silent = [late(spent, 0, reason="silent") for spent in range(1, 31)]
    assert violations(*silent) == []
    assert len(violations(*silent, late(31, 200))) == 1, "ten are owed: 220 reads pay for the next"
    assert violations(*silent, late(31, 220)) == []


def test_without_a_share_no_late_read_is_sent_again() -> None:
    assert violations(late(1, 500, reason="silent", share=0.0)) == []
    assert len(violations(late(1, 500, share=0.0))) == 1


def test_each_additional_read_is_counted_once() -> None:
    (text,) = violations(late(1, 0), late(3, 0))
    assert text == "tailer-1 (v2) counts 3 additional reads at 3.000000, and 1 at the one before"
    assert len(violations(late(1, 0), late(2, 0), late(2, 0))) == 1


def test_clients_have_budgets_of_their_own_and_a_new_life_a_new_one() -> None:
    few = [late(spent, 0) for spent in range(1, 11)]
    others = [late(spent, 0, client="tailer-1 (v3)") for spent in range(1, 11)]
    assert violations(*few, *others, *few) == []
