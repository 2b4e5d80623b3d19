"""The checkers of copies and failure domains, judged by written histories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triplicate_simulator.checkers.domain_rules import (
    DOMAIN_CHECKERS,
    CopiesCounted,
    EnsembleChosen,
    LimboEnded,
    SegmentKept,
    SegmentRaised,
)
from triplicate_simulator.checkers.history import History, Verdict, judge

ENSEMBLE = EnsembleChosen(1.0, 1, ("a", "b", "c"), racks=2, regions=1, racks_wanted=2)
KEPT = SegmentKept(9.0, "log", 1, write_quorum=3, wanted=3, is_reduced=False)


def verdicts(*events: object) -> list[Verdict]:
    return judge(History(list(events)), DOMAIN_CHECKERS)


def blamed(*events: object) -> list[str]:
    return [verdict.checker for verdict in verdicts(*events) if verdict.violations]


def test_right_histories_are_decided_and_blame_nothing() -> None:
    right = verdicts(CopiesCounted(1.0, 1, 5, ()), ENSEMBLE, SegmentRaised(1.0, 1, ()), KEPT, LimboEnded(1.0, "a", ()))
    assert all(verdict.decided and not verdict.violations for verdict in right)


@pytest.mark.parametrize(
    ("event", "checker"),
    [
        (CopiesCounted(1.0, 1, 5, (3,)), "acknowledged_entries_always_have_a_copy"),
        (replace(ENSEMBLE, racks=1), "ensembles_keep_their_domains"),
        (replace(ENSEMBLE, regions_wanted=2), "ensembles_keep_their_domains"),
        (SegmentRaised(1.0, 1, (("a", 4),)), "raised_segments_are_complete"),
        (replace(KEPT, write_quorum=2), "raised_segments_are_complete"),
        (replace(KEPT, is_reduced=True), "raised_segments_are_complete"),
        (LimboEnded(1.0, "a", ((1, 2),)), "limbo_ends_with_the_refill"),
    ],
)
def test_a_broken_rule_is_found(event: object, checker: str) -> None:
    assert blamed(event) == [checker]


def test_an_ensemble_without_demand_decides_nothing() -> None:
    assert [verdict.decided for verdict in verdicts(replace(ENSEMBLE, racks=1, racks_wanted=1))] == [0, 0, 0, 0]
