"""The rules that the bookies of each write set keep: different machines, and a least number of racks and regions.

With an ensemble larger than the write quorum, the copies of an entry are on consecutive positions, so the rules apply to every write
set and not to the ensemble. Source: BookKeeper `RackawareEnsemblePlacementPolicyImpl`, `RegionAwareEnsemblePlacementPolicy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from triplicate.errors import NotEnoughBookies
from triplicate.ledger.placement.ack_domains import AckDomains, FaultDomain, ack_domains
from triplicate.ledger.placement.network_location import BookieSite, NetworkLocation
from triplicate.ledger.schedule import write_sets


@dataclass(frozen=True, slots=True)
class PlacementPolicy:
    """A client's policy for racks, regions and free disk. The machine is a domain under every policy.

    Attributes:
        min_racks, min_regions: least number of each in a write set; a write quorum smaller than the number needs one per copy.
        enforced: whether an ensemble that misses these numbers is refused. Otherwise they are preferred.
        weight_multiple: bookies are drawn in proportion to their free disk, up to this multiple of the median; 0 draws uniformly.
        ack_domain, min_ack_domains: an entry is acknowledged only in this number of domains of this kind; 1: in any. An ensemble whose
            write sets have fewer is refused, whether or not the other numbers are enforced.
    """

    min_racks: int = 1
    min_regions: int = 1
    enforced: bool = False
    weight_multiple: float = 0.0
    ack_domain: FaultDomain = FaultDomain.MACHINE
    min_ack_domains: int = 1

    @property
    def uses_locations(self) -> bool:
        """Whether network locations make a difference."""
        by_location = self.min_ack_domains > 1 and self.ack_domain is not FaultDomain.MACHINE
        return self.min_racks > 1 or self.min_regions > 1 or by_location

    @property
    def for_copies(self) -> PlacementPolicy:
        """The policy for copies of entries that were acknowledged before: any place is better than none."""
        return replace(self, min_ack_domains=1)


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
        policy, quorum, least = self.policy, self.write_quorum, self._least()
        racks, regions = min(policy.min_racks, quorum), min(policy.min_regions, quorum)
        return Demand(least.machines, max(racks, least.racks), max(regions, least.regions))

    def enforced_demand(self) -> Demand:
        """The part of the demand that is never relaxed."""
        return self.demand() if self.policy.enforced else self._least()

    def _least(self) -> Demand:
        """The demand of the copies' machines and of the acknowledgements' domains."""
        kind, number = self.policy.ack_domain, self.needed_for_ack
        machines = len(self.machines()) > 1 or (number > 1 and kind is FaultDomain.MACHINE)
        return Demand(machines, number if kind is FaultDomain.RACK else 1, number if kind is FaultDomain.REGION else 1)

    @property
    def needed_for_ack(self) -> int:
        """Least number of domains in which an entry is acknowledged. A write quorum smaller than the policy's number needs one per copy."""
        return min(self.policy.min_ack_domains, self.write_quorum)

    def spanned_domains(self, ensemble: Sequence[str]) -> AckDomains | None:
        """As `ack_domains`, of an ensemble that was not chosen by these rules alone.

        Raises:
            NotEnoughBookies: the bookies of some entries are in too few domains, so that these could never be acknowledged.
        """
        domains, kind = self.ack_domains(ensemble), self.policy.ack_domain
        if domains is not None and domains.is_endangered((), self.write_quorum):
            places = ", ".join(f"{bookie_id} in {kind.of(self.site(bookie_id))}" for bookie_id in ensemble)
            raise NotEnoughBookies(
                f"an entry is acknowledged in at least {domains.needed} {kind.value} (client.placement_min_ack_domains), and the bookies "
                f"of some entries would be in fewer: {places}"
            )
        return domains

    @property
    def for_copies(self) -> PlacementRules:
        """The rules for copies of entries that were acknowledged before; see `PlacementPolicy.for_copies`."""
        return replace(self, policy=self.policy.for_copies)

    def ack_domains(self, ensemble: Sequence[str]) -> AckDomains | None:
        """The domains in which the entries of this ensemble are acknowledged; None if any ack quorum is enough."""
        if self.needed_for_ack <= 1:
            return None
        return ack_domains((self.site(bookie_id) for bookie_id in ensemble), self.policy.ack_domain, self.needed_for_ack)

    def relaxations(self, strict: Demand) -> list[Demand]:
        """The demands to try in this order: the strict one; where racks and regions are only preferred, then smaller numbers of them, down
        to those that acknowledgements need."""
        if self.policy.enforced:
            return [strict]
        racks, regions, least = strict.racks, strict.regions, self._least()
        found = [Demand(strict.machines, racks, fewer) for fewer in range(regions, least.regions - 1, -1)]
        return found + [Demand(strict.machines, fewer, least.regions) for fewer in range(racks - 1, least.racks - 1, -1)]

    def is_satisfied(self, ensemble: Sequence[str], demand: Demand) -> bool:
        """Whether every write set of the ensemble satisfies the demand."""
        if demand.is_free:
            return True
        sites = [self.site(bookie_id) for bookie_id in ensemble]
        return all(is_set_satisfied([sites[position] for position in positions], demand) for positions in self.sets_of(len(sites)))

    def sets_of(self, size: int) -> tuple[tuple[int, ...], ...]:
        """The write sets of an ensemble of this size that differ in their bookies; with as many copies as bookies, there is one."""
        return write_sets(size, self.write_quorum) if self.write_quorum < size else (tuple(range(size)),)


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
