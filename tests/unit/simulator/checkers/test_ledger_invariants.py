"""The checkers of the formal invariants, judged by written histories: good ones pass, each bad one is blamed on its invariant."""

from __future__ import annotations

from math import inf

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.ledger_checkers import LEDGER_CHECKERS
from triplicate_simulator.checkers.ledger_promises import (
    Acknowledged,
    Confirmed,
    Copy,
    Deleted,
    Ended,
    Event,
    LengthSubstituted,
    MetadataWritten,
    Read,
    Sent,
    Tailed,
)

A, B = b"a", b"b"
FIRST = ("b1", "b2", "b3")
SECOND = ("b1", "b2", "b4")
SIZES = (3, 3, 2)

INVARIANTS = (
    "metadata_is_well_formed",
    "metadata_moves_forward",
    "clients_and_metadata_agree",
    "closed_entries_have_their_copies",
    "read_order_is_write_order",
    "confirmed_is_acknowledged",
)


def version(
    number: int,
    state: str = "open",
    segments: tuple[tuple[int, tuple[str, ...]], ...] = ((0, FIRST),),
    last: int | None = None,
    length: int | None = None,
    sizes: tuple[int, int, int] = SIZES,
) -> MetadataWritten:
    if state == "closed" and last is not None and length is None:
        length = last + 1
    return MetadataWritten(float(number), 1, number, state, sizes, segments, last, length)


def sent(entry_id: int, payload: bytes = A, writer: str = "writer") -> Sent:
    return Sent(0.0, writer, 1, entry_id, payload)


def acked(entry_id: int, time_s: float = 0.5) -> Acknowledged:
    return Acknowledged(time_s, "writer", 1, entry_id)


def ended(last_entry_id: int, length: int | None = None, observer: str = "reader", time_s: float = 9.0) -> Ended:
    return Ended(time_s, observer, 1, last_entry_id, length)


def knows(last_entry_id: int, time_s: float, handle: str = "reader#1", *, is_open: bool = True) -> Confirmed:
    return Confirmed(time_s, handle, 1, last_entry_id, is_open)


def read(entry_id: int, payload: bytes, time_s: float = 2.0) -> Read:
    return Read(time_s, time_s, "reader", 1, entry_id, payload)


def copies(*payloads: bytes | None) -> list[Event]:
    return [Copy(f"b{number}", 1, 0, payload) for number, payload in enumerate(payloads, 1)]


def both(time_s: float = 0.0) -> list[Event]:
    """Entries 0 and 1 in one append."""
    return [Sent(time_s, "writer", 1, 0, A, 1), Sent(time_s, "writer", 1, 1, B, 1)]


def blamed(events: list[Event], destroyed: tuple[str, ...] = (), died_s: float | None = None) -> list[str]:
    deaths = {} if died_s is None else {"writer": [died_s]}
    history = History(events, None, {1: 2}, dict.fromkeys(destroyed, inf), deaths)
    return [verdict.checker for verdict in judge(history, {name: LEDGER_CHECKERS[name] for name in INVARIANTS}) if verdict.violations]


OPEN, CHANGED = version(0), version(1, segments=((0, FIRST), (1, SECOND)))
RECOVERING = version(1, "in recovery")
CLOSED = version(1, "closed", last=1)

