"""The checkers of what bookies keep and lose, judged by written histories."""

from __future__ import annotations

from math import inf

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.ledger_checkers import LEDGER_CHECKERS
from triplicate_simulator.checkers.ledger_promises import (
    Acknowledged,
    Copy,
    Deleted,
    Denied,
    Event,
    MetadataWritten,
    Read,
    Sent,
    Undeleted,
    Wiped,
)

FIRST, SECOND = ("b1", "b2", "b3"), ("b2", "b3", "b4")
STRIPED = ("b1", "b2", "b3", "b4", "b5")


def written(time_s: float, *segments: tuple[int, tuple[str, ...]], version: int = 0, state: str = "open") -> MetadataWritten:
    last = (1, 2) if state == "closed" else (None, None)
    return MetadataWritten(time_s, 1, version, state, (len(segments[0][1]), 3, 2), segments, *last)


def blamed(events: list[Event], destroyed: dict[str, float] | None = None) -> list[str]:
    history = History(events, "final", {1: 2}, destroyed or {})
    return [verdict.checker for verdict in judge(history, LEDGER_CHECKERS) if verdict.violations]


def test_a_replaced_bookie_denies_nothing_that_it_was_named_for() -> None:
    made, lost = written(1.0, (0, FIRST)), Wiped(2.0, "b1")
    assert blamed([made, lost, Denied(3.0, "b1", 1, 0)]) == ["replaced_bookies_deny_nothing"]
    assert blamed([made, lost, Denied(3.0, "b2", 1, 0)]) == []
    assert blamed([made, Denied(1.5, "b1", 1, 0), lost]) == []


def test_a_replaced_bookie_may_deny_what_came_after_or_was_never_its_own() -> None:
    lost = Wiped(2.0, "b1")
    assert blamed([lost, written(3.0, (0, FIRST)), Denied(4.0, "b1", 1, 0)]) == []
    assert blamed([written(1.0, (0, SECOND)), lost, Denied(3.0, "b1", 1, 0)]) == []
    striped = written(1.0, (0, STRIPED))
    assert blamed([striped, lost, Denied(3.0, "b1", 1, 0)]) == ["replaced_bookies_deny_nothing"]
    assert blamed([striped, lost, Denied(3.0, "b1", 1, 1)]) == [], "entry 1 of a striped ledger is on b2, b3 and b4"


def test_a_replaced_bookie_that_was_left_out_of_a_segment_may_deny_it() -> None:
    made, lost = written(1.0, (0, FIRST)), Wiped(2.0, "b1")
    left_out = written(2.5, (0, SECOND), version=1)
    assert blamed([made, lost, left_out, Denied(3.0, "b1", 1, 0)]) == []
    moved_on = written(2.5, (0, FIRST), (5, SECOND), version=1)
    assert blamed([made, lost, moved_on, Denied(3.0, "b1", 1, 4)]) == ["replaced_bookies_deny_nothing"]
    assert blamed([made, lost, Deleted(2.6, 1), Denied(3.0, "b1", 1, 0)]) == []


def ledger(*later: Event) -> list[Event]:
    return [
        written(1.0, (0, FIRST)),
        *(Sent(1.0, "writer", 1, entry_id, b"x") for entry_id in range(2)),
        *(Acknowledged(1.1, "writer", 1, entry_id) for entry_id in range(2)),
        written(1.2, (0, FIRST), version=1, state="closed"),
        Deleted(2.0, 1),
        *later,
    ]


def final(*entry_ids: int) -> list[Event]:
    return [Read(9.0, 9.1, "final", 1, entry_id, b"x") for entry_id in entry_ids]


def test_a_ledger_that_was_brought_back_in_time_has_all_its_entries() -> None:
    back: list[Event] = [Undeleted(3.0, 1, True), written(3.0, (0, FIRST), state="closed")]
    assert blamed([*ledger(), *back, *final(0, 1)]) == []
    assert blamed([*ledger(), *back, *final(0)]) == ["acknowledged_is_readable", "undeleted_ledgers_are_whole"]


def test_a_ledger_that_came_back_late_or_is_gone_again_need_have_nothing() -> None:
    closed = written(3.0, (0, FIRST), state="closed")
    assert blamed(ledger(Undeleted(3.0, 1, False), closed)) == []
    assert blamed(ledger(Undeleted(3.0, 1, True), closed, Deleted(4.0, 1))) == []


def test_a_ledger_comes_back_as_it_was() -> None:
    back = Undeleted(3.0, 1, True)
    assert blamed(ledger(back, written(3.0, (0, FIRST)), *final(0, 1))) == ["metadata_moves_forward"]


def test_a_replaced_bookie_is_a_sound_one_for_ledgers_made_afterwards() -> None:
    copies: list[Event] = [Copy("b1", 1, 0, None), Copy("b2", 1, 0, b"x"), Copy("b3", 1, 0, None)]
    made: list[Event] = [written(5.0, (0, FIRST)), Sent(5.0, "writer", 1, 0, b"x")]
    assert blamed([*made, *copies], {"b1": 6.0}) == []
    assert blamed([*made, *copies], {"b1": inf}) == []
    assert blamed([*made, *copies], {"b1": 4.0}) == ["closed_entries_have_their_copies"]
