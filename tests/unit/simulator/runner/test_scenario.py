"""One seed's run: what ends it, what counts as wrong, and that it is the same again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.simulator.tiny import TinyPlay, tiny_plan
from triplicate.client import Client
from triplicate.runtime import Host
from triplicate.sim import World
from triplicate_simulator import OTHER_FINDINGS, Fault, Plan, Scenario, SimulatedCluster, reporter_of, run_seed
from triplicate_simulator.cluster.simulated_cluster import AFTERMATH_S

pytestmark = pytest.mark.usefixtures("tiny")


def test_a_plan_is_one_history() -> None:
    plan = tiny_plan(Fault("crash", 1.0, "bookie-2", lasts_s=0.5), Fault("metadata_lost", 1.0, lasts_s=2.0, options={"rate": 0.1}))
    assert run_seed(5, plan).digest == run_seed(5, plan).digest
    assert run_seed(6, plan).digest != run_seed(5, plan).digest


def test_every_other_finding_has_its_name() -> None:
    said = {
        "progress": "no progress: tailer is not done",
        "leaks": "leak: task x",
        "leftovers": "left over: ledgers that no log lists: 7",
        "unhandled": "unhandled: error",
        "bookies": "bookie: bookie-1 failed",
        "processes": "process: node-1 ended by itself",
        "space": "space: 20 s after faults have stopped bookie-1 still holds 1 ledgers",
        "copies": "copy: node-1 tries to follow for database.books.1 again and again: 30 times after faults were over",
        "snapshots": "snapshot: 0123 of database.books.1 at 9, made by node-1, cannot be loaded: its digest is another",
        "failed": "failed: AssertionError in f",
    }
    assert set(said) == set(OTHER_FINDINGS)
    assert {reporter_of(text): name for name, text in said.items()} == {name: name for name in said}
    assert reporter_of("stuck: nothing can happen") == "progress"
    assert reporter_of("acknowledged_in_order: entry 8") == "acknowledged_in_order"


def test_who_never_ends_makes_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forever(self: TinyPlay, client: Client) -> None:
        await asyncio.sleep(1e6)

    monkeypatch.setattr(TinyPlay, "_write", forever)
    result = run_seed(1, tiny_plan())
    assert any(reporter_of(violation) == "progress" for violation in result.violations)


def test_an_assertion_of_an_actor_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrong(self: TinyPlay, client: Client) -> None:
        raise AssertionError("what cannot be")

    monkeypatch.setattr(TinyPlay, "_write", wrong)
    result = run_seed(1, tiny_plan())
    assert [reporter_of(violation) for violation in result.violations if "what cannot be" in violation]


def test_whatever_comes_out_of_an_actor_is_a_finding_and_ends_no_range(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrong(self: TinyPlay, client: Client) -> None:
        raise KeyError("a mutant's")

    def confused(history: object, verdict: object) -> None:
        raise ValueError("a history like this was not thought of")

    monkeypatch.setattr(TinyPlay, "_write", wrong)
    monkeypatch.setattr(TinyPlay, "checkers", {"nothing_is_found": confused})
    violations = run_seed(1, tiny_plan()).violations
    assert {reporter_of(violation) for violation in violations} == {"failed"}
    assert any("a mutant's" in violation for violation in violations)
    assert any("not thought of" in violation for violation in violations)


def test_what_is_left_behind_is_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    async def litter(self: TinyPlay, client: Client) -> None:
        asyncio.get_running_loop().call_later(1000.0, print)

    monkeypatch.setattr(TinyPlay, "_write", litter)
    result = run_seed(1, tiny_plan())
    assert "leaks" in [reporter_of(violation) for violation in result.violations]


def test_a_run_whose_facts_were_not_all_kept_is_a_finding() -> None:
    scenario = Scenario(1, tiny_plan())
    scenario.world.recorder._facts_max = 1
    assert [reporter_of(violation) for violation in scenario.run().violations] == ["failed"]


def test_the_checkers_findings_are_violations_under_their_name() -> None:
    result = run_seed(1, tiny_plan(complains=True))
    assert result.violations == ["nothing_is_found: 60 entries were acknowledged"]
    assert reporter_of(result.violations[0]) == "nothing_is_found"


def test_the_history_says_when_nodes_died() -> None:
    scenario = Scenario(1, tiny_plan(Fault("kill", 1.0, "writer", lasts_s=0.5), Fault("kill", 2.0, "bookie-1", lasts_s=0.5)))
    assert scenario.run().ok
    deaths = scenario.context.history.deaths
    assert list(deaths) == ["writer", "bookie-1"]
    assert all(len(times) == 1 for times in deaths.values())
    assert deaths["writer"] < deaths["bookie-1"]


def test_faults_that_overlap_on_one_node_are_borne() -> None:
    strikes = [
        Fault(kind, 1.0 + 0.3 * number, "bookie-1", lasts_s=0.7) for number, kind in enumerate(["crash", "kill", "pause", "stop"] * 3)
    ]
    assert run_seed(1, tiny_plan(*strikes)).ok


def test_a_fault_on_a_node_that_is_not_there_yet_strikes_nothing() -> None:
    result = run_seed(1, tiny_plan(Fault("kill", 0.5, "nobody", lasts_s=0.1), Fault("session_expired", 0.5, "nobody")))
    assert result.ok, str(result)
    assert result.struck == {}


def test_a_run_that_was_interrupted_heals_what_was_cut() -> None:
    plan = tiny_plan(Fault("partition", 1.0, lasts_s=30.0, options={"group": "bookie-1 writer", "metadata": True}), entries=200)
    scenario = Scenario(1, replace(plan, duration_s=2.0))
    result = scenario.run()
    assert result.ok, str(result)
    assert scenario.cluster.cut_off == {}
    assert not scenario.world.network.is_blocked("bookie-1", "bookie-2")


def fails_later(plan: Plan, at_s: float) -> list[str]:
    """The reports of each node, where a sync of bookie-1 fails once more, at a time of its own and by no fault of the plan."""
    scenario = Scenario(1, plan)
    scenario.world.loop.call_later(at_s, scenario.world.disk("bookie-1").fail_next_sync, "/data")
    return [violation for violation in scenario.run().violations if reporter_of(violation) == "bookies"]


FULL_OF_ROOM = Fault("disk_full", 1.0, "bookie-1", lasts_s=1.0, options={"free_bytes": 50_000_000})
SYNC_FAILS = Fault("sync_failed", 1.0, "bookie-1", lasts_s=1.0, options={"prefix": "/data"})


@pytest.mark.parametrize("strike", [FULL_OF_ROOM, SYNC_FAILS])
def test_a_fault_of_a_disk_excuses_no_failure_after_its_end(strike: Fault) -> None:
    """One such fault must not excuse every later failure of the bookie in the seed."""
    plan = tiny_plan(strike, entries=110, duration_s=8.0)
    assert run_seed(1, plan).ok
    [violation] = fails_later(plan, 5.0)
    assert violation.startswith("bookie: bookie-1 ")


def test_a_bookie_that_is_whole_again_must_start() -> None:
    """A bookie that could never start was tried again and again, because of a fault it had long recovered from."""
    scenario = Scenario(1, tiny_plan(SYNC_FAILS, Fault("kill", 4.0, "bookie-1", lasts_s=0.5), entries=110, duration_s=8.0))

    def wipe() -> None:
        names = scenario.world.disk("bookie-1").names
        for path in [path for path in names.live if path.endswith("VERSION")]:
            del names.live[path]
            del names.durable[path]

    scenario.world.loop.call_later(4.2, wipe)
    assert any("bookie-1 does not start" in violation for violation in scenario.run().violations)


def test_a_bookie_that_is_struck_down_on_a_full_disk_is_excused_until_it_has_come_back() -> None:
    scenario = Scenario(1, tiny_plan(entries=110, duration_s=8.0))
    cluster, disk = scenario.cluster, scenario.world.disk("bookie-1")
    bookie, loop = cluster.bookies["bookie-1"], scenario.world.loop
    told: list[bool] = []

    def strike() -> None:
        told.append(bookie.may_fail)
        bookie.excuse_failures()
        disk.fill(0)
        bookie.crash(keep_unsynced=True)

    def relieve() -> None:
        disk.relieve()
        bookie.end_excuses()
        told.append(bookie.may_fail)
        loop.start_task(bookie.restart(), name="restart")

    loop.call_later(1.0, strike)
    loop.call_later(2.0, relieve)
    loop.call_later(7.5, lambda: told.append(bookie.may_fail))
    assert scenario.run().ok
    assert told == [False, True, False]
    assert bookie.may_fail_at(1.5)


def test_a_bookie_that_bore_a_full_disk_is_excused_for_a_little_while() -> None:
    world = World(1)
    node, disk = SimulatedCluster(world).bookies["bookie-1"], world.disk("bookie-1")
    node._serves = True
    node.excuse_failures()
    disk.refused_writes += 1
    node.end_excuses()
    assert node.may_fail_at(AFTERMATH_S)
    assert not node.may_fail_at(AFTERMATH_S + 0.1)
    world.close()


def test_a_bookie_whose_sync_fails_while_it_starts_may_give_up_after_its_start() -> None:
    """Seed 209: the start ended before the bookie heard of the sync that it had lost, and its giving up was called a failure of its own."""
    world = World(1)
    cluster = SimulatedCluster(world)
    node, disk = cluster.bookies["bookie-1"], world.disk("bookie-1")
    boot = node._boot
    told: list[bool] = []

    async def boot_and_lose_a_sync(host: Host) -> None:
        await boot(host)
        node.excuse_failures()
        disk.failed_syncs += 1

    async def play() -> None:
        await cluster.start()
        node.crash()
        node._boot = boot_and_lose_a_sync  # type: ignore[method-assign]
        await node.start()
        await asyncio.sleep(0.1)
        told.append(node.may_fail)
        node.crash()
        node._boot = boot  # type: ignore[method-assign]
        await node.start()
        await asyncio.sleep(0.1)
        told.append(node.may_fail)
        await cluster.stop()

    world.run(play())
    world.close()
    assert told == [True, False]