GOOD: dict[str, list[Event]] = {
    "nothing happened": [],
    "made, written, closed": [OPEN, sent(0), sent(1, B), acked(0), acked(1), CLOSED, ended(1, 2), ended(1)],
    "somebody wrote back what was there": [OPEN, version(4, "closed", last=1)],
    "closed empty": [OPEN, version(1, "closed", last=-1), ended(-1, 0)],
    "an ensemble changes behind what was acknowledged": [OPEN, sent(0), acked(0), CHANGED, sent(1, B), acked(1, 2.0)],
    "an ensemble changes before anything was acknowledged": [OPEN, sent(0), version(1, segments=((0, SECOND),)), acked(0, 2.0)],
    "a second change replaces the segment of the first": [OPEN, sent(0), acked(0), CHANGED, version(2, segments=((0, FIRST), (1, FIRST)))],
    "recovered, the tail on other bookies": [OPEN, RECOVERING, version(2, "closed", ((0, FIRST), (1, SECOND)), last=1), ended(1, 2)],
    # A writer that lived on got the last acknowledgement while the recovery read; the recovery wrote that entry to other bookies again.
    "recovered from below what was acknowledged": [OPEN, RECOVERING, acked(1), version(2, "closed", ((0, FIRST), (1, SECOND)), last=1)],
    "its writer closes what somebody recovers": [OPEN, RECOVERING, version(2, "closed", last=0)],
    "copies are restored elsewhere after the end": [OPEN, CLOSED, version(2, "closed", ((0, SECOND),), last=1), ended(1, 2)],
    "somebody does not know the length": [OPEN, CLOSED, ended(1), ended(1, 2)],
    "two copies of three": copies(A, None, A),
    "a copy that is listed": [Copy("b1", 1, 0, None, True), Copy("b2", 1, 0, A), Copy("b3", 1, 0, None)],
    "read as written": [sent(0), sent(1, B), read(1, B), Tailed(1.0, "tailer", 1, 0, A)],
    "confirmed once acknowledged": [sent(0), sent(1, B), acked(0), knows(-1, 0.6), knows(0, 0.7), acked(1, 1.0), knows(1, 1.0)],
    "a new handle starts from nothing": [sent(0), acked(0), knows(0, 0.7), knows(-1, 0.8, "reader#2")],
    "the end of a closed ledger was found by recovery": [sent(0), sent(1), acked(0), knows(1, 3.0, is_open=False)],
    "the first part of an append is confirmed before the whole is acknowledged": [
        *both(),
        knows(0, 0.6),
        acked(0, 0.9),
        acked(1, 0.9),
        knows(1, 1.0, "writer"),
    ],
    "the first part of an append is confirmed that ends in failure": [*both(), knows(0, 0.6), knows(0, 1.0, "writer")],
    "a writer knows its acknowledgements": [sent(0), acked(0), knows(0, 0.5, "writer"), ended(0, 1)],
    "a deleted ledger ends nowhere": [sent(0), acked(0), knows(0, 0.5, "writer"), Deleted(2.0, 1), ended(-1, 0)],
}

