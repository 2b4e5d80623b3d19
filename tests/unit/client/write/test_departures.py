"""Idle writers replace bookies that are being decommissioned or lost, and only those."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.cluster import fake_cluster, run
from tests.waiting import eventually
from triplicate.client.write import departures
from triplicate.client.write.write_handle import WriteHandle, replace_lost_bookie
from triplicate.config import ClientSettings
from triplicate.errors import ConnectionLost
from triplicate.metadata.bookie_registry import BookieRegistry
from triplicate.metadata.read_only_requests import ReadOnlyRequests


@pytest.fixture(autouse=True)
def short_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures, "CHECK_INTERVAL_S", 0.02)


def test_an_idle_writer_replaces_a_leaving_bookie() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            idle, adv = await client.create(), await client.create_adv()
            deferred = await client.create(deferred_sync=True)
            await idle.append(b"one")
            await cluster.add("d")
            await cluster.set_readonly("b", True)
            await cluster.metadata.read_only_requests.request("b")
            await asyncio.sleep(0.1)
            assert "b" in idle.metadata.last_segment.ensemble, "a bookie that stays keeps its idle writers"
            await cluster.metadata.read_only_requests.request("b", leaving=True)
            await eventually(lambda: "b" not in idle.metadata.last_segment.ensemble and "b" not in adv.metadata.last_segment.ensemble)
            assert (await cluster.metadata_of(idle.ledger_id)).segments == idle.metadata.segments
            assert idle.metadata.last_segment.first_entry_id == 1
            assert [await idle.append(b"two"), await adv.append(0, b"one")] == [1, 0]
            assert cluster.fenced(idle.ledger_id) == []
            assert "b" in deferred.metadata.last_segment.ensemble, "the ensemble of a ledger with deferred sync never changes"
            assert deferred.failure is None
            await idle.close()

    run(main())


def test_an_idle_writer_replaces_a_lost_bookie() -> None:
    settings = ClientSettings(lost_bookie_limit_s=0.2)

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(settings) as client:
            idle, adv = await client.create(), await client.create_adv()
            deferred = await client.create(deferred_sync=True)
            await idle.append(b"one")
            await cluster.metadata.bookies.unregister("b")
            await asyncio.sleep(0.5)
            assert "b" in idle.metadata.last_segment.ensemble, "no other bookie can take its place"
            assert (idle.missing_bookies, idle.failure) == ((), None)
            await cluster.add("d")
            await eventually(lambda: "b" not in idle.metadata.last_segment.ensemble and "b" not in adv.metadata.last_segment.ensemble)
            assert (await cluster.metadata_of(idle.ledger_id)).segments == idle.metadata.segments
            assert [await idle.append(b"two"), await adv.append(0, b"one")] == [1, 0]
            assert cluster.fenced(idle.ledger_id) == []
            assert "b" in deferred.metadata.last_segment.ensemble, "the ensemble of a ledger with deferred sync never changes"
            assert deferred.failure is None
            replaced = cluster.told("client.bookie_replaced")
            assert {fact["bookie"] for fact in replaced} == {"b"}

    run(main())


@pytest.mark.parametrize(
    "settings",
    [
        ClientSettings(lost_bookie_limit_s=0.0),
        ClientSettings(lost_bookie_limit_s=3600.0),
        ClientSettings(lost_bookie_limit_s=0.05, delay_ensemble_change=True),
    ],
)
def test_an_idle_writer_keeps_an_absent_bookie(settings: ClientSettings) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(settings) as client:
            idle = await client.create()
            ensemble = idle.metadata.last_segment.ensemble
            await cluster.metadata.bookies.unregister(ensemble[0])
            await asyncio.sleep(0.3)
            assert idle.metadata.last_segment.ensemble == ensemble

    run(main())


def test_few_writers_at_a_time_replace_a_lost_bookie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures, "WRITERS_PER_CHECK", 2)
    replaced_after_check: list[int] = []
    registered_ids = BookieRegistry.registered_ids

    async def checked(registry: BookieRegistry) -> frozenset[str]:
        replaced_after_check.append(0)
        return await registered_ids(registry)

    def counted(writer: WriteHandle, bookie_id: str) -> None:
        replaced_after_check[-1] += 1
        replace_lost_bookie(writer, bookie_id)

    monkeypatch.setattr(BookieRegistry, "registered_ids", checked)
    monkeypatch.setattr(departures, "replace_lost_bookie", counted)

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(ClientSettings(lost_bookie_limit_s=0.01)) as client:
            idle = [await client.create() for _ in range(5)]
            await cluster.add("d")
            await cluster.metadata.bookies.unregister("b")
            await eventually(lambda: all("b" not in writer.metadata.last_segment.ensemble for writer in idle))
            assert max(replaced_after_check) == 2

    run(main())


def test_the_bookies_are_read_only_while_there_are_open_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[None] = []
    original = ReadOnlyRequests.leaving

    async def leaving(requests: ReadOnlyRequests) -> list[str]:
        reads.append(None)
        return await original(requests)

    monkeypatch.setattr(ReadOnlyRequests, "leaving", leaving)

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            for _ in range(2):
                writer = await client.create()
                reads.clear()
                await eventually(lambda: len(reads) >= 3)
                await writer.close()
                await asyncio.sleep(0.1)
                reads.clear()
                await asyncio.sleep(0.1)
                assert not reads

    run(main())


def test_a_store_that_fails_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            gone = writer.metadata.last_segment.ensemble[0]
            original = ReadOnlyRequests.leaving
            failures = [True]

            async def leaving(requests: ReadOnlyRequests) -> list[str]:
                if failures:
                    failures.pop()
                    raise ConnectionLost("away")
                return await original(requests)

            monkeypatch.setattr(ReadOnlyRequests, "leaving", leaving)
            await cluster.set_readonly(gone, True)
            await cluster.metadata.read_only_requests.request(gone, leaving=True)
            await eventually(lambda: gone not in writer.metadata.last_segment.ensemble)
            assert cluster.told("client.departures_not_read") == [{"error": "away"}]

    run(main())
