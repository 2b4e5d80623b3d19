"""Choices of bookies against an enumeration of all choices, for small clusters."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.placement_rig import rules_strategy
from triplicate.errors import NotEnoughBookies
from triplicate.ledger import (
    Adherence,
    BookieSite,
    FaultDomain,
    PlacementRules,
    choose_ensemble,
    ensemble_verdict,
    rearrange_bookies,
    replace_bookies,
)


def write_sets_of(ensemble: tuple[str, ...], quorum: int) -> Iterator[list[str]]:
    for first in range(len(ensemble)):
        yield [ensemble[(first + step) % len(ensemble)] for step in range(quorum)]


def shares_machine(ensemble: tuple[str, ...], rules: PlacementRules) -> bool:
    return any(len({rules.sites[name].host for name in names}) < len(names) for names in write_sets_of(ensemble, rules.write_quorum))


def lacks_domains(ensemble: tuple[str, ...], rules: PlacementRules) -> bool:
    policy, quorum = rules.policy, rules.write_quorum
    for names in write_sets_of(ensemble, quorum):
        locations = [rules.sites[name].location for name in names]
        if len(set(locations)) < min(policy.min_racks, quorum):
            return True
        if len({location.region for location in locations}) < min(policy.min_regions, quorum):
            return True
    return False


def lacks_acks(names: list[str], rules: PlacementRules) -> bool:
    """Whether an entry on these bookies finds too few domains to be acknowledged."""
    domains = {rules.policy.ack_domain.of(rules.sites[name]) for name in names}
    return len(domains) < min(rules.policy.min_ack_domains, rules.write_quorum)


def may_share(rules: PlacementRules) -> bool:
    """Whether copies may share a machine: there is one, and acknowledgements do not need more."""
    several = rules.policy.ack_domain is FaultDomain.MACHINE and min(rules.policy.min_ack_domains, rules.write_quorum) > 1
    return len({site.host for site in rules.sites.values()}) == 1 and not several


def keeps_the_enforced(ensemble: tuple[str, ...], rules: PlacementRules) -> bool:
    acknowledged = not any(lacks_acks(names, rules) for names in write_sets_of(ensemble, rules.write_quorum))
    return (may_share(rules) or not shares_machine(ensemble, rules)) and acknowledged


def is_allowed(ensemble: tuple[str, ...], rules: PlacementRules) -> bool:
    return keeps_the_enforced(ensemble, rules) and not (rules.policy.enforced and lacks_domains(ensemble, rules))


def is_ideal(ensemble: tuple[str, ...], rules: PlacementRules) -> bool:
    return keeps_the_enforced(ensemble, rules) and not lacks_domains(ensemble, rules)


@settings(deadline=None)
@given(rules_strategy(), st.integers(0, 1000))
def test_a_new_ensemble_keeps_the_rules_if_any_does(drawn: tuple[PlacementRules, int], seed: int) -> None:
    rules, size = drawn
    choices = list(permutations(rules.sites, size))
    try:
        chosen = choose_ensemble(rules.sites, size, random.Random(seed), (), rules)
    except NotEnoughBookies:
        assert not any(is_allowed(choice, rules) for choice in choices)
        return
    assert len(set(chosen)) == size
    assert is_allowed(chosen, rules)
    assert is_ideal(chosen, rules) == any(is_ideal(choice, rules) for choice in choices)
    assert chosen == choose_ensemble(sorted(rules.sites, reverse=True), size, random.Random(seed), (), rules)


@settings(deadline=None)
@given(rules_strategy(), st.integers(0, 1000), st.data())
def test_bookies_to_avoid_are_chosen_only_where_others_break_a_rule(
    drawn: tuple[PlacementRules, int], seed: int, data: st.DataObject
) -> None:
    rules, size = drawn
    avoid = data.draw(st.sets(st.sampled_from(sorted(rules.sites))))
    try:
        chosen = choose_ensemble(rules.sites, size, random.Random(seed), avoid, rules)
    except NotEnoughBookies:
        assert not any(is_allowed(choice, rules) for choice in permutations(rules.sites, size))
        return
    assert is_allowed(chosen, rules)
    others = [name for name in rules.sites if name not in avoid]
    if not is_ideal(chosen, rules) and avoid & set(chosen):
        assert not any(is_allowed(choice, rules) for choice in permutations(others, size))


def keeps_the_rules(before: tuple[str, ...], after: tuple[str, ...], rules: PlacementRules) -> bool:
    """Whether no write set with a new bookie breaks a rule because of it. A rule that was broken before may stay broken."""
    alone = may_share(rules)
    new = {position for position in range(len(before)) if after[position] != before[position]}
    for first in range(len(before)):
        positions = [(first + step) % len(before) for step in range(rules.write_quorum)]
        names = [after[position] for position in positions]
        for position in positions:
            if position in new and not alone:
                others = [name for name in names if name != after[position]]
                if any(rules.sites[name].host == rules.sites[after[position]].host for name in others):
                    return False
        locations = [rules.sites[name].location for name in names]
        if new & set(positions) and lacks_acks(names, rules):
            return False
        if rules.policy.enforced and new & set(positions):
            if len(set(locations)) < min(rules.policy.min_racks, rules.write_quorum):
                return False
            if len({location.region for location in locations}) < min(rules.policy.min_regions, rules.write_quorum):
                return False
    return True


@settings(deadline=None)
@given(rules_strategy(), st.integers(0, 1000), st.data())
def test_a_change_replaces_as_many_positions_as_the_rules_allow(drawn: tuple[PlacementRules, int], seed: int, data: st.DataObject) -> None:
    rules, size = drawn
    before = tuple(data.draw(st.permutations(sorted(rules.sites)))[:size])
    failed = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    spare = [name for name in rules.sites if name not in before]

    most = 0
    for count in range(1, min(len(spare), len(failed)) + 1):
        for chosen in permutations(spare, count):
            for positions in permutations(sorted(failed), count):
                after = list(before)
                for position, name in zip(positions, chosen, strict=True):
                    after[position] = name
                if keeps_the_rules(before, tuple(after), rules):
                    most = max(most, count)
    try:
        changed = replace_bookies(before, failed, rules.sites, random.Random(seed), (), rules)
    except NotEnoughBookies:
        assert most == 0
        return
    assert keeps_the_rules(before, changed, rules)
    assert sum(old != new for old, new in zip(before, changed, strict=True)) == most
    assert all(before[position] == changed[position] for position in range(size) if position not in failed)


@settings(deadline=None, max_examples=examples(300))
@given(rules_strategy(), st.data())
def test_a_rearrangement_changes_the_fewest_other_positions(drawn: tuple[PlacementRules, int], data: st.DataObject) -> None:
    rules, size = drawn
    before = tuple(data.draw(st.permutations(sorted(rules.sites)))[:size])
    failed = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    writable = data.draw(st.sets(st.sampled_from(sorted(rules.sites)))) - {before[position] for position in failed}

    def moved(after: tuple[str, ...]) -> int:
        return sum(before[position] != after[position] for position in range(size) if position not in failed)

    def may_become(after: tuple[str, ...]) -> bool:
        changed = [name for old, name in zip(before, after, strict=True) if old != name]
        return (
            all(before[position] != after[position] for position in failed)
            and set(changed) <= writable
            and keeps_the_rules(before, after, rules)
        )

    fewest = min((moved(after) for after in permutations(rules.sites, size) if may_become(after)), default=None)
    found = rearrange_bookies(before, failed, writable, random.Random(data.draw(st.integers(0, 1000))), rules)
    if found is None:
        assert fewest is None
    else:
        assert may_become(found)
        assert moved(found) == fewest


@settings(deadline=None)
@given(rules_strategy(), st.data())
def test_the_verdict_is_that_of_the_rules(drawn: tuple[PlacementRules, int], data: st.DataObject) -> None:
    rules, size = drawn[0].for_copies, drawn[1]
    ensemble = tuple(data.draw(st.permutations(sorted(rules.sites)))[:size])
    verdict = ensemble_verdict(ensemble, rules)
    ideal = not shares_machine(ensemble, rules) and not lacks_domains(ensemble, rules)
    assert verdict.adherence == (Adherence.STRICT if ideal else Adherence.SOFT if is_allowed(ensemble, rules) else Adherence.FAILED)
    assert bool(verdict.reasons) == (not ideal)


@given(st.integers(3, 8), st.integers(0, 1000), st.integers(1, 3))
def test_machines_that_all_differ_leave_the_draw_as_it_is(count: int, seed: int, quorum: int) -> None:
    names = [f"b{number}" for number in range(count)]
    rules = PlacementRules(quorum, {name: BookieSite(f"host of {name}") for name in names})
    ours, plain = random.Random(seed), random.Random(seed)
    assert choose_ensemble(names, 3, ours, names[:1], rules) == choose_ensemble(names, 3, plain, names[:1])
    if count > 3:
        assert replace_bookies(names[:3], [1], names, ours, (), rules) == replace_bookies(names[:3], [1], names, plain)
    assert ours.getstate() == plain.getstate()
