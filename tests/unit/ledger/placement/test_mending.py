from __future__ import annotations

import random

import pytest

from triplicate.errors import NotEnoughBookies
from triplicate.ledger import (
    BookieSite,
    CopyMove,
    PlacementPolicy,
    PlacementRules,
    ensemble_verdict,
    mend_ensemble,
    parse_location,
)

RACKS = PlacementPolicy(min_racks=2, enforced=True)
PREFERRED = PlacementPolicy(min_racks=2, min_regions=2)


def rules_of(quorum: int, policy: PlacementPolicy, **sites: str) -> PlacementRules:
    """Sites as ``machine/region/rack``."""
    parsed = {}
    for name, text in sites.items():
        host, _, location = text.partition("/")
        parsed[name] = BookieSite(host, parse_location(f"/{location}"))
    return PlacementRules(quorum, parsed, policy)


def test_an_ensemble_that_keeps_the_rules_is_left_alone() -> None:
    rules = rules_of(2, RACKS, a="h1/n/r1", b="h2/n/r2", c="h3/n/r3")
    assert mend_ensemble("ab", "abc", random.Random(1), rules).moves == ()


def test_one_copy_goes_to_the_other_rack() -> None:
    rules = rules_of(3, RACKS, a="h1/n/r1", b="h2/n/r1", c="h3/n/r1", d="h4/n/r1", e="h5/n/r2")
    mend = mend_ensemble("abc", "abcde", random.Random(1), rules)
    assert mend.moves == (CopyMove(0, "e"),)
    assert mend.ensemble == ("e", "b", "c")
    assert ensemble_verdict(mend.ensemble, rules).adherence == 0


def test_one_of_two_copies_leaves_a_shared_machine() -> None:
    rules = rules_of(2, PlacementPolicy(), a="h1/n/r1", b="h1/n/r1", c="h1/n/r1", d="h2/n/r1")
    mend = mend_ensemble("ab", "abcd", random.Random(1), rules)
    assert [move.target for move in mend.moves] == ["d"]


def test_the_copies_that_stay_may_not_break_the_rule_among_themselves() -> None:
    """With three copies on one machine, two have to move."""
    rules = rules_of(3, PlacementPolicy(), a="h1/n/r1", b="h1/n/r1", c="h1/n/r1", d="h2/n/r1", e="h3/n/r1")
    assert sorted(move.target for move in mend_ensemble("abc", "de", random.Random(1), rules).moves) == ["d", "e"]


def test_without_a_bookie_elsewhere_it_is_refused_with_the_domains() -> None:
    rules = rules_of(2, RACKS, a="h1/n/r1", b="h2/n/r1", c="h3/n/r1")
    with pytest.raises(NotEnoughBookies, match=r"needs 2 different machines and 2 racks for each entry; those outside are in /n/r1: c"):
        mend_ensemble("ab", "abc", random.Random(1), rules)
    with pytest.raises(NotEnoughBookies, match="those outside are none"):
        mend_ensemble("ab", "", random.Random(1), rules)


def test_preferred_numbers_are_kept_as_far_as_the_bookies_allow() -> None:
    sites = {"a": "h1/n/r1", "b": "h2/n/r1", "c": "h3/n/r2"}
    rules = rules_of(2, PREFERRED, **sites)
    assert mend_ensemble("ab", "abc", random.Random(1), rules).ensemble in (("c", "b"), ("a", "c"))
    with pytest.raises(NotEnoughBookies, match=r"2 racks \(preferred\) and 2 regions \(preferred\)"):
        mend_ensemble("ac", "abc", random.Random(1), rules)
    rules = rules_of(2, PREFERRED, **sites, d="h4/s/r1")
    assert "d" in mend_ensemble("ac", "abcd", random.Random(1), rules).ensemble


def test_bookies_to_avoid_are_chosen_last() -> None:
    rules = rules_of(2, RACKS, a="h1/n/r1", b="h2/n/r1", c="h3/n/r2", d="h4/n/r2")
    for seed in range(20):
        assert mend_ensemble("ab", "cd", random.Random(seed), rules, ["c"]).moves[0].target == "d"
    assert mend_ensemble("ab", "c", random.Random(1), rules, ["c"]).moves[0].target == "c"


def test_no_move_puts_copies_together_for_a_while_if_another_order_does_not() -> None:
    """The copy of a goes to the machine of b, and that of b elsewhere: b moves first."""
    rules = rules_of(3, RACKS, a="h1/n/r1", b="h2/n/r1", c="h1/n/r1", d="h2/n/r1", e="h3/n/r2")
    for seed in range(20):
        mend = mend_ensemble("abc", "de", random.Random(seed), rules)
        present = list("abc")
        shared = [2]
        for move in mend.moves:
            present[move.position] = move.target
            shared.append(3 - len({rules.site(name).host for name in present}))
        assert shared == sorted(shared, reverse=True)


def test_the_search_for_a_large_ensemble_ends() -> None:
    sites = {f"b{number}": f"h{number}/n/r1" for number in range(60)}
    rules = rules_of(20, PlacementPolicy(min_racks=2, enforced=True), **sites, z="h0/n/r2")
    with pytest.raises(NotEnoughBookies):
        mend_ensemble([f"b{number}" for number in range(20)], [*sites], random.Random(1), rules)
