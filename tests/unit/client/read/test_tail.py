"""Whoever waits hears of the end of its client, and what waits is bounded."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from triplicate.client import LedgerWriter, Tail
from triplicate.errors import HandleClosed
from triplicate.ledger import Entry

NO_POLLS = replace(QUICK, long_poll=False)


def test_a_wait_for_an_entry_ends_with_its_client() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster:
            async with cluster.client(NO_POLLS) as client:
                writer = await client.create()
                reader = await client.open(writer.ledger_id)
                waiting = asyncio.ensure_future(reader.wait_for_entry(0, 3600.0))
                await asyncio.sleep(0.1)
            with pytest.raises(HandleClosed):
                await asyncio.wait_for(waiting, 5.0)

    run(main())


def test_a_tail_of_a_reader_that_was_not_the_last_one_opened_ends_with_its_client() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster:
            async with cluster.client(NO_POLLS) as client:
                writer = await client.create()
                reader = await client.open(writer.ledger_id)
                await client.open(writer.ledger_id)
                following = asyncio.ensure_future(anext(reader.tail()))
                await asyncio.sleep(0.1)
            with pytest.raises((HandleClosed, StopAsyncIteration)):
                await asyncio.wait_for(following, 5.0)

    run(main())


def test_what_a_writer_notes_of_its_sendings_does_not_grow_behind_an_early_great_id() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create_adv()
            far = writer.append_nowait(10**9, b"far")
            await asyncio.sleep(0.02)  # It is sent by itself.
            for entry_id in range(200):
                await writer.append(entry_id, b"x")
            assert len(writer._pipeline._latency._sent) < 50
            await writer.close(wait=False)
            far.cancel()

    run(main())


def test_a_wait_for_an_entry_keeps_its_time_where_the_metadata_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)

            async def silent(ledger_id: int) -> None:
                await asyncio.Event().wait()

            monkeypatch.setattr(cluster.metadata.ledgers, "get", silent)
            assert await asyncio.wait_for(reader.wait_for_entry(0, 0.3), 5.0) is None
            waiting = asyncio.ensure_future(reader.wait_for_entry(0, 4.0))
            await writer.append_many([b"0", b"1"])
            await writer.append(b"2")
            entry = await waiting
            assert entry is not None
            assert entry.payload == b"0"
            writer.abandon()

    run(main())


def test_a_tail_goes_on_where_the_metadata_falls_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)
            async with reader.tail() as tail:
                await writer.append(b"0")
                await writer.append(b"1")
                assert (await anext(tail)).payload == b"0"

                async def silent(ledger_id: int) -> None:
                    await asyncio.Event().wait()

                monkeypatch.setattr(cluster.metadata.ledgers, "get", silent)
                tail._stale = True  # As after a change of the metadata.
                await writer.append(b"2")
                await writer.append(b"3")
                async with asyncio.timeout(5.0):
                    assert [(await anext(tail)).payload for _ in range(2)] == [b"1", b"2"]
            writer.abandon()

    run(main())


def test_a_tail_that_was_given_up_while_it_asked_for_the_metadata_still_hears_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)
            async with reader.tail() as tail:
                await writer.append(b"0")
                await writer.close()
                get, asked = cluster.metadata.ledgers.get, asyncio.Event()

                async def silent(ledger_id: int) -> None:
                    asked.set()
                    await asyncio.Event().wait()

                monkeypatch.setattr(cluster.metadata.ledgers, "get", silent)
                tail._stale = True  # As after a change of the metadata.
                waiting = asyncio.ensure_future(anext(tail))
                await asked.wait()
                waiting.cancel()
                await asyncio.wait([waiting])
                monkeypatch.setattr(cluster.metadata.ledgers, "get", get)
                async with asyncio.timeout(5.0):
                    assert [entry.payload async for entry in tail] == [b"0"]

    run(main())


def test_a_poll_that_finds_several_entries_confirmed_delivers_all_of_them_at_once() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            async with (await client.open(writer.ledger_id)).tail() as tail:
                assert [entry.payload for entry in await _after_first(tail, writer, 5)] == [b"1", b"2", b"3", b"4"]
            writer.abandon()

    run(main())


async def _after_first(tail: Tail, writer: LedgerWriter, count: int) -> list[Entry]:
    """The entries that the tail delivers in one list, after the first of `count` + 1 entries. It knows only the first as confirmed."""
    for index in range(2):
        await writer.append(b"%d" % index)
    assert [entry.payload for entry in await tail.next_entries()] == [b"0"]
    for index in range(2, count + 1):
        await writer.append(b"%d" % index)
    return await tail.next_entries()
