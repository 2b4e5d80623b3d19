"""The gaps after a fault, and the verdicts on faults and restorations."""

from __future__ import annotations

import time

from benchmarks.soak.fault_plan import FaultKind, PlannedFault
from benchmarks.soak.injector import GAP_LIMIT_S, Injected
from benchmarks.soak.restoring import Restored
from benchmarks.soak.run import Gaps, Outcome, facts_of, judge_gaps, judge_restorations, table_of
from benchmarks.soak.verdicts import Verdict

FAULT = PlannedFault(3.0, FaultKind.KILL, 2, 4.0)


def test_gaps_end_with_the_first_acknowledgements_of_what_was_begun_after_the_fault() -> None:
    gaps = Gaps(time.monotonic() - 5)
    gaps.observe(gaps.begun_s - 1, None)
    assert not gaps.is_over
    gaps.observe(gaps.begun_s + 1, gaps.begun_s + 0.5)
    assert gaps.appends_s is not None
    assert 5 <= gaps.appends_s < 60
    assert gaps.writes_s == 0.5
    assert gaps.is_over


def test_gaps_without_an_acknowledgement_end_at_the_limit() -> None:
    assert Gaps(time.monotonic() - GAP_LIMIT_S - 1).is_over


def test_a_fault_after_which_nothing_goes_on_is_reported() -> None:
    assert judge_gaps([Injected(FAULT, 3.1, 0.5, 0.2)]).is_kept
    evidence = judge_gaps([Injected(FAULT, 3.1, None, 0.2), Injected(FAULT, 3.1, 0.2, None)]).evidence
    assert [" no append " in line for line in evidence] == [True, False]
    assert all("bookie killed 2" in line for line in evidence)


def test_copies_that_are_not_restored_are_reported() -> None:
    assert judge_restorations(Restored(seconds=[4.0])).is_kept
    assert not judge_restorations(Restored(failures=["late"])).is_kept


def test_the_facts_of_a_run_have_its_seed_faults_and_verdicts() -> None:
    injected = [Injected(FAULT, 3.14, 0.5, None)]
    verdicts = [Verdict("a", "1", ("no",)), Verdict("b", "2"), Verdict("c", "3", is_due=False)]
    facts = facts_of(Outcome(60.0, injected, [], Restored(), {"records": 7}, verdicts), 9)
    assert facts["seed"] == 9
    assert [one["verdict"] for one in facts["verdicts"]] == ["BROKEN", "kept", "not judged"]
    assert facts["faults"] == [{"fault": str(FAULT), "begun_s": 3.1, "appends_gap_s": 0.5, "writes_gap_s": None}]
    assert table_of(injected).row_count == 1
