from __future__ import annotations

import random
from typing import Any

import pytest

from triplicate.errors import ArgumentError, NotEnoughBookies
from triplicate.ledger import (
    AckDomains,
    BookieSite,
    FaultDomain,
    NetworkLocation,
    PlacementPolicy,
    PlacementRules,
    choose_ensemble,
    rearrange_bookies,
    replace_bookies,
)
from triplicate.ledger.placement.placement_rules import Demand

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


def rules_of(hosts: str, quorum: int, policy: PlacementPolicy = PlacementPolicy()) -> PlacementRules:  # noqa: B008
    """Bookies a, b, c … on the machines of these letters; a machine's rack is its letter in lower case."""
    sites = {name: BookieSite(host, NetworkLocation("region", host.lower())) for name, host in zip("abcdefghijkl", hosts, strict=False)}
    return PlacementRules(quorum, sites, policy)


def test_copies_are_on_different_machines() -> None:
    rules = rules_of("XXXYYYZZZ", 3)
    for seed in range(50):
        ensemble = choose_ensemble(rules.sites, 3, random.Random(seed), (), rules)
        assert len({rules.site(name).host for name in ensemble}) == 3


def test_on_the_only_machine_copies_share_it() -> None:
    rules = rules_of("XXX", 3)
    assert set(choose_ensemble("abc", 3, random.Random(0), (), rules)) == set("abc")
    with pytest.raises(NotEnoughBookies, match="3 different machines"):
        choose_ensemble("abc", 3, random.Random(0), (), rules_of("XXXY", 3))


def test_too_few_machines_are_named_with_their_bookies() -> None:
    rules = rules_of("XXYY", 3)
    with pytest.raises(NotEnoughBookies, match=r"needs 3 different machines for each entry.* in X: a, b; Y: c, d; start more"):
        choose_ensemble("abcd", 3, random.Random(0), (), rules)


def test_the_write_sets_of_a_striped_ledger_keep_the_rule() -> None:
    rules = rules_of("XXYYZZ", 2)
    for seed in range(50):
        ensemble = choose_ensemble(rules.sites, 6, random.Random(seed), (), rules)
        hosts = [rules.site(name).host for name in ensemble]
        assert all(hosts[position] != hosts[(position + 1) % 6] for position in range(6))


def test_a_failed_position_gets_a_bookie_of_another_machine() -> None:
    rules = rules_of("XYZXYW", 3)
    for seed in range(20):
        assert replace_bookies("abc", [2], "abdef", random.Random(seed), (), rules) == ("a", "b", "f")


def test_no_machine_is_left_for_a_failed_position() -> None:
    rules = rules_of("XYZXY", 3)
    with pytest.raises(NotEnoughBookies, match=r"c failed.*3 different machines.*outside are in X: d; Y: e, the others in X: a; Y: b"):
        replace_bookies("abc", [2], "abde", random.Random(0), (), rules)


def test_a_machine_that_went_down_is_not_forgotten() -> None:
    rules = rules_of("XYX", 2)
    with pytest.raises(NotEnoughBookies):
        replace_bookies("ab", [1], "ac", random.Random(0), (), rules)


def test_preferred_racks_are_spread_as_far_as_possible_and_enforced_ones_refused() -> None:
    sites = {name: BookieSite(name, NetworkLocation(rack="near" if name in "abc" else "far")) for name in "abcd"}
    preferred, enforced = (PlacementRules(3, sites, PlacementPolicy(min_racks=3, enforced=each)) for each in (False, True))
    for seed in range(20):
        assert "d" in choose_ensemble("abcd", 3, random.Random(seed), (), preferred)
    with pytest.raises(NotEnoughBookies, match=r"3 racks for each entry.*/default-region/far: d; /default-region/near: a, b, c"):
        choose_ensemble("abcd", 3, random.Random(0), (), enforced)


def test_bookies_with_more_free_disk_are_chosen_more_often() -> None:
    sites = {name: BookieSite(name, free_bytes=free) for name, free in (("a", 100), ("b", 100), ("c", 300), ("d", 0))}
    sites["e"] = BookieSite("e")
    rules = PlacementRules(1, sites, PlacementPolicy(weight_multiple=3.0))
    rng, chosen = random.Random(1), dict.fromkeys(sites, 0)
    for _ in range(3000):
        chosen[choose_ensemble(sites, 1, rng, (), rules)[0]] += 1
    assert 1200 < chosen["c"] < 1800
    assert min(chosen["a"], chosen["b"], chosen["e"]) > 350
    assert chosen["d"] < 60
    assert choose_ensemble("ab", 1, random.Random(0), ["a"], rules) == ("b",)


