"""Which copies of a ledger move."""

from __future__ import annotations

import random
from dataclasses import replace

from triplicate.autorecovery.core.misplaced_copies import misplaced_copies
from triplicate.ledger import (
    BookieSite,
    EnsembleSegment,
    LedgerMetadata,
    LedgerState,
    PlacementPolicy,
    PlacementRules,
    parse_location,
)

SITES = {name: BookieSite(f"h{name}", parse_location("/n/r2" if name in "xyz" else "/n/r1")) for name in "abcdexyz"}
ENFORCED = PlacementPolicy(min_racks=2, enforced=True)
CLOSED = LedgerMetadata(
    ensemble_size=3,
    write_quorum=3,
    ack_quorum=2,
    segments=(EnsembleSegment(0, ("a", "b", "x")), EnsembleSegment(5, ("a", "b", "c")), EnsembleSegment(9, ("c", "d", "e"))),
    state=LedgerState.CLOSED,
    last_entry_id=11,
    length=100,
)
OPEN = replace(CLOSED, state=LedgerState.OPEN, last_entry_id=-1, length=0)


def rules_of(policy: PlacementPolicy = ENFORCED, quorum: int = 3) -> PlacementRules:
    return PlacementRules(quorum, SITES, policy)


def test_each_segment_that_breaks_a_rule_loses_one_copy() -> None:
    plan = misplaced_copies(CLOSED, rules_of(), ["y", "z"], SITES, random.Random(1))
    found = [(move.fragment.first_entry_id, move.fragment.last_entry_id, move.fragment.count) for move in plan.moves]
    assert found == [(5, 8, 4), (9, 11, 3)]
    assert {move.target for move in plan.moves} <= {"y", "z"}
    assert plan.entries == 7
    assert [reason[:12] for reason in plan.reasons] == ["from entry 5", "from entry 9"]
    assert (plan.refused, plan.open_segment) == ((), "")


def test_the_last_segment_of_an_open_ledger_is_left_to_its_writer() -> None:
    plan = misplaced_copies(OPEN, rules_of(), ["y", "z"], SITES, random.Random(1))
    assert [move.fragment.first_entry_id for move in plan.moves] == [5]
    assert plan.open_segment.startswith("from entry 9: 1 of 2 racks")


def test_a_segment_that_names_a_lost_bookie_waits_for_its_copies() -> None:
    plan = misplaced_copies(CLOSED, rules_of(), ["y", "z"], [name for name in SITES if name != "d"], random.Random(1))
    assert [move.fragment.first_entry_id for move in plan.moves] == [5]
    assert plan.refused == ("from entry 9: d is not registered; its copies are made again first",)


def test_a_broken_rule_that_no_bookie_mends_is_refused_and_a_preferred_one_stays() -> None:
    plan = misplaced_copies(CLOSED, rules_of(), ["d"], SITES, random.Random(1))
    assert plan.moves == ()
    assert len(plan.refused) == 2
    assert "from entry 5: no writable bookie outside the ensemble (a, b, c) mends its placement" in plan.refused[0]
    plan = misplaced_copies(CLOSED, rules_of(PlacementPolicy(min_racks=2)), ["d"], SITES, random.Random(1))
    assert (plan.moves, plan.refused) == ((), ())
    assert len(plan.reasons) == 2
