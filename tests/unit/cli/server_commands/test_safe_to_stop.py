"""The verdict rests on registrations, answers, marks and replaced disks of the cluster."""

from __future__ import annotations

import pytest

from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from triplicate.cli.overview.core.stop_verdict import Harm
from triplicate.cli.server_commands.safe_to_stop import StopAnswer, judge_stop
from triplicate.client import Client
from triplicate.config import ClientSettings
from triplicate.errors import ArgumentError
from triplicate.log import Logs
from triplicate.wire import BookieInfoRequest

PATIENT = ClientSettings()
"""The time limits of the checks are tested, not those of requests."""


async def closed_ledger(client: Client) -> int:
    writer = await client.create()
    await writer.append(b"x")
    await writer.close()
    return writer.ledger_id


def harms(answer: StopAnswer) -> list[Harm]:
    return [one.harm for one in answer.verdict.harmed]


def test_a_bookie_can_be_stopped_while_others_have_its_copies() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await closed_ledger(client)
            await client.create()
            answer = await judge_stop(client, ("a",), 5.0)
            assert (answer.verdict.is_safe, answer.absent, answer.writable_left, answer.verdict.largest_open) == (True, (), 2, 3)

    run(body())


def test_absent_and_silent_bookies_have_no_copies() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            await closed_ledger(client)
            await cluster["b"].stop()
            await cluster.metadata.bookies.unregister("b")
            cluster["c"].when(BookieInfoRequest, "drop")
            answer = await judge_stop(client, ("a",), 1.0)
            assert (harms(answer), answer.absent) == ([Harm.NO_COPY], ("c",))

    run(body())


def test_marks_and_replaced_disks_count() -> None:
    async def body(prepare: str) -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            ledger_id = await closed_ledger(client)
            assert (await judge_stop(client, ("a",), 5.0)).verdict.is_safe
            await spoil(cluster, ledger_id, prepare)
            assert harms(await judge_stop(client, ("a",), 5.0)) == [Harm.NO_COPY]

    async def spoil(cluster: FakeCluster, ledger_id: int, prepare: str) -> None:
        if prepare == "marks":
            await cluster.metadata.under_replication.mark(ledger_id, ["b", "c"])
            return
        for name in "bc":
            await cluster.metadata.incarnations.begin_next(name, ledger_id + 1)

    run(body("marks"))
    run(body("disks"))


def test_an_open_ledger_is_named_with_its_log_and_writer() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            logs = Logs(client)
            await logs.create("events")
            async with await logs.writer("events", owner="me") as writer:
                await writer.append(b"x")
                answer = await judge_stop(client, ("a", "b"), 5.0)
                assert Harm.NO_ACK_QUORUM in harms(answer)
                assert list(answer.writers.values()) == ["log events, me"]

    run(body())


def test_an_unknown_bookie_is_refused() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            with pytest.raises(ArgumentError, match="the cluster knows no bookie z; there are: a, b, c"):
                await judge_stop(client, ("z",), 5.0)

    run(body())


def test_a_stop_that_leaves_too_few_machines_is_named() -> None:
    async def body() -> None:
        async with fake_cluster("") as cluster:
            for number, name in enumerate("abc"):
                await cluster.add(name, f"127.0.0.{number // 2 + 2}")
            settings = ClientSettings(placement_min_ack_domains=2)
            async with cluster.client(settings) as client:
                await client.create(ensemble_size=2, write_quorum=2, ack_quorum=1)
                answer = await judge_stop(client, ("c",), 5.0)
                assert harms(answer) == [Harm.TOO_FEW_DOMAINS]
                assert answer.missing_domains.endswith("bookies are in 1: 127.0.0.2")
                assert (await judge_stop(client, ("a",), 5.0)).missing_domains == ""

    run(body())
