"""Choosing bookies for ensembles: for new ledgers, and for positions whose bookie failed.

A choice is first drawn from all candidates, as if no domain mattered. If it breaks a rule, bookies are searched that keep the rules. So the
random stream gives the same choice as without rules wherever these make no difference. Names are sorted before the draw, so one seed gives
one choice in any order of the listing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Protocol

from triplicate.errors import ArgumentError, NotEnoughBookies
from triplicate.ledger.placement.ensemble_search import EnsembleSearch
from triplicate.ledger.placement.placement_rules import Demand, PlacementRules

CHANGE_STEPS = 20_000
"""Bookies and searches that one change of an ensemble tries before it gives up. Only the search that reaches the limit exceeds it."""


@dataclass(slots=True)
class _Work:
    """The bookies and searches that one change has tried. Every turn of its loops counts, since a change holds its caller's event loop."""

    steps: int = 0

    def add(self, search_steps: int) -> None:
        self.steps += 1 + search_steps

    @property
    def is_too_much(self) -> bool:
        return self.steps > CHANGE_STEPS


class RandomSource(Protocol):
    """The methods of `random.Random` that placement needs."""

    def sample(self, population: Sequence[str], k: int) -> list[str]:
        """`k` distinct members of `population` in random order."""

    def random(self) -> float:
        """A number from 0 to 1."""


def choose_ensemble(
    writable: Iterable[str], size: int, rng: RandomSource, avoid: Collection[str] = (), rules: PlacementRules | None = None
) -> tuple[str, ...]:
    """An ensemble for a new ledger.

    Args:
        writable: ids of the bookies that accept writes.
        size: ensemble size.
        rng: the node's random stream for placement.
        avoid: bookies that recently failed; chosen only when there are too few others. Preferred numbers of racks and regions give way
            first, enforced ones and different machines do not.
        rules: None: any distinct bookies.

    Raises:
        NotEnoughBookies: fewer writable bookies than `size`, or no choice of them keeps the rules; the message says which are missing.
    """
    if size < 1:
        raise ArgumentError(f"ensemble_size is {size}; it must be at least 1")
    names = sorted(set(writable))
    if len(names) < size:
        raise NotEnoughBookies(
            f"an ensemble of {size} needs {size} writable bookies, there are {len(names)} ({_listed(names)}); start "
            + ("more bookies or create the ledger with a smaller ensemble_size and write_quorum" if names else "the cluster's bookies")
        )
    if rules is None:
        return tuple(draw_bookies(names, size, rng, avoid))
    demand = rules.demand()
    chosen = _choose([""] * size, range(size), names, rng, avoid, rules, demand, _Work())
    if chosen is None:
        raise NotEnoughBookies(
            f"an ensemble of {size} with a write quorum of {rules.write_quorum} needs {needed_domains(rules, demand)}; the {len(names)} "
            f"writable bookies are {bookies_by_domain(names, rules)}; start more bookies elsewhere or create the ledger with a smaller "
            "write_quorum"
        )
    return tuple(chosen)


