"""Each kind of fault, forced upon the tiny play: it strikes, is undone, and the cluster goes on."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.simulator.tiny import tiny_plan
from triplicate.sim import points_known
from triplicate_simulator import FAULT_KINDS, WORKLOADS, Fault, Plan, Result, Scenario, run_seed
from triplicate_simulator.cluster.plan import Value
from triplicate_simulator.faults.disk_faults import rot_journal
from triplicate_simulator.faults.fault_kind import FaultTargets
from triplicate_simulator.faults.fault_table import draw_faults

pytestmark = pytest.mark.usefixtures("tiny")

BOOKIES = tuple(f"bookie-{number}" for number in range(1, 6))
OF_CLIENTS = "client.ensemble_change.chosen"
GROUP: dict[str, Value] = {"group": "bookie-1 bookie-2 writer", "metadata": True}

STRIKES: dict[str, list[Fault]] = {
    "crash": [Fault("crash", 1.0, "bookie-1", lasts_s=0.5), Fault("crash", 1.0, "writer", lasts_s=0.5)],
    "kill": [Fault("kill", 1.0, "bookie-1", lasts_s=0.5), Fault("kill", 1.0, "writer", lasts_s=0.5)],
    "stop": [Fault("stop", 1.0, "bookie-1", lasts_s=0.5)],
    "pause": [
        Fault("pause", 1.0, "bookie-1", lasts_s=4.0, options={"expires": True}),
        Fault("pause", 1.0, "writer", lasts_s=0.5),
    ],
    "clock": [Fault("clock", 1.0, "bookie-1", lasts_s=1.0, options={"seconds": -3600.0})],
    "crash_at": [
        Fault("crash_at", 1.0, bookie, lasts_s=0.5, options={"operation": operation, "after": 1})
        for bookie, operation in zip(BOOKIES, ("any", "sync", "flush"), strict=False)
    ],
    "power_loss": [Fault("power_loss", 1.0, "bookie-1", lasts_s=0.5, options={"clients": True})],
    "link_block": [Fault("link_block", 1.0, "bookie-1", "writer", 1.0)],
    "partition": [Fault("partition", 1.0, lasts_s=5.0, options=GROUP)],
    "link_slow": [Fault("link_slow", 1.0, "bookie-1", "writer", 1.0, {"factor": 30.0})],
    "reset": [
        Fault("reset", 1.0, "writer", lasts_s=1.0, options={"count": 2, "inside": True}),
        Fault("reset", 2.5, "writer", options={"inside": False}),
    ],
    "disk_slow": [Fault("disk_slow", 1.0, bookie, lasts_s=1.0, options={"factor": 50.0}) for bookie in BOOKIES],
    "disk_full": [Fault("disk_full", 1.0, bookie, lasts_s=3.0, options={"free_bytes": 0}) for bookie in BOOKIES[:2]],
    "sync_failed": [Fault("sync_failed", 1.0, bookie, lasts_s=3.0, options={"prefix": "/"}) for bookie in BOOKIES],
    "bit_rot": [Fault("bit_rot", 3.0, bookie, options={"place": "ledgers"}) for bookie in BOOKIES[:1]],
    "directory_full": [Fault("directory_full", 1.0, "bookie-1", lasts_s=3.0, options={"free_bytes": 0, "prefix": "/data/ledgers/"})],
    "directory_rot": [Fault("directory_rot", 3.0, "bookie-1", options={"place": "entries", "prefix": "/data/ledgers/"})],
    "wipe": [Fault("wipe", 2.0, "bookie-1", lasts_s=0.5, options={"unformatted": True})],
    "index_lost": [
        Fault("index_lost", 2.0, "bookie-1", lasts_s=0.2, options={"how": "garbled", "tool": True, "crashes": False}),
        Fault("index_lost", 2.0, "bookie-2", lasts_s=0.2, options={"how": "gone", "tool": False, "crashes": True}),
    ],
    "disks_lost": [Fault("disks_lost", 2.0, "bookie-1", options={"others": "", "silent": False})],
    "copies_rot": [Fault("copies_rot", 3.0, "bookie-1", "bookie-2", lasts_s=1.0, options={"entries": True})],
    "disks_replaced": [Fault("disks_replaced", 2.0, "bookie-1", lasts_s=0.5, options={"silent": False, "unformatted": False})],
    "machines_away": [Fault("machines_away", 1.0, lasts_s=0.5, options={"left": 2, "silent": False})],
    "metadata_slow": [Fault("metadata_slow", 1.0, lasts_s=3.0, options={"factor": 50.0})],
    "metadata_lost": [Fault("metadata_lost", 1.0, lasts_s=3.0, options={"rate": 0.5})],
    "metadata_conflict": [
        Fault("metadata_conflict", 0.5, lasts_s=4.0, options={"rate": 1.0}),
        Fault("kill", 1.0, "bookie-1", lasts_s=2.0),
        Fault("kill", 1.5, "bookie-2", lasts_s=2.0),
        Fault("kill", 1.5, "bookie-3", lasts_s=2.0),
    ],
    "ambush": [
        Fault("kill", 1.0, "bookie-1", lasts_s=2.0),
        Fault("kill", 1.0, "bookie-2", lasts_s=2.0),
        Fault("ambush", 0.5, lasts_s=0.5, options={"point": OF_CLIENTS, "bookies": 1, "node": "pause", "stall": True}),
    ],
    "stale_metadata": [
        Fault("stale_metadata", 0.3, lasts_s=8.0, options={"lag_s": 5.0, "servers": 3}),
        *(Fault("kill", 1.0 + 0.2 * number, bookie, lasts_s=1.5) for number, bookie in enumerate(BOOKIES)),
        *(Fault("session_expired", 0.9, node) for node in ("bookie-1", "writer")),
    ],
    "metadata_silent": [
        Fault("metadata_silent", 0.5, lasts_s=14.0, options={"expires": "all"}),
        Fault("kill", 1.0, "bookie-1", lasts_s=2.0),
        Fault("kill", 1.0, "bookie-2", lasts_s=2.0),
    ],
    "metadata_unreachable": [
        Fault("metadata_unreachable", 0.5, lasts_s=9.0, options={"group": "bookie-1 bookie-2 writer"}),
        Fault("metadata_unreachable", 0.5, "writer", lasts_s=9.0, options={"group": "writer", "point": "client.close.writing"}),
        Fault("kill", 1.0, "bookie-3", lasts_s=2.0),
    ],
    "clock_rate": [Fault("clock_rate", 0.5, lasts_s=3.0, options={"fast": "bookie-1 writer", "slow": "bookie-2", "error": 0.01})],
    "session_expired": [Fault("session_expired", 1.0, "bookie-1"), Fault("session_expired", 1.0, "writer")],
}

SEEDS = {"stale_metadata": 3}
"""Seeds of faults that do not strike in every draw: a read meets a server that lags."""


def play(*strikes: Fault, seed: int = 1) -> Result:
    result = run_seed(seed, tiny_plan(*strikes))
    assert result.ok, str(result)
    assert result.counts["acknowledged"] >= 60
    return result


@pytest.mark.parametrize("kind", list(FAULT_KINDS))
def test_the_fault_is_applied_and_all_processes_go_on(kind: str) -> None:
    result = play(*STRIKES[kind], seed=SEEDS.get(kind, 1))
    assert result.struck.get(kind, 0) > 0, result.struck


def test_a_crash_at_a_fault_point_comes_when_the_node_comes_there() -> None:
    assert OF_CLIENTS in points_known()
    strikes = [Fault("kill", 1.0, bookie, lasts_s=3.0) for bookie in BOOKIES[:2]]
    point = Fault("crash_at", 0.5, "writer", lasts_s=0.5, options={"point": OF_CLIENTS, "after": 0})
    result = play(point, *strikes)
    assert result.struck["crash_at"] == 1
    assert [fact.node for fact in result.facts if fact.kind == "point.struck"] == ["writer"]


def test_a_pause_at_a_fault_point_holds_the_node_there() -> None:
    strikes = [Fault("kill", 1.0, bookie, lasts_s=3.0) for bookie in BOOKIES[:2]]
    point = Fault("pause", 0.5, "writer", lasts_s=1.0, options={"point": OF_CLIENTS, "after": 0})
    result = play(point, *strikes)
    times = {fact.kind: fact.time_s for fact in result.facts if fact.node == "writer"}
    assert times["host.resume"] - times["point.struck"] == pytest.approx(1.0)


def test_a_fault_that_meets_nothing_is_not_counted() -> None:
    away = Fault("crash_at", 0.5, "bookie-5", lasts_s=0.5, options={"point": OF_CLIENTS, "after": 0})
    dead = Fault("kill", 1.0, "bookie-1", lasts_s=2.0)
    again = Fault("crash", 1.5, "bookie-1", lasts_s=0.5)
    assert play(away, dead, again).struck == {"kill": 1}


@pytest.mark.parametrize("after", range(0, 12, 2))
def test_a_crash_in_the_midst_of_a_start_is_no_failure(after: int) -> None:
    """The death of a bookie that is starting once came out of the scenario itself."""
    first = Fault("kill", 1.0, "bookie-1", lasts_s=0.2)
    second = Fault("crash_at", 1.19, "bookie-1", lasts_s=0.2, options={"operation": "any", "after": after})
    # The second waits for operations from before the first one's end on: the start's own are the next.
    plan = tiny_plan(first, replace(second, at_s=0.95), replace(second, at_s=1.21, options={"operation": "any", "after": after}))
    result = run_seed(after, plan)
    assert result.ok, str(result)
    assert sum(fact.kind == "host.start" and fact.node == "bookie-1" for fact in result.facts) >= 2


def test_a_bookie_that_fails_after_a_failed_sync_is_started_again() -> None:
    result = play(Fault("sync_failed", 1.0, "bookie-1", lasts_s=4.0, options={"prefix": "/data"}))
    kinds = [fact.kind for fact in result.facts if fact.node == "bookie-1"]
    assert kinds.count("host.start") == 2
    assert "bookie.failed" in kinds


def test_a_bookie_that_fails_without_a_fault_is_a_violation() -> None:
    scenario = Scenario(1, tiny_plan())
    scenario.world.loop.call_later(2.0, scenario.world.disk("bookie-1").fail_next_sync, "/data")
    result = scenario.run()
    assert any(violation.startswith("bookie: bookie-1 failed") for violation in result.violations), str(result)


def test_a_bookie_whose_journal_is_rotten_may_stay_down_for_good() -> None:
    scenario = Scenario(2, tiny_plan(entries=80))
    rng = random.Random(1)
    rotten: list[str] = []

    def rot() -> None:
        for name, bookie in scenario.cluster.bookies.items():
            places = [rot_journal(scenario.world.disk(name), rng) for _ in range(30)]
            if any(places):
                bookie.rotten = "bit rot"
                bookie.excuse_failures()
                bookie.crash()
                rotten.append(name)
                return

    scenario.world.loop.call_later(2.0, rot)
    result = scenario.run()
    assert result.ok, str(result)
    assert list(scenario.context.rotten_bookies) == rotten
    assert list(scenario.context.lost_bookies) == rotten, "damage in the midst of a journal is found, and the bookie does not start"
    assert result.counts["bookies_lost"] == len(rotten) == 1


def test_a_bookie_that_does_not_start_without_a_fault_is_a_violation() -> None:
    scenario = Scenario(1, tiny_plan(Fault("kill", 2.0, "bookie-1", lasts_s=0.5)))

    def wipe() -> None:
        names = scenario.world.disk("bookie-1").names
        for path in [path for path in names.live if path.endswith("VERSION")]:
            del names.live[path]
            del names.durable[path]

    scenario.world.loop.call_later(2.5, wipe)
    result = scenario.run()
    assert any("bookie-1 does not start" in violation for violation in result.violations), str(result)
    assert list(scenario.context.lost_bookies) == ["bookie-1"]


def test_a_full_disk_makes_its_bookie_refuse_and_come_back() -> None:
    result = play(*STRIKES["disk_full"])
    kinds = [fact.kind for fact in result.facts if fact.node == "bookie-1"]
    assert "bookie.disks_full" in kinds or "bookie.failed" in kinds or "bookie.flush_without_space" in kinds


def test_the_page_of_the_simulator_names_every_fault_checker_and_workload() -> None:
    text = (Path(__file__).parents[3] / "docs" / "simulation.md").read_text(encoding="utf-8")
    names = [*FAULT_KINDS, *WORKLOADS, *(checker for play in WORKLOADS.values() for checker in play.checkers)]
    assert [name for name in names if name not in ("tiny", "nothing_is_found") and f"`{name}`" not in text] == []


def test_draws_keep_to_the_targets() -> None:
    targets = FaultTargets(BOOKIES, ("writer",), ("bookie.flush", "client.write"), losses_max=1)
    for number in range(300):
        for strike in draw_faults(random.Random(number), targets, 45.0):
            assert strike.target in ("", *BOOKIES, "writer")
            point = strike.options.get("point")
            if point is not None:
                assert str(point).startswith("bookie.") == (strike.target in BOOKIES)


def test_without_losses_nothing_rots() -> None:
    targets = FaultTargets(BOOKIES, ("writer",), (), losses_max=0)
    for number in range(200):
        strikes = draw_faults(random.Random(number), targets, 45.0)
        assert len(strikes) >= 3
        assert not {"bit_rot", "directory_rot", "wipe"} & {strike.kind for strike in strikes}


def test_a_plan_of_no_faults_applies_none() -> None:
    plan: Plan = tiny_plan()
    assert run_seed(3, plan).struck == {}