BAD: dict[str, tuple[str, list[Event]]] = {
    "an ack quorum greater than the write quorum": ("metadata_is_well_formed", [version(0, sizes=(3, 2, 3))]),
    "a bookie twice in an ensemble": ("metadata_is_well_formed", [version(0, segments=((0, ("b1", "b2", "b1")),))]),
    "an ensemble that is too small": ("metadata_is_well_formed", [version(0, segments=((0, ("b1", "b2")),))]),
    "no segment": ("metadata_is_well_formed", [version(0, segments=())]),
    "segments out of order": ("metadata_is_well_formed", [version(0, segments=((0, FIRST), (5, SECOND), (3, FIRST)))]),
    "the first entry in no segment": ("metadata_is_well_formed", [version(0, segments=((1, FIRST),))]),
    "closed without an end": ("metadata_is_well_formed", [version(0, "closed")]),
    "open with an end": ("metadata_is_well_formed", [version(0, "open", last=3)]),
    "a state that there is not": ("metadata_is_well_formed", [version(0, "ajar")]),
    "open again after recovery": ("metadata_moves_forward", [OPEN, RECOVERING, version(2)]),
    "open again after its end": ("metadata_moves_forward", [OPEN, CLOSED, version(2)]),
    "a version comes back": ("metadata_moves_forward", [version(1), version(1, "closed", last=1)]),
    "other quorums": ("metadata_moves_forward", [OPEN, version(1, sizes=(3, 3, 1))]),
    "the end moves": ("metadata_moves_forward", [OPEN, CLOSED, version(2, "closed", last=2)]),
    "the length changes after the end": ("metadata_moves_forward", [OPEN, CLOSED, version(2, "closed", last=1, length=7)]),
    "a segment is added to a closed ledger": (
        "metadata_moves_forward",
        [OPEN, CLOSED, version(2, "closed", ((0, FIRST), (1, SECOND)), last=1)],
    ),
    "a segment is added to a ledger in recovery": (
        "metadata_moves_forward",
        [OPEN, RECOVERING, version(2, "in recovery", ((0, FIRST), (1, SECOND)))],
    ),
    "a segment is added along with the mark of recovery": (
        "metadata_moves_forward",
        [OPEN, version(1, "in recovery", ((0, FIRST), (1, SECOND)))],
    ),
    "its writer closes it on other bookies": ("metadata_moves_forward", [OPEN, version(1, "closed", ((0, FIRST), (1, SECOND)), last=1)]),
    "a change takes in what was acknowledged": ("metadata_moves_forward", [OPEN, sent(0), sent(1), acked(0), acked(1), CHANGED]),
    "a recovery proposes an earlier segment": (
        "metadata_moves_forward",
        [OPEN, CHANGED, version(2, "in recovery", CHANGED.segments), version(3, "closed", ((0, SECOND),), last=1)],
    ),
    "history is rewritten": ("metadata_moves_forward", [OPEN, CHANGED, version(2, segments=((0, SECOND), (1, SECOND)))]),
    "a client believes in another end": ("clients_and_metadata_agree", [OPEN, CLOSED, ended(0, 1)]),
    "a recovery says that the ledger has ended, and leaves it in recovery": (
        "clients_and_metadata_agree",
        [OPEN, RECOVERING, ended(1, 2, "recoverer"), version(2, "closed", last=1)],
    ),
    "a writer believes that it closed, and a recovery did": (
        "clients_and_metadata_agree",
        [OPEN, RECOVERING, version(2, "closed", last=0), ended(1, 2, "writer")],
    ),
    "two believe in different lengths": ("clients_and_metadata_agree", [ended(1, 2), ended(1, 3, "writer")]),
    "metadata state another length": ("clients_and_metadata_agree", [OPEN, CLOSED, ended(1, 5)]),
    "one copy of three": ("closed_entries_have_their_copies", copies(A, None, None)),
    "no copy of three": ("closed_entries_have_their_copies", copies(None, None, None)),
    "an entry under another's number": ("read_order_is_write_order", [sent(0), sent(1, B), read(0, B)]),
    "two entries change places": (
        "read_order_is_write_order",
        [sent(0), sent(1, B), Tailed(1.0, "tailer", 1, 0, B), Tailed(1.0, "tailer", 1, 1, A)],
    ),
    "an entry read before it was written": ("read_order_is_write_order", [read(0, A), sent(0)]),
    "two writers of one ledger": ("read_order_is_write_order", [sent(0), sent(0, A, "other")]),
    "what a reader knows to be confirmed falls": (
        "confirmed_is_acknowledged",
        [sent(0), sent(1), acked(0), acked(1), knows(1, 1.0), knows(0, 2.0)],
    ),
    "confirmed and never acknowledged": ("confirmed_is_acknowledged", [sent(0), sent(1), acked(0), knows(1, 1.0)]),
    "confirmed before it is acknowledged": ("confirmed_is_acknowledged", [sent(0), knows(0, 0.4), acked(0, 0.5)]),
    "the whole of an append is confirmed before it is acknowledged": (
        "confirmed_is_acknowledged",
        [*both(), knows(1, 0.6), acked(0, 0.9), acked(1, 0.9), knows(1, 1.0, "writer")],
    ),
    "the first part of an append is confirmed, and its writer never knew": (
        "confirmed_is_acknowledged",
        [*both(), knows(0, 0.6), knows(-1, 1.0, "writer")],
    ),
    "the first part of an append is confirmed before what was sent before it is acknowledged": (
        "confirmed_is_acknowledged",
        [sent(0), Sent(0.0, "writer", 1, 1, B, 2), Sent(0.0, "writer", 1, 2, A, 2), knows(1, 0.6), knows(1, 1.0, "writer")],
    ),
    "a living writer calls an entry confirmed that was not acknowledged": (
        "confirmed_is_acknowledged",
        [sent(0), knows(0, 0.6), knows(0, 0.9, "writer")],
    ),
    "a writer calls confirmed what is acknowledged later": (
        "confirmed_is_acknowledged",
        [sent(0), knows(0, 0.4, "writer"), acked(0, 0.5)],
    ),
    "a ledger ends before what its writer calls confirmed": (
        "confirmed_is_acknowledged",
        [*both(), knows(0, 0.9, "writer"), ended(-1, 0)],
    ),
}


