"""The tracker of ids that the caller chooses: gaps hold back, order of pushing only orders marks."""

import pytest

from triplicate.ledger import LAST_ENTRY_ID, AdvWriteTracker


def tracker(ensemble: str = "abc", write_quorum: int = 3, ack_quorum: int = 2, pushed: tuple[int, ...] = ()) -> AdvWriteTracker:
    made = AdvWriteTracker(list(ensemble), write_quorum, ack_quorum)
    for entry_id in pushed:
        made.push(entry_id)
    return made


def test_ids_may_come_in_any_order() -> None:
    made = tracker(pushed=(2, 0, 1))
    for bookie_id in "ab":
        made.acknowledge(bookie_id, [2, 0, 1])
    assert made.advance() == 2
    assert made.last_add_pushed == 2


def test_a_gap_holds_back_what_follows() -> None:
    made = tracker(pushed=(0, 2, 3))
    for bookie_id in "abc":
        made.acknowledge(bookie_id, [0, 2, 3])
    assert made.advance() == 0
    assert made.is_held_back
    made.push(1)
    assert not made.is_held_back
    assert made.advance() == 0
    made.acknowledge("a", [1])
    made.acknowledge("b", [1])
    assert made.advance() == 3


def test_an_id_is_taken_once_it_was_pushed() -> None:
    made = tracker(pushed=(0, 5))
    for bookie_id in "ab":
        made.acknowledge(bookie_id, [0])
    made.advance()
    assert [entry_id for entry_id in range(7) if made.is_taken(entry_id)] == [0, 5]
    with pytest.raises(AssertionError):
        made.push(5)


def test_ids_are_bounded_by_the_header() -> None:
    made = tracker(pushed=(LAST_ENTRY_ID,))
    made.acknowledge("a", [LAST_ENTRY_ID])
    assert made.advance() == -1
    for entry_id in (-1, LAST_ENTRY_ID + 1):
        with pytest.raises(AssertionError):
            made.push(entry_id)


def test_answers_for_entries_never_sent_are_ignored() -> None:
    made = tracker(pushed=(1,))
    for bookie_id in "ab":
        made.acknowledge(bookie_id, [0, 7, -1])
    made.push(0)
    assert made.advance() == -1, "the early answer must not count for the entry that now has its id"


def test_marks_say_how_far_a_bookie_answered_in_the_order_of_sending() -> None:
    made = tracker(pushed=(9, 4, 0))
    assert [made.order_of(entry_id) for entry_id in (9, 4, 0)] == [0, 1, 2]
    assert made.acked_through("a") == -1
    made.acknowledge("a", [4])
    assert made.acked_through("a") == -1
    made.acknowledge("a", [9])
    assert made.acked_through("a") == 1
    made.acknowledge("a", [0])
    assert made.acked_through("a") == made.acked_through("gone") == 2


def test_a_confirmed_entry_is_still_unacked_by_bookies_that_did_not_answer() -> None:
    made = tracker(pushed=(0,))
    made.acknowledge("a", [0])
    made.acknowledge("b", [0])
    assert made.advance() == 0
    assert (made.acked_through("a"), made.acked_through("c")) == (0, -1)
    made.acknowledge("c", [0])
    assert made.acked_through("c") == 0


def test_confirmation_stands_still_during_a_change_and_the_new_bookie_owes_everything() -> None:
    made = tracker(pushed=(1, 0))
    for bookie_id in "ab":
        made.acknowledge(bookie_id, [0, 1])
    made.begin_change()
    assert made.advance() == -1
    assert made.replace(["d", "b", "c"]) == [0]
    assert made.pending_of(0) == [1, 0], "in the order of their marks"
    made.end_change()
    assert made.advance() == -1, "a is gone, and d has not answered"
    made.acknowledge("a", [0, 1])
    assert made.advance() == -1
    made.acknowledge("d", [0, 1])
    assert made.advance() == 1


def test_striped_entries_belong_to_their_write_sets_only() -> None:
    made = tracker("abcd", write_quorum=2, ack_quorum=2, pushed=(1, 0))
    made.acknowledge("c", [0, 1])
    made.acknowledge("a", [0, 1])
    assert made.advance() == -1
    made.acknowledge("b", [0, 1])
    assert made.advance() == 1
    assert made.acked_through("d") == 1, "it was sent nothing"


def test_a_bookie_that_comes_back_owes_what_is_pending_and_nothing_of_before() -> None:
    made = tracker(pushed=(1, 0))
    made.acknowledge("a", [0])
    made.suspend("a")
    for entry_id in range(2, 50):
        made.push(entry_id)
    for bookie_id in "bc":
        made.acknowledge(bookie_id, list(range(48)))
    assert made.advance() == 47
    made.acknowledge("a", [48])
    assert made.resume(0) == [48, 49]
    assert made.acked_through("a") == made.order_of(48) - 1
    made.acknowledge("b", [48])
    assert made.advance() == 47, "a was not sent 48 when it spoke of it"
    made.acknowledge("a", [48])
    assert made.advance() == 48


def test_an_absent_bookie_does_not_gather_debts_for_ever() -> None:
    made = tracker(pushed=())
    made.suspend("a")
    for entry_id in range(100):
        made.push(entry_id)
        for bookie_id in "bc":
            made.acknowledge(bookie_id, [entry_id])
        made.advance()
    assert sum(map(len, made._unacked)) == 0
