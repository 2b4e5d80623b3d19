"""The write tracker: confirmation in order, quorums, replaced bookies, standing still."""

import pytest

from triplicate.ledger import WriteTracker


def tracker(ensemble: str = "abc", write_quorum: int = 3, ack_quorum: int = 2, pushed: int = 10, first: int = 0) -> WriteTracker:
    made = WriteTracker(list(ensemble), write_quorum, ack_quorum, first)
    made.push(pushed)
    return made


def test_nothing_is_confirmed_at_first() -> None:
    made = tracker()
    assert (made.advance(), made.last_add_pushed) == (-1, 9)


def test_an_entry_is_confirmed_by_its_ack_quorum() -> None:
    made = tracker()
    made.acknowledge("a", [0])
    assert made.advance() == -1
    made.acknowledge("c", [0])
    assert made.advance() == 0


def test_a_later_entry_waits_for_all_before_it() -> None:
    made = tracker()
    for bookie_id in "ab":
        made.acknowledge(bookie_id, [1, 2])
    assert made.advance() == -1
    made.acknowledge("a", [0])
    made.acknowledge("c", [0])
    assert made.advance() == 2


def test_a_bookie_counts_once_however_often_it_answers() -> None:
    made = tracker()
    made.acknowledge("a", [0, 0, 0])
    made.acknowledge("a", [0])
    assert made.advance() == -1


def test_answers_for_entries_never_sent_are_ignored() -> None:
    made = tracker(pushed=1)
    for bookie_id in "ab":
        made.acknowledge(bookie_id, [0, 1, 2, -5])
    assert made.advance() == 0
    made.push()
    assert made.advance() == 0, "the early answer must not count for the entry that now has its id"


def test_answers_of_bookies_outside_the_ensemble_are_ignored() -> None:
    made = tracker()
    made.acknowledge("a", [0])
    made.acknowledge("z", [0])
    assert made.advance() == -1


def test_striped_entries_belong_to_their_write_sets_only() -> None:
    made = tracker("abcd", write_quorum=2, ack_quorum=2)
    made.acknowledge("c", [0])
    made.acknowledge("a", [0])
    assert made.advance() == -1, "entry 0 belongs to a and b"
    made.acknowledge("b", [0, 1])
    assert made.advance() == 0
    made.acknowledge("c", [1])
    assert made.advance() == 1
    assert [e for e in range(8) if made.holds(0, e)] == [0, 3, 4, 7]


def test_confirmation_stands_still_during_a_change() -> None:
    made = tracker()
    made.begin_change()
    for bookie_id in "abc":
        made.acknowledge(bookie_id, range(10))
    assert made.advance() == -1
    made.end_change()
    assert made.advance() == 9


def test_what_a_replaced_bookie_acknowledged_does_not_count() -> None:
    made = tracker()
    made.acknowledge("a", [0, 1])
    made.acknowledge("b", [0])
    assert made.advance() == 0
    made.begin_change()
    assert made.replace(["d", "b", "c"]) == [0]
    made.end_change()
    made.acknowledge("b", [1])
    assert made.advance() == 0, "a is gone, and d has not answered"
    made.acknowledge("a", [1])
    assert made.advance() == 0, "a late answer of a replaced bookie counts for nobody"
    made.acknowledge("d", [1])
    assert made.advance() == 1


def test_copies_are_not_complete_once_a_bookie_was_replaced_without_a_confirmed_entry() -> None:
    made = tracker(pushed=3)
    made.acknowledge("b", [0, 1, 2])
    made.acknowledge("c", [0, 1])
    assert made.advance() == 1
    made.begin_change()
    made.replace(["d", "b", "c"])
    made.end_change()
    for bookie_id in "cd":
        made.acknowledge(bookie_id, [2])
    assert made.advance() == 2
    assert made.positions_without_copies() == []
    assert not made.has_all_copies, "the metadata name a for the entries 0 and 1"


