"""The facts are what the cluster says, and a source that does not answer is shown as such in bounded time."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from triplicate.cli.overview.cluster_sources import ClusterSources
from triplicate.cli.overview.core.cluster_facts import BookieFacts, BookieState, ClusterFacts
from triplicate.cli.overview.core.cluster_problems import problems_of
from triplicate.client import Client
from triplicate.config import ClientSettings
from triplicate.config.log_settings import LogClientSettings
from triplicate.log import Logs
from triplicate.metadata import Cookie, RepairProgress, bookie_service
from triplicate.runtime import sleep
from triplicate.wire import BookieInfoRequest

PATIENT = ClientSettings()
"""The time limits of the checks are tested, not those of requests."""


async def prepare(cluster: FakeCluster) -> None:
    for name in cluster.bookies:
        await cluster.metadata.cookies.put(Cookie(name, "/journal", ("/ledgers",), cluster.metadata.instance_id))


async def collect(client: Client, limit_s: float = 5.0) -> ClusterFacts:
    return await ClusterSources(client, LogClientSettings(), limit_s).collect()


def test_a_healthy_cluster_has_no_problems() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            writer = await client.create()
            await writer.append(b"x")
            await writer.close()
            await client.create()
            await Logs(client).create("events")
            facts = await collect(client)
            assert [(one.bookie_id, one.state, one.total_bytes, one.free_bytes) for one in facts.bookies.items] == [
                (name, BookieState.WRITABLE, 1000, 900) for name in "abc"
            ]
            assert (facts.ledgers.total, facts.ledgers.open, dict(facts.ledgers.by_bookie)) == (2, 1, {"a": 2, "b": 2, "c": 2})
            assert [one.name for one in facts.logs.items] == ["events"]
            assert problems_of(facts) == ()

    run(body())


def test_a_ledger_that_a_log_needs_and_that_is_gone_is_a_problem_of_the_log() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            logs = Logs(client)
            for name in ("events", "whole"):
                await logs.create(name)
                async with await logs.writer(name) as writer:
                    await writer.append(b"x")
            gone = (await logs.segments("events"))[0].ledger_id
            assert problems_of(await collect(client)) == ()
            await client.delete(gone)
            facts = await collect(client)
            assert {one.name: one.missing for one in facts.logs.items} == {"events": (gone,), "whole": ()}
            assert [(one.text, one.command) for one in problems_of(facts)] == [
                (f"log events needs 1 ledger that is gone: {gone}", "triplicate log repair events")
            ]
            await client.undelete(gone)
            assert problems_of(await collect(client)) == ()

    run(body())


def test_a_bookie_that_is_not_registered_is_lost_and_its_ledgers_are_counted() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            await client.create()
            await cluster["b"].stop()
            await cluster.metadata.bookies.unregister("b")
            facts = await collect(client)
            assert {one.bookie_id: one.state for one in facts.bookies.items}["b"] is BookieState.LOST
            assert [one.text for one in problems_of(facts)] == ["1 bookie is lost: b (1 ledger)"]

    run(body())


def test_a_registered_bookie_that_does_not_answer_is_shown_as_silent() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            cluster["c"].when(BookieInfoRequest, "drop")
            facts = await collect(client, 1.0)
            assert {one.bookie_id: one.silence for one in facts.bookies.items} == {"a": "", "b": "", "c": "no answer within 1 s"}
            assert [one.text for one in problems_of(facts)] == ["1 bookie does not answer: c"]

    run(body())


def test_marks_come_with_their_workers_and_a_replaced_disk_is_not_visited() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            marks = cluster.metadata.under_replication
            await marks.mark(4, ["b"])
            await marks.mark(7, ["b", "c"])
            await marks.lock(7, "worker-1")
            await cluster.metadata.repair_notes.record(4, "failed: no good copy", "worker-1")
            await marks.disable()
            await cluster.metadata.incarnations.begin_next("c", 0)
            facts = await collect(client)
            assert [(one.ledger_id, one.missing, one.worker, one.reason) for one in facts.marks.items] == [
                (4, ("b",), None, "failed: no good copy"),
                (7, ("b", "c"), "worker-1", ""),
            ]
            assert not facts.recovery.enabled
            assert {one.bookie_id: (one.incarnation, one.visited) for one in facts.bookies.items}["c"] == (2, False)

    run(body())


def test_a_repair_that_runs_comes_with_its_progress() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            metadata, now_ms = cluster.metadata, cluster.host.clock.wall_us() // 1000
            for ledger_id in (4, 7, 9):
                await metadata.under_replication.mark(ledger_id, ["b"])
                await metadata.repair_notes.progress.write(
                    ledger_id, RepairProgress("w", now_ms - 60_000, now_ms - 3000, 50, 500, 100, 10.0, 100.0)
                )
            for ledger_id in (7, 9):
                await metadata.under_replication.lock(ledger_id, "w")
            await metadata.tree.set(f"{metadata.own_root}/progress/{9:019d}", b'{"v":2}')
            unlocked, running, unreadable = (await collect(client)).marks.items
            assert unlocked.progress is unreadable.progress is None
            assert running.progress is not None
            assert (running.progress.entries, running.progress.expected_entries, running.progress.left_s) == (50, 100, 5.0)
            assert 3.0 <= running.progress.age_s < 60.0

    run(body())


def test_bookies_have_the_locations_of_the_table_and_problems_with_them_are_shown() -> None:
    async def body() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            await cluster.metadata.network_locations.set("a", "/east/r1")
            facts = await collect(client)
            assert {one.location for one in facts.bookies.items} == {"/east/r1"}
            assert facts.location_problems == ()
        async with fake_cluster("abc") as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            await cluster.metadata.network_locations.set("a", "/east/r1")
            await cluster.metadata.network_locations.set("b", "/west/r1")
            facts = await collect(client)
            assert any(one.text.startswith("a network location is not used: ") for one in problems_of(facts))

    run(body())


def test_a_walk_that_takes_too_long_counts_what_it_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            for _ in range(4):
                await client.create()
            read = client.metadata_of

            async def slow(ledger_id: int) -> object:
                if ledger_id >= 2:
                    await sleep(cluster.host.clock, 60.0)
                return await read(ledger_id)

            monkeypatch.setattr(client, "metadata_of", slow)
            monkeypatch.setattr("triplicate.autorecovery.ledger_walk.CHUNK", 2)
            started = asyncio.get_running_loop().time()
            facts = await collect(client, 1.0)
            assert asyncio.get_running_loop().time() - started < 10
            assert (facts.ledgers.total, facts.ledgers.cut) == (2, "no answer within 1 s")

    run(body())


def test_a_ledger_whose_metadata_cannot_be_decoded_is_counted_as_such() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            ledger_id = (await client.create()).ledger_id
            await cluster.tree.set(cluster.metadata.ledgers.node_path(ledger_id), b"torn", -1)
            assert (await collect(client)).ledgers.unreadable == (ledger_id,)

    run(body())


def test_a_bookie_whose_registration_cannot_be_decoded_is_named_and_not_lost() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            await cluster.metadata.tree.set("/ledgers/available/b", b"\xff\xff")
            facts = await collect(client)
            (found,) = [one for one in facts.bookies.items if one.state is not BookieState.WRITABLE]
            assert (found.bookie_id, found.state, found.has_cookie) == ("b", BookieState.UNREADABLE, True)
            assert "is not a BookieServiceInfo" in found.silence
            (problem,) = problems_of(facts)
            assert problem.text.startswith("bookie b runs, and its registration cannot be decoded: ")

    run(body())


def test_a_machine_with_two_names_is_recognized_by_its_address() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)
            port = (await cluster.metadata.bookies.resolve("b")).address[1]
            await cluster.metadata.bookies.register("b", bookie_service("localhost", port))
            asked: list[str] = []

            async def resolve(host: str) -> tuple[str, ...]:
                asked.append(host)
                return ("127.0.0.1",)

            facts = await ClusterSources(client, LogClientSettings(), 5.0, resolve).collect()
            assert facts.shared_machines == (("127.0.0.1", "localhost"),)
            assert sorted(asked) == ["127.0.0.1", "localhost"], "each host once"
            assert len(problems_of(facts)) == 1

    run(body())


def test_a_host_that_is_not_resolved_in_time_is_left_out() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await prepare(cluster)

            async def resolve(host: str) -> tuple[str, ...]:
                await asyncio.Event().wait()
                return ()

            sources = ClusterSources(client, LogClientSettings(), 0.1, resolve)
            assert await sources.shared_machines([BookieFacts("a", BookieState.WRITABLE, address="h:1")]) == ()

    run(body())
