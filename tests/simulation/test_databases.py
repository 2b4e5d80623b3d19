"""A replicated database under forced schedules: its nodes are held, killed and replaced at the moments that matter most."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.simulation.database_rig import QUIET, at, leader, read, run_scenario, seen, writing
from triplicate.sim import NodeDied
from triplicate_simulator.workloads.sql.leader_faults import run_leader_fault
from triplicate_simulator.workloads.sql.sql_load import FURTHER_APPEND
from triplicate_simulator.workloads.sql.sql_model import ClientSession, IdempotentRequest
from triplicate_simulator.workloads.sql.sql_operations import join_crowd, send_request
from triplicate_simulator.workloads.sql.sql_workload import SqlWorkload


@pytest.mark.parametrize("keeps_its_file", [True, False])
def test_a_leader_killed_between_acknowledgement_and_local_commit_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, keeps_its_file: bool
) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        of.context.world.points.trap("sql.local_commit", lambda _: first.crash(keep_unsynced=keeps_its_file), node=first.name)
        assert await at(of, first, writing(5)) == "gone"
        second = await leader(of, besides=first)
        assert await seen(of, second) == 5, "the log had acknowledged it"
        await first.restart()

    run_scenario(monkeypatch, scenario)


def test_a_leader_paused_before_its_local_commit_answers_no_stale_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        assert first.host is not None
        host = first.host
        of.context.world.points.trap("sql.local_commit", lambda _: host.pause(), node=first.name)
        writer = of.context.world.loop.start_task(at(of, first, writing(5)))
        while not host.paused:
            await asyncio.sleep(0.001)
        first.expire_session()
        second = await leader(of, besides=first)
        assert await seen(of, second) == 5
        assert await at(of, second, writing(6)) == ""
        # The question waits at the paused node, which still believes to lead when it goes on.
        asked = of.context.world.loop.start_task(at(of, first, read))
        await asyncio.sleep(0.1)
        host.resume()
        assert await asked == "57P01"
        assert await writer == ""
        assert await seen(of, await leader(of, besides=first)) == 6

    run_scenario(monkeypatch, scenario)


def test_a_leader_paused_before_its_append_reports_an_unknown_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        assert first.host is not None
        host = first.host
        of.context.world.points.trap("sql.append", lambda _: host.pause(), node=first.name)
        writer = of.context.world.loop.start_task(at(of, first, writing(5)))
        while not host.paused:
            await asyncio.sleep(0.001)
        first.expire_session()
        second = await leader(of, besides=first)
        assert await seen(of, second) == 0
        host.resume()
        assert await writer == "08007"
        assert await seen(of, await leader(of, besides=first)) == 0
        (token,) = of.model.unresolved
        assert await at(of, second, lambda session: session.resolve(token)) == ""
        assert not of.model.unresolved

    run_scenario(monkeypatch, scenario)


def test_a_leader_that_the_metadata_has_replaced_answers_no_read_and_keeps_no_write(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        first.reachable.clear()
        first.expire_session()
        second = await leader(of, besides=first)
        assert await at(of, second, writing(6)) == ""
        assert first.leads, "it has heard nothing"
        assert await at(of, first, read) == "57P01"
        first.reachable.set()

    run_scenario(monkeypatch, scenario)


def test_a_write_at_a_replaced_leader_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        first.reachable.clear()
        first.expire_session()
        second = await leader(of, besides=first)
        assert await at(of, first, writing(5)) in ("08007", "57P01")
        assert await seen(of, second) == 0
        first.reachable.set()

    run_scenario(monkeypatch, scenario)


@pytest.mark.parametrize("point", ["replica.take_over", "replica.replay"])
def test_a_successor_killed_during_its_take_over_is_replaced(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        assert await at(of, first, writing(5)) == ""
        struck: list[str] = []

        def strike(node: str) -> None:
            struck.append(node)
            of.servers[node].crash(keep_unsynced=True)

        of.context.world.points.trap(point, strike)
        first.crash()
        third = await leader(of, besides=first)
        assert struck
        assert third.name not in (first.name, *struck)
        assert await seen(of, third) == 5
        await first.restart()
        await of.servers[struck[0]].restart()

    run_scenario(monkeypatch, scenario)


@pytest.mark.parametrize("skip", range(4))
def test_a_follower_killed_while_it_applies_applies_everything_once(monkeypatch: pytest.MonkeyPatch, skip: int) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        follower = next(server for server in of.servers.values() if server is not first)
        trap = of.context.world.points.trap("sql.apply", lambda _: follower.crash(keep_unsynced=True), node=follower.name, skip=skip)
        for value in range(1, 8):
            assert await at(of, first, writing(value)) == ""
            await asyncio.sleep(0.05)
        assert trap.fired
        await follower.restart()

    run_scenario(monkeypatch, scenario)


@pytest.mark.parametrize("kind", ["ticket", "add", "transfer"])
def test_a_request_whose_answer_was_lost_is_answered_when_it_is_sent_again(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    async def scenario(of: SqlWorkload) -> None:
        request = IdempotentRequest(kind, of.model.token(kind), register="count0", accounts=("ann", "bob"))

        async def send(session: ClientSession) -> None:
            await send_request(session, request)

        first = await leader(of)
        of.context.world.points.trap("sql.local_commit", lambda _: first.crash(), node=first.name)
        assert await at(of, first, send) == "gone"
        assert not request.done
        assert await at(of, await leader(of, besides=first), send) == ""
        assert await at(of, await leader(of, besides=first), send) == "", "a third time"
        await first.restart()

    result = run_scenario(monkeypatch, scenario)
    assert result.counts["repeated"] == 1


def test_clients_notice_the_death_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(of: SqlWorkload) -> None:
        server = await leader(of)
        server.crash()
        with pytest.raises(NodeDied):
            await server.call(lambda database: database.session())
        await server.restart()

    run_scenario(monkeypatch, scenario)


def test_a_leader_that_hangs_is_replaced_though_its_session_and_its_connections_live(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        assert first.host is not None
        host, began_s = first.host, of.context.time()
        assert await at(of, first, writing(5)) == ""
        await asyncio.sleep(1.0)  # The followers have asked it something, and it has answered.
        host.pause()
        second = await leader(of, besides=first)
        assert of.context.time() - began_s < 1.0 + 4.0, "its session would have ended later"
        assert await seen(of, second) == 5
        assert await at(of, second, writing(6)) == ""
        asked = of.context.world.loop.start_task(at(of, first, read))
        await asyncio.sleep(0.1)
        host.resume()
        assert await asked == "57P01"
        assert await seen(of, await leader(of, besides=first)) == 6

    assert run_scenario(monkeypatch, scenario).counts["peers_found_silent"]


def test_a_leader_that_hangs_for_less_than_its_limit_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        assert first.host is not None
        await asyncio.sleep(1.0)
        for _ in range(3):
            first.host.pause()
            await asyncio.sleep(0.7)
            first.host.resume()
            await asyncio.sleep(0.5)
        assert await leader(of) is first

    assert not run_scenario(monkeypatch, scenario).counts.get("peers_found_silent")


def test_nodes_that_were_all_stopped_together_do_not_replace_their_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the machine beneath them was suspended: nobody was watched meanwhile, as the watchers slept themselves."""

    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        await asyncio.sleep(1.0)
        hosts = [server.host for server in of.servers.values() if server.host is not None]
        for host in hosts:
            host.pause()
        await asyncio.sleep(5.0)
        # The leader comes back last, and its machine is slow at first.
        for host in sorted(hosts, key=lambda host: host is first.host):
            host.resume()
            await asyncio.sleep(0.3)
        await asyncio.sleep(3.0)
        assert await leader(of) is first

    assert not run_scenario(monkeypatch, scenario).counts.get("peers_found_silent")


