"""The search for bookies that satisfy a demand: positions are filled one after another, with a step back where no bookie fits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from triplicate.ledger.placement.network_location import BookieSite, NetworkLocation
from triplicate.ledger.placement.placement_rules import Demand, PlacementRules, is_set_satisfied

SEARCH_STEPS = 20_000
"""Bookies that one search tries before it gives up. Searches that end without it are exact."""


class EnsembleSearch:
    """Fills positions of one ensemble.

    Args:
        ensemble: bookie ids by position; the bookies at `positions` are ignored.
        positions: to fill, in this order.
        order: the candidates, none of which is in the rest of the ensemble. Earlier ones are preferred.
        last: candidates that come after all others.
    """

    def __init__(
        self, ensemble: Sequence[str], positions: Sequence[int], order: Sequence[str], last: Collection[str], rules: PlacementRules
    ) -> None:
        self._rules = rules
        self._positions = positions
        self._order = order
        self._last = last
        self._sites: list[BookieSite | None] = [rules.site(bookie_id) for bookie_id in ensemble]
        for position in positions:
            self._sites[position] = None
        self._sets = rules.sets_of(len(ensemble))
        self._chosen: list[str] = []
        self._steps = 0

    @property
    def steps(self) -> int:
        """Bookies that the last search tried."""
        return self._steps

    def run(self, demand: Demand) -> list[str] | None:
        """The bookies by `positions`; None if no choice satisfies the demand, or none was found within `SEARCH_STEPS`."""
        self._steps = 0
        if not self._has_enough_domains(demand):
            return None
        tried: list[Iterator[str]] = [self._candidates(demand)]
        while tried:
            candidate = next(tried[-1], None)
            if candidate is None or self._steps > SEARCH_STEPS:
                tried.pop()
                if self._chosen:
                    self._chosen.pop()
                    self._sites[self._positions[len(self._chosen)]] = None
                continue
            self._sites[self._positions[len(self._chosen)]] = self._rules.site(candidate)
            self._chosen.append(candidate)
            if len(self._chosen) == len(self._positions):
                return list(self._chosen)
            tried.append(self._candidates(demand))
        return None

    def _has_enough_domains(self, demand: Demand) -> bool:
        """Whether candidates and present bookies together have the domains of one write set. A search without them would try everything."""
        sites = [self._rules.site(name) for name in self._order] + [site for site in self._sites if site is not None]
        machines = len(self._sets[0]) if demand.machines and len(self._positions) == len(self._sites) else 1
        return (
            len({site.host for site in sites}) >= machines
            and len({site.location for site in sites}) >= demand.racks
            and len({site.location.region for site in sites}) >= demand.regions
        )

    def _candidates(self, demand: Demand) -> Iterator[str]:
        """The bookies that fit the next position; of bookies at one site, only the first."""
        position = self._positions[len(self._chosen)]
        sets = [positions for positions in self._sets if position in positions]
        known: dict[tuple[str, NetworkLocation, bool], str] = {}
        for name in self._order:
            if name not in self._chosen:
                site = self._rules.site(name)
                known.setdefault((site.host, site.location, name in self._last), name)
        names = list(known.values())
        if self._rules.policy.uses_locations:
            neighbours = [other.location for positions in sets for each in positions if (other := self._sites[each]) is not None]
            regions = [location.region for location in neighbours]

            def sharing(name: str) -> tuple[bool, int, int]:
                location = self._rules.location(name)
                return name in self._last, regions.count(location.region), neighbours.count(location)

            names.sort(key=sharing)
        for name in names:
            self._steps += 1
            if self._fits(name, sets, demand):
                yield name

    def _fits(self, name: str, sets: Sequence[Sequence[int]], demand: Demand) -> bool:
        """Whether all write sets of the next position can satisfy the demand with this bookie."""
        site = self._rules.site(name)
        for positions in sets:
            present = [found for each in positions if (found := self._sites[each]) is not None]
            if demand.machines and any(other.host == site.host for other in present):
                return False
            unassigned = len(positions) - len(present) - 1
            if not is_set_satisfied([*present, site], Demand(False, demand.racks, demand.regions), unassigned):
                return False
        return True