def test_lengths_may_differ_where_the_last_entry_was_out_of_reach() -> None:
    different: list[Event] = [ended(1, 2, "recoverer"), ended(1, 3, "writer")]
    assert blamed(different) == ["clients_and_metadata_agree"]
    assert blamed([*different, LengthSubstituted(1.0, 1)]) == []
    assert blamed([*different, LengthSubstituted(1.0, 2)]) == ["clients_and_metadata_agree"]


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_passes(name: str) -> None:
    assert blamed(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_blamed_on_the_invariant_it_breaks(name: str) -> None:
    checker, events = BAD[name]
    assert blamed(events) == [checker]


DEAD: dict[str, tuple[bool, list[Event], float]] = {
    "an acknowledgement on its lips": (True, [sent(0), knows(0, 0.6), knows(0, 0.9, "writer")], 0.5),
    "it died before it sent this": (False, [Sent(0.5, "writer", 1, 0, A), knows(0, 0.6), knows(0, 0.9, "writer")], 0.4),
    "it had time to answer": (False, [sent(0), knows(0, 0.6), knows(0, 0.9, "writer")], 1.0),
    "it was acknowledged later": (False, [sent(0), knows(0, 0.6), acked(0, 0.7), knows(0, 0.9, "writer")], 0.5),
    "a reader knows more than it did": (False, [sent(0), sent(1), acked(0), knows(1, 0.6), knows(0, 0.9, "writer")], 0.5),
    "what it knew is lost": (False, [sent(0), knows(0, 0.9, "writer"), ended(-1, 0)], 0.5),
}


@pytest.mark.parametrize("name", DEAD)
def test_a_dead_writer_is_excused_for_what_it_had_no_time_to_tell(name: str) -> None:
    is_good, events, died_s = DEAD[name]
    assert blamed(events, died_s=died_s) == ([] if is_good else ["confirmed_is_acknowledged"])


def test_copies_on_a_destroyed_disk_are_not_asked_for() -> None:
    assert blamed(copies(A, None, None), ("b3",)) == []
    assert blamed(copies(A, None, A), ("b3",)) == []
    assert blamed(copies(A, None, None), ("b4",)) == ["closed_entries_have_their_copies"]
    assert blamed(copies(A, None, None), ("b1",)) == ["closed_entries_have_their_copies"]
    assert blamed(copies(None, None, None), ("b3",)) == ["closed_entries_have_their_copies"]


def test_every_invariant_has_something_to_decide_and_a_bad_history_of_its_own() -> None:
    decided = dict.fromkeys(LEDGER_CHECKERS, 0)
    for events in [*GOOD.values(), *(events for _, events in BAD.values())]:
        for verdict in judge(History(events, None, {1: 2}), LEDGER_CHECKERS):
            decided[verdict.checker] += verdict.decided
    assert all(decided[name] for name in INVARIANTS), decided
    assert {checker for checker, _ in BAD.values()} == set(INVARIANTS)
