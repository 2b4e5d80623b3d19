"""Moves that mend a placement, against an enumeration of all ensembles of small clusters."""

from __future__ import annotations

import random
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.placement_rig import rules_strategy
from triplicate.errors import NotEnoughBookies
from triplicate.ledger import PlacementRules, ensemble_verdict, mend_ensemble


def level_of(ensemble: tuple[str, ...], rules: PlacementRules) -> int:
    """How many of the demands, the strictest first, the ensemble misses."""
    demands = rules.relaxations(rules.demand())
    return next((level for level, demand in enumerate(demands) if rules.is_satisfied(ensemble, demand)), len(demands))


@settings(deadline=None, max_examples=examples(300))
@given(rules_strategy(), st.integers(0, 1000), st.data())
def test_the_fewest_moves_lead_to_the_best_ensemble(drawn: tuple[PlacementRules, int], seed: int, data: st.DataObject) -> None:
    rules, size = drawn
    ensemble = tuple(data.draw(st.permutations(sorted(rules.sites)))[:size])
    writable = data.draw(st.sets(st.sampled_from(sorted(rules.sites))))
    candidates = [choice for choice in permutations(rules.sites, size) if is_reachable(ensemble, choice, writable)]
    best = min(level_of(choice, rules) for choice in candidates)
    present = level_of(ensemble, rules)
    try:
        mend = mend_ensemble(ensemble, writable, random.Random(seed), rules)
    except NotEnoughBookies:
        assert 0 < present == best
        return
    assert level_of(mend.ensemble, rules) == best
    assert best < present or mend.moves == ()
    assert len(mend.moves) == min(differing(ensemble, choice) for choice in candidates if level_of(choice, rules) == best)
    assert ensemble_verdict(mend.ensemble, rules).adherence <= ensemble_verdict(ensemble, rules).adherence
    moved = list(ensemble)
    for move in mend.moves:
        assert move.target in writable
        assert move.target not in moved
        moved[move.position] = move.target
    assert tuple(moved) == mend.ensemble
    assert mend == mend_ensemble(ensemble, sorted(writable, reverse=True), random.Random(seed), rules)
    assert mend_ensemble(mend.ensemble, writable, random.Random(seed), rules).moves == () if best == 0 else True


def is_reachable(ensemble: tuple[str, ...], choice: tuple[str, ...], writable: set[str]) -> bool:
    """Whether each changed position has a writable bookie from outside of the ensemble."""
    return all(after == before or (after in writable and after not in ensemble) for before, after in zip(ensemble, choice, strict=True))


def differing(ensemble: tuple[str, ...], choice: tuple[str, ...]) -> int:
    return sum(before != after for before, after in zip(ensemble, choice, strict=True))
