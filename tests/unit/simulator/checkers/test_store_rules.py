"""Each rule of key-value stores accepts what a store may do and finds what it must not."""

from __future__ import annotations

import pytest

from triplicate_simulator.checkers.history import History, Verdict
from triplicate_simulator.checkers.store_rules import (
    STORE_CHECKERS,
    ExpiringRead,
    FinalStore,
    SessionRead,
    StoreDiverged,
    StoreWritten,
    WatchBegan,
    WatchedChange,
    WatchEnded,
)

STATE = (5, 4, 1000, 2)
ITEMS = [("a", "1", 3, 0), ("b", "2", 5, 2000)]
COPY = FinalStore("n1", STATE, ITEMS, [(2000, "b")])
OUTSIDE = [StoreWritten(0.0, "c", "1", 2), StoreWritten(0.0, "c", "1", 9)]
WATCHED = [WatchBegan("w", 2), WatchedChange("w", 3, "a", "1"), WatchedChange("w", 5, "b", "2"), WatchEnded("w", 5)]


def judged(checker: str, events: list[object]) -> Verdict:
    history, verdict = History(), Verdict(checker)
    for event in events:
        history.add(event)
    STORE_CHECKERS[checker](history, verdict)
    return verdict


@pytest.mark.parametrize(
    ("checker", "events"),
    [
        ("stores_are_equal", [COPY, FinalStore("n2", STATE, list(ITEMS), [(2000, "b")])]),
        ("store_sessions_read_their_writes", [SessionRead(1.0, "n1", "a", 3, 3, 3), SessionRead(1.0, "n1", "a", 3, 7, 9)]),
        ("expired_keys_stay_expired", [ExpiringRead(1.0, 3.0, "k", True), ExpiringRead(1.5, 2.0, "k", False)]),
        (
            "watchers_miss_nothing",
            [StoreWritten(0.0, "a", "1", 3), *OUTSIDE, *WATCHED],
        ),
    ],
)
def test_a_rule_accepts_what_a_store_may_do(checker: str, events: list[object]) -> None:
    verdict = judged(checker, events)
    assert verdict.decided
    assert not verdict.violations


@pytest.mark.parametrize(
    ("checker", "events"),
    [
        ("stores_are_equal", [COPY, StoreDiverged(1.0, "n2", "another history")]),
        ("stores_are_equal", [COPY, FinalStore("n2", STATE, [ITEMS[0], ("b", "3", 5, 2000)], [(2000, "b")])]),
        ("stores_are_equal", [COPY, FinalStore("n2", (6, *STATE[1:]), ITEMS, [(2000, "b")])]),
        ("stores_are_equal", [FinalStore("n1", STATE, ITEMS, [])]),
        ("stores_are_equal", [FinalStore("n1", STATE, ITEMS[:1], [])]),
        ("store_sessions_read_their_writes", [SessionRead(1.0, "n1", "a", 3, 0, 3)]),
        ("store_sessions_read_their_writes", [SessionRead(1.0, "n1", "a", 3, 3, 2)]),
        ("expired_keys_stay_expired", [ExpiringRead(1.0, 2.0, "k", False), ExpiringRead(2.5, 3.0, "k", True)]),
        ("watchers_miss_nothing", [StoreWritten(0.0, "c", "1", 4), *WATCHED]),
        ("watchers_miss_nothing", [StoreWritten(0.0, "a", "9", 3), *WATCHED]),
        ("watchers_miss_nothing", [*WATCHED, WatchedChange("w", 5, "b", "2")]),
    ],
)
def test_a_rule_finds_what_a_store_must_not_do(checker: str, events: list[object]) -> None:
    assert judged(checker, events).violations
