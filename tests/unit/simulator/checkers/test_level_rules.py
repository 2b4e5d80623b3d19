"""Reads at the levels of sessions: each rule accepts what is right, and finds what is not."""

from __future__ import annotations

from typing import Any

import pytest

from triplicate_simulator.checkers.history import Checker, History, Verdict
from triplicate_simulator.checkers.level_rules import StateRead, bounded_reads_are_recent, sessions_read_forward, states_are_prefixes
from triplicate_simulator.checkers.sql_rules import CommitRequested, Committed

WRITES = [
    CommitRequested(1.0, "c", "a"),
    Committed(1.5, "a", 1),
    CommitRequested(2.0, "c", "b"),
    Committed(2.5, "b", 2),
    CommitRequested(3.0, "c", "c"),
]


def read(at_s: float, level: str, tokens: str, *, wanted: int = 0, position: int | None = None, bound_s: float = 1.0) -> StateRead:
    position = len(tokens) if position is None else position
    return StateRead(at_s, at_s + 0.1, "r", f"node-{at_s:g}", level, bound_s, wanted, position, frozenset(tokens))


def judged(checker: Checker, *events: Any) -> Verdict:
    verdict = Verdict(checker.__name__)
    checker(History([*WRITES, *events]), verdict)
    return verdict


@pytest.mark.parametrize(
    ("events", "count"),
    [
        ([read(4.0, "session", "ab", wanted=2), read(5.0, "session", "abc", wanted=2)], 0),
        ([read(4.0, "session", "a", wanted=2)], 1),
        ([read(4.0, "any", "ab"), read(5.0, "session", "a", wanted=1)], 1),
        ([read(4.0, "session", "ab"), read(5.0, "any", "a")], 0),
    ],
)
def test_a_session_has_its_position_and_what_it_has_seen(events: list[StateRead], count: int) -> None:
    verdict = judged(sessions_read_forward, *events)
    assert len(verdict.violations) == count, verdict.violations
    assert verdict.decided > 0


@pytest.mark.parametrize(
    ("event", "count"),
    [
        (read(3.0, "bounded", "a"), 0),
        (read(4.0, "bounded", "a"), 1),
        (read(4.0, "bounded", "a", bound_s=2.0), 0),
        (read(4.0, "any", ""), 0),
    ],
)
def test_a_bounded_read_has_what_was_acknowledged_before_its_bound(event: StateRead, count: int) -> None:
    assert len(judged(bounded_reads_are_recent, event).violations) == count


@pytest.mark.parametrize(
    ("events", "count"),
    [
        ([read(4.0, "any", "a"), read(4.5, "any", ""), read(5.0, "any", "abc")], 0),
        ([read(4.0, "any", "b", position=2)], 1),
        ([read(4.0, "any", "ab"), read(5.0, "any", "a", position=3)], 1),
        ([read(4.0, "any", "ab"), read(5.0, "any", "a", position=2)], 1),
    ],
)
def test_every_state_is_a_prefix_of_one_order(events: list[StateRead], count: int) -> None:
    assert len(judged(states_are_prefixes, *events).violations) == count