def replace_bookies(
    ensemble: Sequence[str],
    failed: Collection[int],
    writable: Iterable[str],
    rng: RandomSource,
    avoid: Collection[str] = (),
    rules: PlacementRules | None = None,
) -> tuple[str, ...]:
    """The ensemble after a change.

    Each failed position gets a bookie that is neither in the ensemble nor among the failed ones. Where there are too few of
    those, the lowest positions are replaced and the others stay as they are; the writer continues as long as its quorum holds.

    Args:
        ensemble: bookie ids by position.
        failed: positions to replace.
        writable: ids of the bookies that accept writes.
        avoid: bookies that recently failed elsewhere; chosen only when there are too few others, as in `choose_ensemble`.
        rules: None: any distinct bookies.

    Raises:
        NotEnoughBookies: not even one position could be replaced; with `rules`, not without breaking them, or not within `CHANGE_STEPS`.
    """
    positions = sorted(set(failed))
    if not positions:
        return tuple(ensemble)
    if positions[0] < 0 or positions[-1] >= len(ensemble):
        raise ArgumentError(f"positions {positions} are not all inside an ensemble of {len(ensemble)}")
    present = set(ensemble)
    spare = sorted(set(writable) - present)
    gone = [ensemble[position] for position in positions]
    if not spare:
        raise NotEnoughBookies(
            f"{_listed(gone)} failed and {len(positions)} writable bookie(s) outside the ensemble ({_listed(ensemble)}) "
            f"are needed to replace them, there are 0; writable: {_listed(sorted(set(writable)))}; start more bookies"
        )
    count = min(len(spare), len(positions))
    if rules is None:
        return with_bookies(ensemble, positions, draw_bookies(spare, count, rng, avoid))
    demand, work = rules.demand(), _Work()
    for some in (some for replaced in range(count, 0, -1) for some in combinations(positions, replaced)):
        chosen = _choose(ensemble, some, spare, rng, avoid, rules, demand, work)
        if chosen is not None:
            return with_bookies(ensemble, some, chosen)
        if work.is_too_much:
            break
    raise NotEnoughBookies(
        f"{_listed(gone)} failed, and no writable bookie outside the ensemble ({_listed(ensemble)}) may replace them: a write quorum of "
        f"{rules.write_quorum} needs {needed_domains(rules, demand)}; those outside are {bookies_by_domain(spare, rules)}, the others "
        f"{bookies_by_domain([name for name in ensemble if name not in gone], rules)}; start more bookies elsewhere"
    )


def rearrange_bookies(
    ensemble: Sequence[str], failed: Collection[int], writable: Iterable[str], rng: RandomSource, rules: PlacementRules
) -> tuple[str, ...] | None:
    """An ensemble without the failed bookies that keeps the rules, where `replace_bookies` finds none: the fewest others change as well.

    Where the ensemble is larger than the write quorum, a position has two neighbours in different write sets, and the bookies of both may
    leave no machine for it. A bookie may go to another position of the ensemble. Racks and regions that are only preferred give way
    before another bookie changes.

    Args:
        ensemble: bookie ids by position.
        failed: positions that must change.
        writable: ids of the bookies that accept writes. Others keep their position, or leave it.

    Returns:
        None: there is no such ensemble, or none was found within `CHANGE_STEPS`.
    """
    positions = sorted(set(failed))
    others = [position for position in range(len(ensemble)) if position not in positions]
    names = sorted(set(writable))
    surplus = len(set(names) - set(ensemble)) - len(positions)
    order = draw_bookies(names, len(names), rng, (), rules)
    unwritable = {position for position in others if ensemble[position] not in names}
    work = _Work()
    for some in (some for moved in range(len(others) + 1) for some in _moves(others, moved, unwritable, surplus)):
        free = sorted([*positions, *some])
        kept = {ensemble[position] for position in range(len(ensemble)) if position not in some}
        search = EnsembleSearch(ensemble, free, [name for name in order if name not in kept], (), rules)
        for relaxed in rules.relaxations(rules.demand()):
            found = search.run(relaxed)
            if found is not None:
                return with_bookies(ensemble, free, found)
            work.add(search.steps)
            if work.is_too_much:
                return None
    return None


def _moves(others: Sequence[int], count: int, unwritable: Collection[int], surplus: int) -> Iterator[tuple[int, ...]]:
    """The sets of `count` positions that may change beside the failed ones, in the order of `combinations`.

    A writable bookie that leaves its position may go to another; each unwritable one needs a spare bookie in its place.

    Args:
        surplus: spare bookies beyond those for the failed positions; if negative, there are no sets.
    """
    limited = sum(position in unwritable for position in others)
    if surplus < 0 or len(others) - limited + min(limited, surplus) < count:
        return  # Without this look ahead, exponentially many beginnings would have no end.
    if count == 0:
        yield ()
        return
    for index, position in enumerate(others):
        for rest in _moves(others[index + 1 :], count - 1, unwritable, surplus - (position in unwritable)):
            yield (position, *rest)


