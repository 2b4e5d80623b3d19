"""The fault domains of the bookies that acknowledge an entry. Source: BookKeeper `areAckedBookiesAdheringToPlacementPolicy`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from triplicate.ledger.placement.network_location import BookieSite
from triplicate.ledger.schedule import write_sets


class FaultDomain(Enum):
    """A kind of domain, by its plural. The machine is the lowest one."""

    MACHINE = "machines"
    RACK = "racks"
    REGION = "regions"

    def of(self, site: BookieSite) -> str:
        """The name of the domain that a bookie is in."""
        if self is FaultDomain.MACHINE:
            return site.host
        return str(site.location) if self is FaultDomain.RACK else site.location.region


@dataclass(frozen=True, slots=True)
class AckDomains:
    """The domains of an ensemble, computed once for each ensemble, so that an acknowledgement costs one bit operation.

    Attributes:
        needed: least number of domains in which an entry is acknowledged, at most the write quorum.
        bits: by position: the domain of its bookie as a number with one bit set. Bookies of one domain have the same bit.
    """

    needed: int
    bits: tuple[int, ...]

    def are_spanned_by(self, positions: Iterable[int]) -> bool:
        """Whether the bookies at these positions are in enough domains."""
        found = 0
        for position in positions:
            found |= self.bits[position]
        return found.bit_count() >= self.needed

    def is_endangered(self, absent: Collection[int], write_quorum: int) -> bool:
        """Whether some entry finds too few domains.

        Args:
            absent: positions of the ensemble whose bookie takes no entries.
        """
        return not all(
            self.are_spanned_by(position for position in positions if position not in absent)
            for positions in write_sets(len(self.bits), write_quorum)
        )

    def limited(self, absent: Collection[int], write_quorum: int) -> AckDomains:
        """The same domains with the number that every entry can still find.

        Args:
            absent: positions of the ensemble whose bookie takes no entries.
        """
        found = self
        while found.needed > 1 and found.is_endangered(absent, write_quorum):
            found = replace(found, needed=found.needed - 1)
        return found


def ack_domains(sites: Iterable[BookieSite], kind: FaultDomain, needed: int) -> AckDomains:
    """The domains of an ensemble.

    Args:
        sites: of its bookies, by position.
    """
    numbers: dict[str, int] = {}
    return AckDomains(needed, tuple(1 << numbers.setdefault(kind.of(site), len(numbers)) for site in sites))
