"""How recent a copy is known to be, from the answers about the end of the log and the copy's own position."""

from __future__ import annotations

from triplicate.sql.core.copy_freshness import OPEN_MAX, CopyFreshness


def test_a_copy_without_an_answer_has_no_age() -> None:
    freshness = CopyFreshness()
    freshness.moved(10)
    assert freshness.age_s(5.0) is None


def test_a_copy_at_the_end_is_as_recent_as_the_question_and_not_as_the_answer() -> None:
    freshness = CopyFreshness()
    freshness.moved(10)
    assert freshness.answered(10, 3.0)
    assert freshness.age_s(5.0) == 2.0


def test_a_copy_behind_the_end_is_recent_once_it_has_reached_it() -> None:
    freshness = CopyFreshness()
    assert not freshness.answered(12, 3.0)
    assert freshness.lacks == 12
    assert not freshness.moved(11)
    assert freshness.age_s(5.0) is None
    assert freshness.moved(12)
    assert freshness.age_s(5.0) == 2.0
    assert freshness.lacks == 0


def test_an_end_that_is_never_reached_does_not_hide_later_ones() -> None:
    freshness = CopyFreshness()
    freshness.answered(100, 1.0)
    freshness.answered(20, 2.0)
    assert freshness.moved(20)
    assert freshness.current_at == 2.0
    assert freshness.lacks == 0


def test_an_older_answer_does_not_make_a_copy_older() -> None:
    freshness = CopyFreshness()
    freshness.answered(0, 5.0)
    assert not freshness.answered(0, 4.0)
    assert freshness.current_at == 5.0


def test_nothing_is_known_of_a_copy_that_has_moved_back() -> None:
    freshness = CopyFreshness()
    freshness.moved(10)
    freshness.answered(10, 3.0)
    freshness.moved(4)
    assert freshness.age_s(5.0) is None


def test_a_copy_far_behind_remembers_a_bounded_number_of_answers() -> None:
    freshness = CopyFreshness()
    for number in range(3 * OPEN_MAX):
        freshness.answered(100 + number, float(number))
    freshness.moved(1000)
    assert freshness.current_at == OPEN_MAX - 1