def test_bookies_that_stay_keep_what_they_acknowledged() -> None:
    made = tracker()
    made.acknowledge("b", [0, 2])
    made.acknowledge("c", [0, 1, 2])
    assert made.advance() == 0
    made.begin_change()
    made.replace(["d", "b", "c"])
    made.end_change()
    made.acknowledge("b", [1])
    assert made.advance() == 2


def test_a_new_bookie_is_owed_what_is_not_confirmed() -> None:
    made = tracker("abcd", write_quorum=2, ack_quorum=2, pushed=8)
    for bookie_id in "abc":
        made.acknowledge(bookie_id, [e for e in range(2) if made.holds("abcd".index(bookie_id), e)])
    assert made.advance() == 1
    made.begin_change()
    made.replace(["e", "b", "c", "d"])
    assert made.pending_of(0) == [3, 4, 7]


def test_reach_says_what_a_bookie_answered_in_full() -> None:
    made = tracker()
    made.acknowledge("a", [0, 1, 3])
    assert made.acked_through("a") == 1
    made.acknowledge("a", [2])
    assert made.acked_through("a") == 3
    assert made.acked_through("gone") == 9


def test_a_tracker_may_start_in_the_middle() -> None:
    made = tracker(first=100, pushed=2)
    assert made.advance() == 99
    for bookie_id in "bc":
        made.acknowledge(bookie_id, [100, 101])
    assert made.advance() == 101


@pytest.mark.parametrize("ids", [[0, 2, 1], [2, 1, 0], [0, 1, 1, 2], [1, 0, 2]])
def test_answers_may_come_in_any_order(ids: list[int]) -> None:
    made = tracker()
    made.acknowledge("a", ids)
    made.acknowledge("b", ids)
    assert made.advance() == 2


def test_changes_do_not_overlap() -> None:
    made = tracker()
    with pytest.raises(AssertionError):
        made.replace(["d", "b", "c"])
    made.begin_change()
    with pytest.raises(AssertionError):
        made.begin_change()


def test_an_absent_bookie_keeps_what_it_acknowledged_and_adds_nothing() -> None:
    made = tracker()
    made.acknowledge("a", [0, 1])
    made.suspend("a")
    assert (made.suspended, made.is_endangered, made.position_of("a")) == ((0,), False, None)
    made.acknowledge("a", [2])
    made.acknowledge("b", [0, 1, 2])
    assert made.advance() == 1, "entry 2 has one copy: a was not sent it"
    made.acknowledge("c", [2])
    assert made.advance() == 2


def test_a_bookie_that_comes_back_begins_behind_the_last_add_confirmed() -> None:
    made = tracker(pushed=6)
    for bookie_id in "bc":
        made.acknowledge(bookie_id, [0, 1, 2])
    made.acknowledge("a", [0, 4])
    made.suspend("a")
    assert made.advance() == 2
    assert made.resume(0) == [3, 4, 5]
    assert (made.suspended, made.acked_through("a")) == ((), 2)
    made.acknowledge("b", [3, 4])
    assert made.advance() == 2, "what a said before it failed is forgotten"
    made.acknowledge("a", [3])
    assert made.advance() == 3


def test_ack_quorums_are_in_danger_when_too_many_of_one_write_set_are_absent() -> None:
    made = tracker()
    made.suspend("b")
    assert not made.is_endangered
    made.suspend("c")
    assert made.is_endangered
    made.suspend("c")
    made.suspend("stranger")
    assert made.suspended == (1, 2)
    striped = tracker("abcdef", write_quorum=3, ack_quorum=2)
    striped.suspend("a")
    striped.suspend("d")
    assert not striped.is_endangered, "no three neighbours lack two"
    striped.suspend("e")
    assert striped.is_endangered


def test_a_change_replaces_some_of_the_absent_and_leaves_the_others_absent() -> None:
    made = tracker("abcde", write_quorum=3, ack_quorum=2)
    for bookie_id in "ac":
        made.suspend(bookie_id)
    made.begin_change()
    assert made.replace(list("xbcde")) == [0]
    made.end_change()
    assert (made.suspended, made.position_of("x"), made.position_of("c")) == ((2,), 0, None)
