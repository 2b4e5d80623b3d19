"""One seed's run: what ends it, what counts as wrong, and that it is the same again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.sim.tiny import TinyPlay, tiny_plan
from triplicate.client import Client
from triplicate.sim import OTHER_FINDINGS, Scenario, Strike, found_by, run_seed

pytestmark = pytest.mark.usefixtures("tiny")


def test_a_plan_is_one_history() -> None:
    plan = tiny_plan(Strike("crash", 1.0, "bookie-2", lasts_s=0.5), Strike("metadata_lost", 1.0, lasts_s=2.0, options={"rate": 0.1}))
    assert run_seed(5, plan).digest == run_seed(5, plan).digest
    assert run_seed(6, plan).digest != run_seed(5, plan).digest


def test_every_other_finding_has_its_name() -> None:
    said = {
        "progress": "no progress: tailer is not done",
        "leaks": "leak: task x",
        "unhandled": "unhandled: error",
        "bookies": "bookie: bookie-1 failed",
        "failed": "failed: AssertionError in f",
    }
    assert set(said) == set(OTHER_FINDINGS)
    assert {found_by(text): name for name, text in said.items()} == {name: name for name in said}
    assert found_by("stuck: nothing can happen") == "progress"
    assert found_by("acknowledged_in_order: entry 8") == "acknowledged_in_order"


def test_who_never_ends_makes_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forever(self: TinyPlay, client: Client) -> None:
        await asyncio.sleep(1e6)

    monkeypatch.setattr(TinyPlay, "_write", forever)
    result = run_seed(1, tiny_plan())
    assert any(found_by(violation) == "progress" for violation in result.violations)


def test_an_assertion_of_an_actor_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrong(self: TinyPlay, client: Client) -> None:
        raise AssertionError("what cannot be")

    monkeypatch.setattr(TinyPlay, "_write", wrong)
    result = run_seed(1, tiny_plan())
    assert [found_by(violation) for violation in result.violations if "what cannot be" in violation]


def test_whatever_comes_out_of_an_actor_is_a_finding_and_ends_no_range(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrong(self: TinyPlay, client: Client) -> None:
        raise KeyError("a mutant's")

    def confused(history: object, verdict: object) -> None:
        raise ValueError("a history like this was not thought of")

    monkeypatch.setattr(TinyPlay, "_write", wrong)
    monkeypatch.setattr(TinyPlay, "checkers", {"nothing_is_found": confused})
    violations = run_seed(1, tiny_plan()).violations
    assert {found_by(violation) for violation in violations} == {"failed"}
    assert any("a mutant's" in violation for violation in violations)
    assert any("not thought of" in violation for violation in violations)


def test_what_is_left_behind_is_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    async def litter(self: TinyPlay, client: Client) -> None:
        asyncio.get_running_loop().call_later(1000.0, print)

    monkeypatch.setattr(TinyPlay, "_write", litter)
    result = run_seed(1, tiny_plan())
    assert "leaks" in [found_by(violation) for violation in result.violations]


def test_a_run_whose_facts_were_not_all_kept_is_a_finding() -> None:
    scenario = Scenario(1, tiny_plan())
    scenario.world.recorder._facts_max = 1
    assert [found_by(violation) for violation in scenario.run().violations] == ["failed"]


def test_the_checkers_findings_are_violations_under_their_name() -> None:
    result = run_seed(1, tiny_plan(complains=True))
    assert result.violations == ["nothing_is_found: 60 entries were acknowledged"]
    assert found_by(result.violations[0]) == "nothing_is_found"


def test_faults_that_overlap_on_one_node_are_borne() -> None:
    strikes = [
        Strike(kind, 1.0 + 0.3 * number, "bookie-1", lasts_s=0.7) for number, kind in enumerate(["crash", "kill", "pause", "stop"] * 3)
    ]
    assert run_seed(1, tiny_plan(*strikes)).ok


def test_a_fault_on_a_node_that_is_not_there_yet_strikes_nothing() -> None:
    result = run_seed(1, tiny_plan(Strike("kill", 0.5, "nobody", lasts_s=0.1), Strike("session_expired", 0.5, "nobody")))
    assert result.ok, str(result)
    assert result.struck == {}


def test_a_run_that_was_interrupted_heals_what_was_cut() -> None:
    plan = tiny_plan(Strike("partition", 1.0, lasts_s=30.0, options={"group": "bookie-1 writer", "metadata": True}), entries=200)
    scenario = Scenario(1, replace(plan, duration_s=2.0))
    result = scenario.run()
    assert result.ok, str(result)
    assert scenario.cluster.cut_off == {}
    assert not scenario.world.network.is_blocked("bookie-1", "bookie-2")
