"""Clients choose bookies on different machines, and their racks make no difference."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"
CHECKERS = ("ensembles_keep_their_domains",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client import cluster_placement
    from triplicate.config import ClientSettings
    from triplicate.ledger import PlacementPolicy

    def only_machines(settings: ClientSettings) -> PlacementPolicy:
        return PlacementPolicy()

    patch(cluster_placement, "policy_of", only_machines)
