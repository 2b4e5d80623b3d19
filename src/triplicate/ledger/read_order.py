"""The order in which a client reads the replicas of an entry: healthy bookies before others, and near ones before far ones.

Without known distances, only the health counts, and bookies that are known to be away come last. With distances, the order is:

1. healthy bookies: own rack, own region, elsewhere; at one distance, writable ones before read-only ones,
2. slow bookies, then failing ones, then those that are not registered; in each of these groups near ones first.

After two healthy bookies of the own region comes one from elsewhere. A read that hangs because of the region then leaves it at the third
replica. Pure: the caller states where the bookies are.

Source: BookKeeper `RegionAwareEnsemblePlacementPolicy.reorderReadSequence`,
`RackawareEnsemblePlacementPolicyImpl.reorderReadSequenceWithRegion`. There, racks make no difference to reads, and read-only bookies of the
own region are read after all others that are healthy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from triplicate.ledger.bookie_health import Ailment, BookieHealth
from triplicate.ledger.placement.distance import Distance

NEAR_BEFORE_FAR = 2
"""Healthy bookies of the own region that are read before the first one from elsewhere.
Source: `RegionAwareEnsemblePlacementPolicy.REMOTE_NODE_IN_REORDER_SEQUENCE`."""

_UNREGISTERED = max(Ailment) + 1
"""The state of a bookie that is not registered; it is read after those in quarantine."""

Rank = tuple[int, int, bool]
"""State of health, distance, whether read-only. The smaller is read first."""


class ReadOrder:
    """See the module's text.

    Args:
        health: of the bookies; the caller changes it.
    """

    def __init__(self, health: BookieHealth) -> None:
        self._health = health
        self._distances: Mapping[str, Distance] = {}
        self._readonly: Collection[str] = ()
        self._absent: Collection[str] = ()
        self._changes = 0

    def locate(self, distances: Mapping[str, Distance], readonly: Collection[str] = ()) -> None:
        """Set the distances of all registered bookies; empty for no preference.

        Args:
            readonly: those of them that are read-only.
        """
        if (distances, readonly) != (self._distances, self._readonly):
            self._distances, self._readonly = distances, readonly
            self._changes += 1

    def miss(self, absent: Collection[str]) -> None:
        """Set the bookies that are known and not registered, which are read last, where no distances are known."""
        if absent != self._absent:
            self._absent = absent
            self._changes += 1

    @property
    def version(self) -> int:
        """Grows with every change of the order."""
        return self._health.version + self._changes

    @property
    def has_distances(self) -> bool:
        """Whether near bookies are preferred."""
        return bool(self._distances)

    def distance(self, bookie_id: str) -> Distance:
        """The distance of a bookie; `ELSEWHERE` if it is not registered."""
        return self._distances.get(bookie_id, Distance.ELSEWHERE)

    def rank(self, bookie_id: str) -> Rank:
        """The place of a bookie in the order."""
        ailment = self._health.rank(bookie_id)
        if not self._distances:
            return _UNREGISTERED if bookie_id in self._absent else ailment, 0, False
        distance = self._distances.get(bookie_id)
        if distance is None:
            return _UNREGISTERED, Distance.ELSEWHERE, False
        return ailment, distance, bookie_id in self._readonly

    def batch_rank(self, bookie_id: str) -> tuple[int, bool]:
        """As `rank`, but equal for all bookies of the own region: consecutive batches are spread over them."""
        state, distance, _ = self.rank(bookie_id)
        return state, distance == Distance.ELSEWHERE

    def order(self, bookie_ids: Sequence[str]) -> list[str]:
        """These bookies in the order in which they are read; equal ones as given."""
        if not self._distances and not self._absent and self._health.is_sound:
            return list(bookie_ids)
        return self.with_far_third(sorted(bookie_ids, key=self.rank))

    def first_choices(self, bookie_ids: Sequence[str]) -> list[str]:
        """Those of these bookies that are read first, which take turns."""
        if not self._distances and not self._absent and self._health.is_sound:
            return list(bookie_ids)
        best = min(map(self.rank, bookie_ids))
        return [bookie_id for bookie_id in bookie_ids if self.rank(bookie_id) == best]

    def with_far_third(self, ordered: list[str]) -> list[str]:
        """An order of bookies, in which the first healthy one from elsewhere comes after at most `NEAR_BEFORE_FAR` healthy near ones."""
        for position, bookie_id in enumerate(ordered):
            state, distance, _ = self.rank(bookie_id)
            if state:
                break
            if distance == Distance.ELSEWHERE:
                if position > NEAR_BEFORE_FAR:
                    ordered.insert(NEAR_BEFORE_FAR, ordered.pop(position))
                break
        return ordered