def _choose(
    ensemble: Sequence[str],
    positions: Sequence[int],
    names: list[str],
    rng: RandomSource,
    avoid: Collection[str],
    rules: PlacementRules,
    demand: Demand,
    work: _Work,
) -> list[str] | None:
    """Bookies for these positions; None if no choice keeps the rules."""
    drawn = draw_bookies(names, len(positions), rng, avoid, rules)
    if rules.is_satisfied(with_bookies(ensemble, positions, drawn), demand):
        return drawn
    preferred = [name for name in names if name not in avoid]
    order = draw_bookies(names, len(names), rng, avoid, rules)
    for candidates in (order[: len(preferred)], order) if len(preferred) < len(names) else (order,):
        if len(candidates) < len(positions):
            continue
        search = EnsembleSearch(ensemble, positions, candidates, avoid, rules)
        for relaxed in rules.relaxations(demand):
            found = search.run(relaxed)
            if found is not None:
                return found
            work.add(search.steps)
    return None


def draw_bookies(names: list[str], count: int, rng: RandomSource, avoid: Collection[str], rules: PlacementRules | None = None) -> list[str]:
    """`count` names in random order; those to avoid come last."""
    preferred = [name for name in names if name not in avoid]
    first = min(count, len(preferred))
    rest = [name for name in names if name in avoid] if count > first else []
    if rules is not None and rules.policy.weight_multiple > 0:
        return _weighted(preferred, rng, rules)[:first] + _weighted(rest, rng, rules)[: count - first]
    if not rest:
        return rng.sample(preferred, count)
    return rng.sample(preferred, first) + rng.sample(rest, count - first)


def _weighted(names: list[str], rng: RandomSource, rules: PlacementRules) -> list[str]:
    """All names in random order; a name with twice the free disk is twice as likely to come next.

    Free disk counts up to a multiple of the median, and bookies whose free disk is not known have the median. Source: BookKeeper
    `WeightedRandomSelectionImpl`; the order is that of Efraimidis and Spirakis, "Weighted random sampling with a reservoir".
    """
    known = [free for name in names if (free := rules.site(name).free_bytes) is not None]
    middle = max(1.0, float(median(known))) if known else 1.0
    keys: dict[str, float] = {}
    for name in names:
        free = rules.site(name).free_bytes
        weight = middle if free is None else max(1.0, min(float(free), rules.policy.weight_multiple * middle))
        keys[name] = rng.random() ** (middle / weight)
    return sorted(names, key=lambda name: -keys[name])


def with_bookies(ensemble: Sequence[str], positions: Sequence[int], chosen: Sequence[str]) -> tuple[str, ...]:
    """The ensemble with these bookies at these positions."""
    changed = list(ensemble)
    for position, bookie_id in zip(positions, chosen, strict=False):
        changed[position] = bookie_id
    return tuple(changed)


def needed_domains(rules: PlacementRules, demand: Demand) -> str:
    """The domains that a write set needs, for a message."""
    policy, enforced = rules.policy, rules.enforced_demand()
    needs = [f"{rules.write_quorum} different machines"] if demand.machines or enforced.machines else []
    needs += [f"{number} {kind}" for number, kind in ((enforced.racks, "racks"), (enforced.regions, "regions")) if number > 1]
    acks = f", which is acknowledged in {rules.needed_for_ack} {policy.ack_domain.value}" if rules.needed_for_ack > 1 else ""
    return f"{' and '.join(needs)} for each entry{acks}"


def bookies_by_domain(names: Sequence[str], rules: PlacementRules) -> str:
    """The bookies by machine or, where locations are enforced, by rack, for a message."""
    demand = rules.enforced_demand()
    by_rack = demand.racks > 1 or demand.regions > 1
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(str(rules.location(name)) if by_rack else rules.site(name).host, []).append(name)
    return "in " + "; ".join(f"{domain}: {_listed(groups[domain])}" for domain in sorted(groups)) if groups else "none"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"