def test_a_large_cluster_is_searched_in_a_bounded_number_of_steps() -> None:
    sites = {f"b{number:03d}": BookieSite(f"h{number % 4}", NetworkLocation(rack=f"r{number % 2}")) for number in range(400)}
    rules = PlacementRules(3, sites, PlacementPolicy(min_racks=3))
    ensemble = choose_ensemble(sites, 7, random.Random(0), (), rules)
    assert rules.is_satisfied(ensemble, Demand(True, 2, 1))


def on_machines(**names: str) -> dict[str, BookieSite]:
    """Sites by bookie, of ``machine="bookies"``, each bookie with a name of one letter."""
    return {name: BookieSite(machine) for machine, members in names.items() for name in members}


def test_lost_neighbours_are_replaced_together() -> None:
    # The machine of a lost bookie counts as long as the bookie is in the ensemble, and x in the place of b leaves none for that of a.
    rules = PlacementRules(2, on_machines(m1="ac", m2="bx", m3="dy"))
    with pytest.raises(NotEnoughBookies):
        replace_bookies("abcd", [0], "cdxy", random.Random(0), (), rules)
    with pytest.raises(NotEnoughBookies):
        replace_bookies("axcd", [0], "cdy", random.Random(0), (), rules)
    assert replace_bookies("abcd", [0, 1], "cdxy", random.Random(0), (), rules) == ("x", "y", "c", "d")


def test_a_present_bookie_moves_where_its_neighbours_leave_no_machine() -> None:
    # Machine m2 is lost with b and d. Its positions are between m1 and m3, where only these are left.
    rules = PlacementRules(2, on_machines(m1="ax", m2="bd", m3="cy"))
    with pytest.raises(NotEnoughBookies):
        replace_bookies("abcd", [1, 3], "axcy", random.Random(0), (), rules)
    for seed in range(20):
        changed = rearrange_bookies("abcd", [1, 3], "axcy", random.Random(seed), rules)
        assert changed is not None
        assert sorted(changed) == ["a", "c", "x", "y"], "bookies of the ensemble go to other positions"
        assert changed[0] == "a" or changed[2] == "c", "one of them stays"
        hosts = [rules.site(name).host for name in changed]
        assert hosts in (["m1", "m3"] * 2, ["m3", "m1"] * 2)


def test_a_rearrangement_that_changes_nobody_else_is_a_replacement() -> None:
    rules = PlacementRules(2, on_machines(m1="a", m2="bx", m3="c"))
    assert rearrange_bookies("abc", [1], "acx", random.Random(0), rules) == ("a", "x", "c")


def test_too_few_machines_have_no_rearrangement() -> None:
    # Of four positions with write quorum 3, any two are in one write set.
    rules = PlacementRules(3, on_machines(m1="au", m2="bv", m3="cw", m4="d"))
    assert rearrange_bookies("abcd", [3], "abcuvw", random.Random(0), rules) is None


def test_a_rearrangement_gives_up_after_a_limit() -> None:
    # Fourteen positions cannot be on three machines in turn, and there are too many ways to try.
    names = [f"b{number:02}" for number in range(60)]
    rules = PlacementRules(3, {name: BookieSite(f"m{number % 3}") for number, name in enumerate(names)})
    assert rearrange_bookies(names[:14], [0, 5], names[14:], random.Random(0), rules) is None


class CountedEnsemble(tuple[str, ...]):
    """Counts how often its bookies are read, as a measure of work."""

    reads = 0

    def __getitem__(self, key: Any) -> Any:
        self.reads += 1
        return super().__getitem__(key)


@pytest.mark.parametrize(("spare", "read_only"), [(0, 0), (1, 16)])
def test_a_wide_ensemble_without_spare_bookies_is_given_up_early(spare: int, read_only: int) -> None:
    # There are 2 ** 19 sets of others that could move; each but a few would need more spare bookies than there are.
    names = [f"b{number:02}" for number in range(20 + spare)]
    rules = PlacementRules(3, {name: BookieSite(f"m{number % 2}") for number, name in enumerate(names)})
    ensemble = CountedEnsemble(names[:20])
    assert rearrange_bookies(ensemble, [0], names[1 + read_only :], random.Random(0), rules) is None
    assert ensemble.reads < 500


