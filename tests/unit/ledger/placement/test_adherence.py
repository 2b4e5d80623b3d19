from __future__ import annotations

from triplicate.ledger import (
    Adherence,
    BookieSite,
    DigestType,
    EnsembleSegment,
    LedgerMetadata,
    NetworkLocation,
    PlacementPolicy,
    PlacementRules,
    PlacementVerdict,
    ensemble_verdict,
    ledger_verdict,
)

SITES = {name: BookieSite(host, NetworkLocation(rack=rack)) for name, host, rack in (("a", "x", "r"), ("b", "x", "r"), ("c", "y", "r"))}


def test_a_shared_machine_is_a_failure_and_the_only_machine_is_not() -> None:
    verdict = ensemble_verdict(("a", "b"), PlacementRules(2, SITES))
    assert verdict == PlacementVerdict(Adherence.FAILED, ("copies of one entry are on machine x (a, b)",))
    alone = ensemble_verdict(("a", "b"), PlacementRules(2, {name: SITES[name] for name in "ab"}))
    assert alone == PlacementVerdict(Adherence.SOFT, ("copies of one entry are on machine x (a, b), the only one",))
    assert ensemble_verdict(("a", "b"), PlacementRules(1, SITES)).adherence is Adherence.STRICT


def test_missing_racks_and_unknown_bookies_are_named() -> None:
    soft = ensemble_verdict(("a", "c"), PlacementRules(2, SITES, PlacementPolicy(min_racks=2)))
    assert soft == PlacementVerdict(Adherence.SOFT, ("1 of 2 racks in a, c",))
    failed = ensemble_verdict(("a", "c"), PlacementRules(2, SITES, PlacementPolicy(min_racks=2, min_regions=2, enforced=True)))
    assert failed == PlacementVerdict(Adherence.FAILED, ("1 of 2 racks in a, c", "1 of 2 regions in a, c"))
    assert ensemble_verdict(("a", "z"), PlacementRules(2, SITES)) == PlacementVerdict(Adherence.SOFT, ("the site of z is not known",))


def test_the_worst_segment_counts_for_a_ledger() -> None:
    segments = (EnsembleSegment(0, ("a", "c")), EnsembleSegment(5, ("a", "b")))
    metadata = LedgerMetadata(ensemble_size=2, write_quorum=2, ack_quorum=1, segments=segments, digest_type=DigestType.CRC32C, password=b"")
    verdict = ledger_verdict(metadata, PlacementRules(2, SITES))
    assert verdict == PlacementVerdict(Adherence.FAILED, ("from entry 5: copies of one entry are on machine x (a, b)",))
