from __future__ import annotations

import random

import pytest

from triplicate.errors import ArgumentError, NotEnoughBookies
from triplicate.ledger import choose_ensemble, replace_bookies

NAMES = [f"bookie-{number}" for number in range(1, 7)]


def test_an_ensemble_is_distinct_writable_bookies() -> None:
    for seed in range(50):
        ensemble = choose_ensemble(NAMES, 4, random.Random(seed))
        assert len(set(ensemble)) == 4
        assert set(ensemble) <= set(NAMES)


def test_one_seed_gives_one_choice_for_any_order_of_names() -> None:
    choices = {choose_ensemble(order, 3, random.Random(7)) for order in (NAMES, NAMES[::-1], set(NAMES), NAMES + NAMES)}
    assert len(choices) == 1


def test_all_bookies_are_chosen_sooner_or_later() -> None:
    rng = random.Random(1)
    assert {name for _ in range(100) for name in choose_ensemble(NAMES, 2, rng)} == set(NAMES)


def test_bookies_to_avoid_are_taken_only_when_needed() -> None:
    for seed in range(20):
        assert set(choose_ensemble(NAMES, 4, random.Random(seed), avoid=NAMES[:2])) == set(NAMES[2:])
        assert set(choose_ensemble(NAMES, 5, random.Random(seed), avoid=NAMES[:2])) > set(NAMES[2:])


def test_too_few_bookies_are_listed_with_the_number_needed() -> None:
    with pytest.raises(NotEnoughBookies, match=r"an ensemble of 3 needs 3 writable bookies, there are 2 \(a, b\); start more bookies"):
        choose_ensemble(["b", "a"], 3, random.Random(0))
    with pytest.raises(NotEnoughBookies, match=r"there are 0 \(none\)"):
        choose_ensemble([], 1, random.Random(0))
    with pytest.raises(ArgumentError, match="ensemble_size"):
        choose_ensemble(NAMES, 0, random.Random(0))


def test_failed_positions_get_bookies_from_outside() -> None:
    for seed in range(20):
        changed = replace_bookies(("a", "b", "c"), [1], ["a", "b", "c", "d", "e"], random.Random(seed))
        assert (changed[0], changed[2]) == ("a", "c")
        assert changed[1] in ("d", "e")


def test_a_failed_bookie_that_still_looks_writable_is_not_chosen_again() -> None:
    assert replace_bookies(("a", "b"), [0], ["a", "b", "c"], random.Random(0)) == ("c", "b")


def test_what_can_be_replaced_is_replaced() -> None:
    assert replace_bookies(("a", "b", "c"), [2, 0], ["c", "d"], random.Random(0)) == ("d", "b", "c")


def test_no_replacement_at_all_is_an_error_naming_all() -> None:
    with pytest.raises(NotEnoughBookies, match=r"a, c failed and 2 writable bookie\(s\) outside the ensemble \(a, b, c\).* writable: b;"):
        replace_bookies(("a", "b", "c"), [0, 2], ["b"], random.Random(0))


def test_nothing_failed_changes_nothing() -> None:
    assert replace_bookies(("a", "b"), [], [], random.Random(0)) == ("a", "b")
    with pytest.raises(ArgumentError, match="not all inside"):
        replace_bookies(("a", "b"), [2], ["c"], random.Random(0))
