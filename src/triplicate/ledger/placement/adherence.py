"""How well ensembles keep the rules of placement. Source: BookKeeper `PlacementPolicyAdherence`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from triplicate.ledger.ledger_metadata import LedgerMetadata
from triplicate.ledger.placement.placement_rules import PlacementRules
from triplicate.ledger.schedule import write_sets


class Adherence(IntEnum):
    """From best to worst."""

    STRICT = 0
    """Every write set keeps every rule."""
    SOFT = 1
    """A preferred rule is broken, all known bookies are on one machine, or the site of a bookie is not known."""
    FAILED = 2
    """Copies share a machine although there are others, or an enforced rule is broken."""


@dataclass(frozen=True, slots=True)
class PlacementVerdict:
    """The verdict on an ensemble or a ledger.

    Attributes:
        reasons: why it is not strict, each once.
    """

    adherence: Adherence
    reasons: tuple[str, ...] = ()


STRICT_VERDICT = PlacementVerdict(Adherence.STRICT)


def ensemble_verdict(ensemble: Sequence[str], rules: PlacementRules) -> PlacementVerdict:
    """The verdict on one ensemble. All bookies with a site in the rules count as alternatives."""
    demand = rules.demand()
    if all(bookie_id in rules.sites for bookie_id in ensemble) and demand.machines and rules.is_satisfied(ensemble, demand):
        return STRICT_VERDICT
    found: dict[str, Adherence] = {}
    for bookie_id in ensemble:
        if bookie_id not in rules.sites:
            found[f"the site of {bookie_id} is not known"] = Adherence.SOFT
    numbers = Adherence.FAILED if rules.policy.enforced else Adherence.SOFT
    for positions in write_sets(len(ensemble), min(rules.write_quorum, len(ensemble))):
        names = [ensemble[position] for position in positions]
        by_host: dict[str, list[str]] = {}
        for name in names:
            by_host.setdefault(rules.site(name).host, []).append(name)
        for host, members in by_host.items():
            if len(members) > 1:
                shared = f"copies of one entry are on machine {host} ({', '.join(sorted(members))})"
                alone = "" if demand.machines else ", the only one"
                found[shared + alone] = Adherence.FAILED if demand.machines else Adherence.SOFT
        racks = {rules.location(name) for name in names}
        regions = {location.region for location in racks}
        if len(racks) < demand.racks:
            found[f"{len(racks)} of {demand.racks} racks in {', '.join(sorted(names))}"] = numbers
        if len(regions) < demand.regions:
            found[f"{len(regions)} of {demand.regions} regions in {', '.join(sorted(names))}"] = numbers
    return PlacementVerdict(max(found.values(), default=Adherence.STRICT), tuple(found))


def ledger_verdict(metadata: LedgerMetadata, rules: PlacementRules) -> PlacementVerdict:
    """The verdict on all ensembles of a ledger; the worst counts."""
    verdicts = [(segment, ensemble_verdict(segment.ensemble, rules)) for segment in metadata.segments]
    reasons = [f"from entry {segment.first_entry_id}: {reason}" for segment, verdict in verdicts for reason in verdict.reasons]
    return PlacementVerdict(max(verdict.adherence for _, verdict in verdicts), tuple(reasons))