def test_a_window_whose_later_groups_never_reach_the_bookies_fails_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(of: SqlWorkload) -> None:
        loop, first = of.context.world.loop, await leader(of)
        fault = loop.start_task(run_leader_fault(of.model, f"mute at {FURTHER_APPEND}", of.context.time(), 2.0), name="mute")
        crowd = [loop.start_task(at(of, first, join_crowd), name="client 0")]
        before = of.context.world.points.reached["sql.append"]
        while of.context.world.points.reached["sql.append"] == before:
            await asyncio.sleep(0.0001)
        crowd += [loop.start_task(at(of, first, join_crowd), name=f"client {number}") for number in range(1, 12)]
        outcomes = [await client for client in crowd]
        assert "08007" in outcomes, "statements that were at the log"
        assert {*outcomes} <= {"08007", "57P01"}
        await fault
        assert await at(of, await leader(of, besides=first), join_crowd) == ""

    counts = run_scenario(monkeypatch, scenario, load=replace(QUIET, crowd=12)).counts
    assert counts["crowd_unknown"] >= 5, "the first group, and the four statements of the second"
    assert counts["window_faults"] == 1


@contextmanager
def cut_off_network(of: SqlWorkload, node: str) -> Iterator[None]:
    """A node reaches no bookie and no other node. The metadata are no part of this network."""
    network, others = of.context.world.network, [name for name in of.context.cluster.node_names() if name != node]
    network.partition([node], others)
    try:
        yield
    finally:
        network.heal([node], others)


GIVES_WAY_S = 6.0
"""Two intervals of reports until a leader is in doubt, one until it doubts the metadata, and the time limit of its log, of 2 s."""


@pytest.mark.parametrize("writes", [True, False], ids=["writing", "reading"])
def test_a_leader_that_only_its_clients_reach_gives_way(monkeypatch: pytest.MonkeyPatch, writes: bool) -> None:
    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        assert await at(of, first, writing(5)) == ""
        await asyncio.sleep(1.0)  # The followers have asked it something, and it has answered. Its lease has ended.
        with cut_off_network(of, first.name):
            first.reachable.clear()
            cut_s = of.context.time()
            asked = of.context.world.loop.start_task(at(of, first, writing(6) if writes else read))
            second = await leader(of, besides=first)
            assert await at(of, second, writing(7)) == ""
            assert await asked == ("08007" if writes else "57P01")
            while first.leads:
                await asyncio.sleep(0.01)
            assert of.context.time() - cut_s < GIVES_WAY_S
            assert first.database is not None
            assert first.database.leader_hint is None, "it sends no client to itself"
            await asyncio.sleep(3.0)  # Its replica has given way, too.
            assert first.database.leader_hint is None, "it sends no client to itself later either"
            first.reachable.set()
        assert await seen(of, await leader(of)) == 7

    run_scenario(monkeypatch, scenario)


def test_a_follower_that_is_cut_off_and_reaches_the_metadata_deposes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the embedded store, which is a file: its machine is cut off from the leader and from the bookies."""

    async def scenario(of: SqlWorkload) -> None:
        first = await leader(of)
        epoch = first.leading_epoch
        await asyncio.sleep(1.0)
        follower = next(server for server in of.servers.values() if server is not first)
        with cut_off_network(of, follower.name):
            for value in range(1, 13):
                assert await at(of, first, writing(value)) == ""
                await asyncio.sleep(0.5)
        await asyncio.sleep(2.0)
        assert (await leader(of)).leading_epoch == epoch
        first.crash()
        assert await seen(of, await leader(of, besides=first)) == 12
        await first.restart()

    assert run_scenario(monkeypatch, scenario).counts["peers_found_silent"]
