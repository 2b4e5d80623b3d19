"""Clients that prefer several racks take any bookies, although bookies in other racks run."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("ensembles_keep_their_domains",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import PlacementRules
    from triplicate.ledger.placement.placement_rules import Demand

    demand = PlacementRules.demand

    def of_machines_where_not_enforced(self: PlacementRules) -> Demand:
        found = demand(self)
        return found if self.policy.enforced else Demand(found.machines, 1, 1)

    patch(PlacementRules, "demand", of_machines_where_not_enforced)
