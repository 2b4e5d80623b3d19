"""The rules that the bookies of each write set keep: different machines, and a least number of racks and regions.

With an ensemble larger than the write quorum, the copies of an entry are on consecutive positions, so the rules apply to every write
set and not to the ensemble. Source: BookKeeper `RackawareEnsemblePlacementPolicyImpl`, `RegionAwareEnsemblePlacementPolicy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from triplicate.ledger.placement.network_location import BookieSite, NetworkLocation
from triplicate.ledger.schedule import write_sets


@dataclass(frozen=True, slots=True)
class PlacementPolicy:
    """A client's policy for racks, regions and free disk. The machine is a domain under every policy.

    Attributes:
        min_racks, min_regions: least number of each in a write set; a write quorum smaller than the number needs one per copy.
        enforced: whether an ensemble that misses these numbers is refused. Otherwise they are preferred.
        weight_multiple: bookies are drawn in proportion to their free disk, up to this multiple of the median; 0 draws uniformly.
    """

    min_racks: int = 1
    min_regions: int = 1
    enforced: bool = False
    weight_multiple: float = 0.0

    @property
    def uses_locations(self) -> bool:
        """Whether network locations make a difference."""
        return self.min_racks > 1 or self.min_regions > 1


UNIFORM = PlacementPolicy()


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand on every write set.

    Attributes:
        machines: whether its bookies must be on different machines.
        racks, regions: least number of each.
    """

    machines: bool
    racks: int
    regions: int

    @property
    def is_free(self) -> bool:
        """Whether any bookies satisfy it."""
        return not self.machines and self.racks <= 1 and self.regions <= 1


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """The rules for the ensembles of one ledger.

    Attributes:
        write_quorum: copies of each entry.
        sites: by bookie id, also of bookies that are away. A bookie without one is regarded as a machine of its own at the default
            location.
    """

    write_quorum: int
    sites: Mapping[str, BookieSite] = field(default_factory=dict)
    policy: PlacementPolicy = UNIFORM

    def site(self, bookie_id: str) -> BookieSite:
        """The site of a bookie."""
        return self.sites.get(bookie_id) or BookieSite(bookie_id)

    def location(self, bookie_id: str) -> NetworkLocation:
        """The network location of a bookie."""
        return self.site(bookie_id).location

    def machines(self) -> set[str]:
        """The known machines."""
        return {site.host for site in self.sites.values()}

    def demand(self) -> Demand:
        """The strict demand. Copies may share a machine only where all known bookies are on one."""
        policy, quorum = self.policy, self.write_quorum
        return Demand(len(self.machines()) > 1, min(policy.min_racks, quorum), min(policy.min_regions, quorum))

    def relaxations(self, strict: Demand) -> list[Demand]:
        """The demands to try in this order: the strict one; where racks and regions are only preferred, then smaller numbers of them."""
        if self.policy.enforced:
            return [strict]
        racks, regions = strict.racks, strict.regions
        found = [Demand(strict.machines, racks, fewer) for fewer in range(regions, 0, -1)]
        return found + [Demand(strict.machines, fewer, 1) for fewer in range(racks - 1, 0, -1)]

    def is_satisfied(self, ensemble: Sequence[str], demand: Demand) -> bool:
        """Whether every write set of the ensemble satisfies the demand."""
        if demand.is_free:
            return True
        sites = [self.site(bookie_id) for bookie_id in ensemble]
        size = len(sites)
        # With as many copies as bookies, all write sets have the same bookies.
        sets = write_sets(size, self.write_quorum) if self.write_quorum < size else (tuple(range(size)),)
        return all(is_set_satisfied([sites[position] for position in positions], demand) for positions in sets)


def is_set_satisfied(sites: Sequence[BookieSite], demand: Demand, unassigned: int = 0) -> bool:
    """Whether a write set can still satisfy the demand.

    Args:
        sites: of its bookies so far.
        unassigned: positions of the write set that have no bookie yet.
    """
    if demand.machines and len({site.host for site in sites}) < len(sites):
        return False
    if demand.racks > 1 and len({site.location for site in sites}) + unassigned < demand.racks:
        return False
    return demand.regions <= 1 or len({site.location.region for site in sites}) + unassigned >= demand.regions
