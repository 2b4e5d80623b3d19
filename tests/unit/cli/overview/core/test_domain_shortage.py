"""Clusters whose writable bookies are in fewer fault domains than acknowledgements need."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.cli.overview.cluster_facts_rig import bookie, healthy
from triplicate.cli.overview.core.cluster_facts import BookieFacts, BookieState
from triplicate.cli.overview.core.cluster_problems import Problem, problems_of
from triplicate.cli.overview.core.domain_shortage import missing_domains, site_of
from triplicate.ledger import FaultDomain, PlacementPolicy


def racks(needed: int) -> PlacementPolicy:
    return PlacementPolicy(ack_domain=FaultDomain.RACK, min_ack_domains=needed)


def test_bookies_in_too_few_racks_are_named_by_their_racks() -> None:
    bookies = (bookie(1), bookie(2), bookie(3, BookieState.READ_ONLY))
    assert missing_domains(bookies, racks(2)) == ""
    assert missing_domains(bookies, racks(3)) == (
        "entries of 3 or more copies are acknowledged in 3 racks (client.placement_min_ack_domains), and the writable bookies are in 2: "
        "/default-region/rack-1, /default-region/rack-2"
    )


def test_without_the_setting_or_without_bookies_nothing_is_missing() -> None:
    assert missing_domains((bookie(1),), racks(1)) == ""
    assert missing_domains((), racks(2)) == "", "that no bookie is writable is another problem"


def test_many_domains_are_named_in_part() -> None:
    text = missing_domains([bookie(number) for number in range(7)], racks(9))
    assert text.endswith("in 7: " + ", ".join(f"/default-region/rack-{number}" for number in range(5)) + ", …")


def test_missing_domains_are_a_problem_of_the_cluster() -> None:
    facts = replace(healthy(), missing_domains="too few racks")
    assert problems_of(facts) == (Problem("too few racks", "triplicate cluster racks show"),)


def test_a_bookie_without_registration_is_a_machine_of_its_own() -> None:
    assert site_of(BookieFacts("b", BookieState.LOST)).host == "b"
    assert site_of(bookie(2)).host == "10.0.2.1"
