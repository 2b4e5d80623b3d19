"""A writer leaves a bookie without entries that others have confirmed: the ledger is marked, after the delay of a lost bookie."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import Client, LedgerWriter
from triplicate.client.short_copies import ShortCopies
from triplicate.errors import ConnectionLost
from triplicate.metadata import UnderreplicationManager
from triplicate.runtime import TaskScope
from triplicate.wire import AddRequest

AT_ONCE, LONG = 0, 3600


async def marked(cluster: FakeCluster, ledger_id: int) -> tuple[str, ...]:
    mark = await cluster.metadata.under_replication.get(ledger_id)
    return () if mark is None else mark.missing


async def with_delay(cluster: FakeCluster, delay_s: int) -> None:
    await cluster.metadata.under_replication.set_lost_bookie_recovery_delay_s(delay_s)


async def left_behind(cluster: FakeCluster, client: Client) -> tuple[LedgerWriter, str]:
    """A writer that has replaced a bookie behind entry 0, which only the two others have; with the name of that bookie."""
    writer = await client.create()
    left = writer.metadata.last_segment.ensemble[0]
    cluster[left].when(AddRequest, "hold")
    await writer.append(b"confirmed by two")
    await cluster[left].stop()
    await eventually(lambda: writer.ensemble_changes == 1)
    assert writer.metadata.segments[1].first_entry_id == 1
    return writer, left


async def closed_ledger(cluster: FakeCluster) -> int:
    async with cluster.client() as client, await client.create() as writer:
        return writer.ledger_id


def test_a_ledger_with_a_bookie_that_was_left_behind_is_marked_after_the_delay() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            await with_delay(cluster, AT_ONCE)
            writer, left = await left_behind(cluster, client)
            await eventually(lambda: bool(cluster.told("client.ledger_marked")))
            assert await marked(cluster, writer.ledger_id) == (left,)
            assert cluster.told("client.ledger_marked") == [{"ledger": writer.ledger_id, "missing": left}]

    run(main())


def test_the_mark_waits_for_the_delay_and_not_for_longer_than_the_client_lives() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster:
            await with_delay(cluster, LONG)
            async with cluster.client() as client:
                writer, left = await left_behind(cluster, client)
                await writer.close()
                assert await marked(cluster, writer.ledger_id) == ()
            assert await marked(cluster, writer.ledger_id) == (left,)

    run(main())


def test_a_bookie_that_had_every_confirmed_entry_is_not_marked() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster:
            async with cluster.client() as client:
                writer = await client.create()
                await writer.append(b"confirmed by three")
                await eventually(lambda: writer.has_all_copies)
                left, *others = writer.metadata.last_segment.ensemble
                await cluster[left].stop()
                for name in others:
                    cluster[name].when(AddRequest, "hold")
                appending = asyncio.ensure_future(writer.append(b"confirmed after the change"))
                await eventually(lambda: writer.ensemble_changes == 1)
                for name in others:
                    cluster[name].obey()
                assert await appending == 1
                assert [segment.first_entry_id for segment in writer.metadata.segments] == [0, 1]
            assert await marked(cluster, writer.ledger_id) == ()

    run(main())


def test_a_bookie_that_is_missing_when_the_ledger_is_closed_is_marked() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster:
            async with cluster.client() as client:
                plain, adv = await client.create(), await client.create_adv()
                await cluster["b"].stop()
                await plain.append(b"without b")
                await adv.append(0, b"without b")
                await eventually(lambda: plain.missing_bookies == adv.missing_bookies == ("b",))
                await plain.close()
                await adv.close()
            assert await marked(cluster, plain.ledger_id) == await marked(cluster, adv.ledger_id) == ("b",)

    run(main())


def test_a_deleted_ledger_and_a_bookie_that_it_does_not_name_any_more_are_not_marked() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster:
            await with_delay(cluster, LONG)
            async with cluster.client() as client:
                deleted, _ = await left_behind(cluster, client)
                await client.delete(deleted.ledger_id)
            scope = TaskScope("test")
            short = ShortCopies(cluster.host, cluster.metadata, scope)
            short.note(await closed_ledger(cluster), ["e"])
            await short.aclose()
            await scope.aclose()
            assert [mark async for mark in cluster.metadata.under_replication.marks()] == []

    run(main())


def test_a_mark_that_fails_is_made_later_and_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(marks: UnderreplicationManager, ledger_id: int, missing: object) -> None:
        raise ConnectionLost("away")

    async def main() -> None:
        async with fake_cluster("abcd") as cluster:
            await with_delay(cluster, AT_ONCE)
            monkeypatch.setattr(UnderreplicationManager, "mark", fails)
            async with cluster.client() as client:
                writer, left = await left_behind(cluster, client)
                await eventually(lambda: bool(cluster.told("client.marks_postponed")))
                assert cluster.told("client.marks_postponed")[0]["ledgers"] == 1
            assert cluster.told("client.ledger_not_marked") == [{"ledger": writer.ledger_id, "missing": left, "error": "away"}]

    run(main())
