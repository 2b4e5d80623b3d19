"""The checkers, judged by written histories: good ones pass, and each bad one is caught by the checker whose matter it is."""

from __future__ import annotations

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.ledger_checkers import LEDGER_CHECKERS
from triplicate_simulator.checkers.ledger_promises import Acknowledged, Copy, Deleted, Ended, Event, Read, Sent, Tailed

PROMISES = ("acknowledged_is_readable", "read_stays_readable", "acknowledged_in_order", "same_order_for_all")
"""Those of which this file has histories; the others are in `test_formal`."""

A, B, C = b"a", b"b", b"c"


def sent(entry_id: int, payload: bytes, time_s: float = 0.0, writer: str = "writer", ledger_id: int = 1) -> Sent:
    return Sent(time_s, writer, ledger_id, entry_id, payload)


def acked(entry_id: int, time_s: float, ledger_id: int = 1) -> Acknowledged:
    return Acknowledged(time_s, "writer", ledger_id, entry_id)


def read(entry_id: int, payload: bytes | None, started_s: float, reader: str = "reader", ledger_id: int = 1) -> Read:
    return Read(started_s, started_s + 0.1, reader, ledger_id, entry_id, payload)


def tailed(entry_id: int, payload: bytes, time_s: float, reader: str = "tailer") -> Tailed:
    return Tailed(time_s, reader, 1, entry_id, payload)


def ended(last_entry_id: int, time_s: float, observer: str = "recoverer") -> Ended:
    return Ended(time_s, observer, 1, last_entry_id)


def blamed(events: list[Event], final_reader: str | None = None) -> list[str]:
    history = History(events, final_reader, {1: 2})
    return [verdict.checker for verdict in judge(history, {name: LEDGER_CHECKERS[name] for name in PROMISES}) if verdict.violations]


GOOD: dict[str, list[Event]] = {
    "nothing happened": [],
    "an unacknowledged entry vanishes": [sent(0, A), sent(1, B), acked(0, 1.0), ended(0, 5.0), read(0, A, 6.0)],
    "an unacknowledged entry survives": [sent(0, A), sent(1, B), acked(0, 1.0), ended(1, 5.0), read(1, B, 6.0), read(0, A, 6.0)],
    "a read that began before the acknowledgement may find none": [sent(0, A), read(0, None, 0.5), acked(0, 0.55), read(0, A, 2.0)],
    "acknowledgements of one instant": [sent(0, A), sent(1, B), acked(0, 1.0), acked(1, 1.0)],
    "two tails at their own pace": [sent(0, A), sent(1, B), tailed(0, A, 1.0), tailed(0, A, 2.0, "other"), tailed(1, B, 3.0)],
    "a tail from the middle": [sent(0, A), sent(1, B), sent(2, C), tailed(1, B, 1.0), tailed(2, C, 1.0)],
    "a tail goes on to the end": [sent(0, A), sent(1, B), tailed(0, A, 1.0), tailed(1, B, 2.0), ended(1, 3.0, "tailer")],
    "all agree on the end": [sent(0, A), ended(0, 1.0), ended(0, 2.0, "tailer")],
    "one of three copies is missing": [sent(0, A), Copy("b1", 1, 0, A), Copy("b2", 1, 0, None), Copy("b3", 1, 0, A)],
    "an unconfirmed entry is read and then gone": [
        sent(0, A),
        Read(0.5, 0.6, "reader", 1, 0, A, False),
        ended(-1, 2.0),
        read(0, None, 3.0),
    ],
    "a forced entry is safe, one that was not forced is cut off": [
        sent(0, A),
        sent(1, B),
        acked(0, 1.0),
        ended(0, 2.0),
        read(1, None, 3.0),
    ],
    "a deleted ledger says no": [sent(0, A), acked(0, 1.0), read(0, A, 1.0), ended(0, 2.0), Deleted(3.0, 1), read(0, None, 2.95)],
    "two ledgers do not disturb each other": [sent(0, A), sent(0, B, ledger_id=2), acked(0, 1.0), read(0, B, 2.0, ledger_id=2)],
}