def test_a_replacement_of_many_bookies_gives_up_after_a_limit() -> None:
    # Each of 2 ** 14 sets of the failed ones is a way to replace some, and every spare bookie is on a neighbour's machine.
    names = [f"b{number:02}" for number in range(35)]
    rules = PlacementRules(3, {name: BookieSite(f"m{number % 3 if number < 21 else 0}") for number, name in enumerate(names)})
    failed = [position for position in range(21) if position % 3]
    draws = 0

    class CountedDraws(random.Random):
        def sample(self, population: Any, k: int, **options: Any) -> list[Any]:
            nonlocal draws
            draws += 1
            return super().sample(population, k, **options)

    with pytest.raises(NotEnoughBookies):
        replace_bookies(names[:21], failed, names[21:], CountedDraws(0), (), rules)
    assert draws <= 20_002


def racks_of(letters: str, needed: int, kind: FaultDomain = FaultDomain.RACK, quorum: int = 3) -> PlacementRules:
    """Rules for the bookies a, b, c …, each on a machine of its own: one letter for the rack of each."""
    sites = {name: BookieSite(f"host-{name}", NetworkLocation(rack=rack)) for name, rack in zip("abcdef", letters, strict=False)}
    return PlacementRules(quorum, sites, PlacementPolicy(ack_domain=kind, min_ack_domains=needed))


def test_the_domains_of_acknowledgements_are_enforced() -> None:
    for seed in range(20):
        assert "d" in choose_ensemble("abcd", 3, random.Random(seed), (), racks_of("xxxy", 2))
        assert replace_bookies("abd", [2], "abcdef", random.Random(seed), (), racks_of("xxxyxy", 2)) == ("a", "b", "f")
    with pytest.raises(NotEnoughBookies, match=r"2 racks for each entry, which is acknowledged in 2 racks; .*default-region/x: a, b, c"):
        choose_ensemble("abc", 3, random.Random(0), (), racks_of("xxx", 2))
    with pytest.raises(NotEnoughBookies, match="acknowledged in 2 racks; those outside are in /default-region/x: c"):
        replace_bookies("abd", [2], "abcd", random.Random(0), (), racks_of("xxxy", 2))


def test_copies_of_acknowledged_entries_only_prefer_the_domains() -> None:
    rules = racks_of("xxx", 2)
    assert set(choose_ensemble("abc", 3, random.Random(0), (), rules.for_copies)) == set("abc")
    assert rules.for_copies.ack_domains("abc") is None


def test_a_small_write_quorum_needs_one_domain_per_copy() -> None:
    rules = racks_of("xxy", 3, quorum=2)
    assert rules.needed_for_ack == 2
    assert "c" in choose_ensemble("abc", 2, random.Random(0), (), rules)
    assert racks_of("xxy", 3, quorum=1).ack_domains("abc") is None


def test_the_only_machine_is_too_few_machines() -> None:
    rules = PlacementRules(2, {name: BookieSite("host") for name in "ab"}, PlacementPolicy(min_ack_domains=2))
    with pytest.raises(NotEnoughBookies, match="2 different machines for each entry, which is acknowledged in 2 machines"):
        choose_ensemble("ab", 2, random.Random(0), (), rules)


def test_regions_are_domains_of_their_own() -> None:
    sites = {name: BookieSite(name, NetworkLocation(region, name)) for name, region in zip("abcd", "rrrs", strict=True)}
    rules = PlacementRules(2, sites, PlacementPolicy(ack_domain=FaultDomain.REGION, min_ack_domains=2))
    for seed in range(20):
        assert "d" in choose_ensemble("abcd", 2, random.Random(seed), (), rules)
    assert rules.ack_domains("abd") == AckDomains(2, (1, 1, 2))


def test_an_ensemble_whose_bookies_moved_is_refused_with_their_places() -> None:
    rules = racks_of("xxyy", 2, quorum=2)
    assert rules.spanned_domains("acbd") == AckDomains(2, (1, 2, 1, 2))
    with pytest.raises(NotEnoughBookies, match="a in /default-region/x, b in /default-region/x, c in"):
        rules.spanned_domains("abcd")
