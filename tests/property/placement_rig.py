"""Rules of placement over small clusters."""

from __future__ import annotations

from hypothesis import strategies as st

from triplicate.ledger import BookieSite, FaultDomain, NetworkLocation, PlacementPolicy, PlacementRules


@st.composite
def rules_strategy(draw: st.DrawFn) -> tuple[PlacementRules, int]:
    """Rules over at most six bookies, and an ensemble size. Every machine is in one rack."""
    hosts = draw(st.integers(1, 5))
    locations = [NetworkLocation(f"region-{draw(st.integers(0, 1))}", f"rack-{draw(st.integers(0, 1))}") for _ in range(hosts)]
    sites: dict[str, BookieSite] = {}
    for number in range(draw(st.integers(1, 6))):
        host = draw(st.integers(0, hosts - 1))
        sites[f"b{number}"] = BookieSite(f"host-{host}", locations[host], draw(st.sampled_from([None, 0, 10, 1000])))
    size = draw(st.integers(1, len(sites)))
    numbers, weight = (draw(st.integers(1, 3)), draw(st.integers(1, 2))), draw(st.sampled_from([0.0, 0.0, 3.0]))
    acks = (draw(st.sampled_from(list(FaultDomain))), draw(st.sampled_from([1, 1, 2, 3])))
    policy = PlacementPolicy(*numbers, draw(st.booleans()), weight, *acks)
    return PlacementRules(draw(st.integers(1, size)), sites, policy), size
