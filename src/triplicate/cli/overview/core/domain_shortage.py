"""Whether bookies are in as many fault domains as acknowledgements need (`client.placement_min_ack_domains`)."""

from __future__ import annotations

from collections.abc import Iterable

from triplicate.cli.overview.core.cluster_facts import BookieFacts, BookieState
from triplicate.ledger import BookieSite, PlacementPolicy, parse_location

DOMAINS_NAMED = 5
"""How many domains a text names."""


def site_of(bookie: BookieFacts) -> BookieSite:
    """The site of a bookie. One that is not registered is regarded as a machine of its own."""
    return BookieSite(bookie.host or bookie.bookie_id, parse_location(bookie.location))


def missing_domains(bookies: Iterable[BookieFacts], policy: PlacementPolicy) -> str:
    """Why writers with this policy can create no ledger of several copies on these bookies; empty if domains do not prevent it."""
    needed, kind = policy.min_ack_domains, policy.ack_domain
    writable = [one for one in bookies if one.state is BookieState.WRITABLE]
    found = sorted({kind.of(site_of(one)) for one in writable})
    if needed <= 1 or not found or len(found) >= needed:
        return ""
    names = ", ".join(found[:DOMAINS_NAMED]) + (", …" if len(found) > DOMAINS_NAMED else "")
    return (
        f"entries of {needed} or more copies are acknowledged in {needed} {kind.value} (client.placement_min_ack_domains), and the "
        f"writable bookies are in {len(found)}: {names}"
    )