BAD: dict[str, tuple[str, list[Event]]] = {
    "an acknowledged entry is not found": (
        "acknowledged_is_readable",
        [sent(0, A), acked(0, 1.0), read(0, None, 2.0)],
    ),
    "the end lies before an acknowledged entry": (
        "acknowledged_is_readable",
        [sent(0, A), sent(1, B), acked(0, 1.0), acked(1, 2.0), ended(0, 3.0)],
    ),
    "an old writer gets an acknowledgement after the end": (
        "acknowledged_is_readable",
        [sent(0, A), sent(1, B), acked(0, 1.0), ended(0, 3.0), acked(1, 4.0)],
    ),
    "an entry read once is gone": (
        "read_stays_readable",
        [sent(0, A), read(0, A, 1.0), read(0, None, 2.0)],
    ),
    "an entry given to a tail lies beyond the end": (
        "read_stays_readable",
        [sent(0, A), sent(1, B), tailed(0, A, 1.0), tailed(1, B, 1.5), ended(0, 2.0)],
    ),
    "an acknowledgement overtakes the one before": (
        "acknowledged_in_order",
        [sent(0, A), sent(1, B), acked(1, 1.0), acked(0, 2.0)],
    ),
    "an entry before an acknowledged one was never acknowledged": (
        "acknowledged_in_order",
        [sent(0, A), sent(1, B), sent(2, C), acked(0, 1.0), acked(2, 2.0)],
    ),
    "two readers see different bytes": (
        "same_order_for_all",
        [sent(0, A), sent(1, B), read(0, A, 1.0), read(0, B, 2.0, "other")],
    ),
    "a reader sees what nobody sent": (
        "same_order_for_all",
        [sent(0, A), tailed(1, C, 1.0)],
    ),
    "a tail skips": (
        "same_order_for_all",
        [sent(0, A), sent(1, B), sent(2, C), tailed(0, A, 1.0), tailed(2, C, 2.0)],
    ),
    "a tail repeats": (
        "same_order_for_all",
        [sent(0, A), tailed(0, A, 1.0), tailed(0, A, 2.0)],
    ),
    "a tail ends before its ledger does": (
        "same_order_for_all",
        [sent(0, A), sent(1, B), tailed(0, A, 1.0), ended(1, 2.0, "tailer")],
    ),
    "a tail is given nothing of a ledger": (
        "same_order_for_all",
        [sent(0, A), sent(0, B, ledger_id=2), tailed(0, A, 1.0), ended(0, 2.0, "tailer"), Ended(3.0, "tailer", 2, 0)],
    ),
    "two observers see different ends": (
        "same_order_for_all",
        [sent(0, A), ended(0, 1.0), ended(-1, 2.0, "other")],
    ),
    "a copy differs": (
        "same_order_for_all",
        [sent(0, A), sent(1, B), Copy("b1", 1, 0, A), Copy("b2", 1, 0, B), Copy("b3", 1, 0, A)],
    ),
    "an entry is not found and its ledger deleted later": (
        "acknowledged_is_readable",
        [sent(0, A), acked(0, 1.0), read(0, None, 2.0), Deleted(3.0, 1)],
    ),
    "the writer of a deleted ledger goes on": (
        "acknowledged_is_readable",
        [
            sent(0, A),
            sent(1, B),
            acked(0, 1.0),
            ended(0, 2.0),
            Deleted(3.0, 1),
            acked(1, 9.0),
        ],
    ),
    "an acknowledged entry of another ledger is not found": (
        "acknowledged_is_readable",
        [sent(0, A), sent(0, B, ledger_id=2), acked(0, 1.0, 2), read(0, A, 2.0), read(0, None, 2.0, ledger_id=2)],
    ),
    "what was confirmed as unconfirmed is not found": (
        "acknowledged_is_readable",
        [sent(0, A), acked(0, 1.0), Read(2.0, 2.1, "reader", 1, 0, None, False)],
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_passes(name: str) -> None:
    assert blamed(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_caught_by_the_checker_it_concerns(name: str) -> None:
    checker, events = BAD[name]
    assert blamed(events) == [checker]


def test_an_acknowledged_entry_missing_from_the_final_read_is_caught() -> None:
    events: list[Event] = [sent(0, A), sent(1, B), acked(0, 1.0), acked(1, 1.0), read(0, A, 9.0, "final")]
    assert blamed(events) == []
    assert blamed(events, final_reader="final") == ["acknowledged_is_readable"]
    assert blamed([*events, read(1, B, 9.0, "final")], final_reader="final") == []


def test_a_deleted_ledger_is_not_missing_from_the_final_read() -> None:
    events: list[Event] = [sent(0, A), acked(0, 1.0)]
    assert blamed(events, final_reader="final") == ["acknowledged_is_readable"]
    assert blamed([*events, Deleted(2.0, 1)], final_reader="final") == []


def test_every_promise_has_something_to_decide_and_a_bad_history_of_its_own() -> None:
    decided = dict.fromkeys(LEDGER_CHECKERS, 0)
    for events in [*GOOD.values(), *(events for _, events in BAD.values())]:
        for verdict in judge(History(events, None, {1: 2}), LEDGER_CHECKERS):
            decided[verdict.checker] += verdict.decided
    assert all(decided[name] for name in PROMISES)
    assert {checker for checker, _ in BAD.values()} == set(PROMISES)
