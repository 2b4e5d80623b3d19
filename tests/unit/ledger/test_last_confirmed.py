"""The last-add-confirmed that answers of an ensemble prove together."""

from triplicate.ledger import LastConfirmed


def test_the_greatest_last_add_confirmed_wins() -> None:
    answers = LastConfirmed(["a", "b", "c"], 3, 2)
    answers.answered(0, 7, 4, 700)
    assert not answers.is_covered
    answers.answered(1, 6, 5, 600)
    assert answers.is_covered
    assert answers.last_add_confirmed == 5


def test_an_entrys_own_id_is_never_taken_as_confirmed() -> None:
    answers = LastConfirmed(["a"], 1, 1)
    answers.answered(0, 9, -1, 90)
    assert answers.last_add_confirmed == -1


def test_explicit_negatives_cover() -> None:
    answers = LastConfirmed(["a", "b", "c"], 3, 2)
    answers.nothing_there(2)
    answers.nothing_there(0)
    assert answers.is_covered
    assert answers.last_add_confirmed == -1


def test_errors_do_not_cover() -> None:
    answers = LastConfirmed(["a", "b", "c"], 3, 2)
    answers.failed(0, "refused")
    answers.nothing_there(1)
    assert not answers.is_covered
    assert not answers.is_exhausted
    answers.failed(2, "timed out")
    assert answers.is_exhausted
    assert answers.missing() == "a (refused), c (timed out)"


def test_coverage_is_per_write_quorum_not_per_ensemble() -> None:
    # Two neighbours of six are unknown: four of six answered, and yet an entry may be confirmed by just these two.
    answers = LastConfirmed(list("abcdef"), 2, 2)
    for position in (0, 1, 2, 3):
        answers.nothing_there(position)
    assert not answers.is_covered
    answers.nothing_there(5)
    assert answers.is_covered
    # Every second one unknown: three of six answered, and no write quorum can hide an entry.
    answers = LastConfirmed(list("abcdef"), 2, 2)
    for position in (0, 2, 4):
        answers.nothing_there(position)
    assert answers.is_covered


def test_a_damaged_copy_covers_and_says_nothing() -> None:
    answers = LastConfirmed(["a", "b", "c"], 3, 2)
    answers.damaged(0)
    answers.answered(1, 3, 2, 30)
    assert answers.is_covered
    assert (answers.last_add_confirmed, answers.length_at(3), answers.length_at(2), answers.longest()) == (2, 30, None, 30)


def test_a_late_answer_replaces_a_failure() -> None:
    answers = LastConfirmed(["a", "b", "c"], 3, 2)
    answers.failed(0, "slow")
    answers.answered(0, 1, 0, 10)
    answers.nothing_there(1)
    assert answers.is_covered
