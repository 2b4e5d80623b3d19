"""How far a bookie is from a client, by network location."""

from __future__ import annotations

from enum import IntEnum

from triplicate.ledger.placement.network_location import DEFAULT_LOCATION, NetworkLocation


class Distance(IntEnum):
    """From near to far."""

    OWN_RACK = 0
    OWN_REGION = 1
    ELSEWHERE = 2
    """Another region, or a bookie whose location is not known."""


def distance_between(own: NetworkLocation, other: NetworkLocation) -> Distance:
    """The distance of a bookie at `other`. The default location means that the location is not known."""
    if other == DEFAULT_LOCATION:
        return Distance.ELSEWHERE
    if other == own:
        return Distance.OWN_RACK
    return Distance.OWN_REGION if other.region == own.region else Distance.ELSEWHERE
