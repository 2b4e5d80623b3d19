"""Which copies to move to which bookies, so that an ensemble keeps the rules of placement, with as few moves as possible.

Racks and regions may have been stated after a ledger was written, and a ledger that was written while a rack was away misses a preferred
number of racks. The rules are kept as well as the bookies allow: first all of them, then the preferred numbers relaxed one by one, as for
a new ensemble.

Source: BookKeeper `RackawareEnsemblePlacementPolicyImpl.replaceToAdherePlacementPolicy`. It fills the ensemble from each position on and
takes the result with the fewest differences, and has no such method for regions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from triplicate.errors import NotEnoughBookies
from triplicate.ledger.placement.ensemble_choice import RandomSource, bookies_by_domain, draw_bookies, needed_domains, with_bookies
from triplicate.ledger.placement.ensemble_search import EnsembleSearch
from triplicate.ledger.placement.placement_rules import Demand, PlacementRules, is_set_satisfied
from triplicate.ledger.schedule import write_sets

MEND_STEPS = 50_000
"""Sets of positions and bookies that one mend tries before it gives up. For ensembles of up to seven bookies the choice is exact."""


@dataclass(frozen=True, slots=True)
class CopyMove:
    """The copies of one position of an ensemble go to another bookie."""

    position: int
    target: str


@dataclass(frozen=True, slots=True)
class EnsembleMend:
    """The moves that mend an ensemble, in the order in which they are made; none if it keeps the rules.

    Attributes:
        ensemble: after all moves.
    """

    moves: tuple[CopyMove, ...]
    ensemble: tuple[str, ...]


def mend_ensemble(
    ensemble: Sequence[str], writable: Iterable[str], rng: RandomSource, rules: PlacementRules, avoid: Collection[str] = ()
) -> EnsembleMend:
    """The fewest moves after which an ensemble keeps the rules as well as these bookies allow.

    Args:
        ensemble: bookie ids by position; each has a site in the rules.
        writable: ids of the bookies that may get copies.
        rng: the node's random stream for placement.
        avoid: bookies that are chosen only where others do not mend the ensemble.

    Raises:
        NotEnoughBookies: the ensemble breaks a rule, and no choice of bookies keeps the rules better; the message says which are missing.
    """
    demands = rules.relaxations(rules.demand())
    present = next((level for level, demand in enumerate(demands) if rules.is_satisfied(ensemble, demand)), len(demands))
    if present == 0:
        return EnsembleMend((), tuple(ensemble))
    spare = sorted(set(writable) - set(ensemble))
    order = draw_bookies(spare, len(spare), rng, avoid, rules)
    budget = MEND_STEPS
    for demand in demands[:present]:
        for positions in _sets_of_positions(len(ensemble), len(spare)):
            budget -= 1
            if budget <= 0:
                break
            if not _can_mend(ensemble, positions, rules, demand):
                continue
            search = EnsembleSearch(ensemble, positions, order, avoid, rules)
            chosen = search.run(demand)
            budget -= search.steps
            if chosen is not None:
                moves = [CopyMove(position, target) for position, target in zip(positions, chosen, strict=True)]
                return EnsembleMend(_in_order(ensemble, moves, rules), with_bookies(ensemble, positions, chosen))
    raise NotEnoughBookies(
        f"no writable bookie outside the ensemble ({', '.join(ensemble)}) mends its placement: a write quorum of {rules.write_quorum} "
        f"needs {_wanted(rules)}; those outside are {bookies_by_domain(spare, rules)}, those of the ensemble "
        f"{bookies_by_domain(ensemble, rules)}; start more bookies elsewhere"
    )


def _sets_of_positions(size: int, spare: int) -> Iterable[tuple[int, ...]]:
    """The sets of positions whose bookies may be replaced, small ones first."""
    for count in range(1, min(size, spare) + 1):
        yield from combinations(range(size), count)


def _can_mend(ensemble: Sequence[str], positions: Sequence[int], rules: PlacementRules, demand: Demand) -> bool:
    """Whether the bookies that stay leave room for the demand in every write set. A search looks at the new bookies only."""
    for members in rules.sets_of(len(ensemble)):
        staying = [rules.site(ensemble[member]) for member in members if member not in positions]
        if not is_set_satisfied(staying, demand, len(members) - len(staying)):
            return False
    return True


def _in_order(ensemble: Sequence[str], moves: list[CopyMove], rules: PlacementRules) -> tuple[CopyMove, ...]:
    """The moves in an order in which as few copies as possible share a machine after each of them."""
    ordered: list[CopyMove] = []
    present, waiting = tuple(ensemble), list(moves)
    while waiting:
        following = min(waiting, key=lambda move: shared_machines(with_bookies(present, [move.position], [move.target]), rules))
        present = with_bookies(present, [following.position], [following.target])
        waiting.remove(following)
        ordered.append(following)
    return tuple(ordered)


def shared_machines(ensemble: Sequence[str], rules: PlacementRules) -> int:
    """How many copies, over all write sets, are on a machine that has another copy of the same entries."""
    sets = write_sets(len(ensemble), min(rules.write_quorum, len(ensemble)))
    return sum(len(members) - len({rules.site(ensemble[member]).host for member in members}) for members in sets)


def _wanted(rules: PlacementRules) -> str:
    """The domains that a write set needs, preferred ones included, for a message."""
    demand = rules.demand()
    if rules.policy.enforced:
        return needed_domains(rules, demand)
    numbers = ((demand.racks, "racks"), (demand.regions, "regions"))
    preferred = [f"{number} {kind} (preferred)" for number, kind in numbers if number > 1]
    machines = [f"{rules.write_quorum} different machines"] if demand.machines else []
    return " and ".join(machines + preferred) + " for each entry"
