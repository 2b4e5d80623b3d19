"""The log over the real client, its sockets and quorums; the bookies are scripted ones."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.cluster import fake_cluster, run
from tests.waiting import eventually
from triplicate.client import LedgerWriter
from triplicate.errors import LogFenced, NotEnoughBookies
from triplicate.log import LogClientSettings, Logs, LogSettings, Quorums, StagingOrigin
from triplicate.metadata import bookie_service

ROLLING = LogSettings(roll_size_bytes=4096, compression="none")


async def values_of(logs: Logs, name: str, start: int, end: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    async with await logs.reader(name, start) as reader:
        while reader.position < end:
            entry = await reader.next_entry(5)
            assert entry is not None
            values += entry.values
    return values


def test_a_log_is_written_rolled_tailed_and_read_again() -> None:
    async def body() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, cluster.client() as other:
            logs, others = Logs(client), Logs(other)
            await logs.create("l", ROLLING)
            values = [b"%04d" % number + b"." * 200 for number in range(100)]
            following = asyncio.ensure_future(values_of(others, "l", 0, 100))
            async with await logs.writer("l", owner="w") as writer:
                appends = [asyncio.ensure_future(writer.append(value)) for value in values]
                assert [await append for append in appends] == list(range(100))
                await asyncio.sleep(0.05)
                assert await others.end_offset("l") == 100
            assert await following == values
            assert await values_of(others, "l", 0, 100) == values
            ranges = await others.plan("l", 10, 90, 7)
            read: list[bytes | None] = []
            for planned in ranges:
                async with others.read_range(planned) as reading:
                    read += [value async for entry in reading for value in entry.values]
            assert read == values[10:90]

    run(body())


def test_a_take_over_fences_the_writer_before() -> None:
    async def body() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, cluster.client() as other:
            logs, others = Logs(client), Logs(other)
            await logs.create("l")
            first = await logs.writer("l", owner="one")
            assert await first.append_many([b"a", b"b"]) == range(2)
            async with await others.writer("l", owner="two") as second:
                with pytest.raises(LogFenced):
                    await first.append(b"lost")
                assert await second.append(b"c") == 2
            await first.close()
            assert await values_of(logs, "l", 0, 3) == [b"a", b"b", b"c"]

    run(body())


def test_the_loss_of_a_bookie_is_not_seen_by_appenders() -> None:
    async def body() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            logs = Logs(client)
            await logs.create("l")
            async with await logs.writer("l", owner="w") as writer:
                for number in range(20):
                    if number == 10:
                        metadata = await client.metadata_of(writer.ledger_id)
                        await cluster[metadata.last_segment.ensemble[0]].stop()
                    assert await writer.append(b"%d" % number) == number
            assert await values_of(logs, "l", 0, 20) == [b"%d" % number for number in range(20)]

    run(body())


def test_staged_ledgers_are_published_and_read() -> None:
    async def body() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            logs = Logs(client)
            await logs.create("l")
            staged = []
            for partition in range(3):
                async with await logs.staging(StagingOrigin("l", "app", "q", 1, partition)) as writer:
                    await writer.append_many([b"%d-%d" % (partition, number) for number in range(10)])
                    staged.append(await writer.seal())
            published = await logs.publish("l", staged, application="app", batch=1)
            assert (published.first_offset, published.end_offset, published.already) == (0, 30, False)
            assert (await logs.publish("l", staged, application="app", batch=1)).already
            assert await values_of(logs, "l", 0, 30) == [b"%d-%d" % (partition, number) for partition in range(3) for number in range(10)]

    run(body())


def test_too_few_bookies_for_a_log_is_said_when_it_is_written() -> None:
    async def body() -> None:
        async with fake_cluster("a") as cluster, cluster.client() as client:
            logs = Logs(client)
            await logs.create("l")
            with pytest.raises(NotEnoughBookies):
                await logs.writer("l", owner="w")
            assert await logs.owner("l") is None

    run(body())


def test_a_segment_is_created_on_two_of_three_bookies_and_left_when_the_third_is_back() -> None:
    async def body() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            logs = Logs(client, LogClientSettings(reduced_retry_s=0.05))
            await logs.create("l")
            await client.metadata.bookies.unregister("c")
            async with await logs.writer("l", owner="w") as writer:
                assert await writer.append(b"0") == 0
                (reduced,) = await logs.segments("l")
                metadata = await client.metadata_of(reduced.ledger_id)
                assert (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum) == (2, 2, 2)
                assert reduced.reduced == Quorums(2, 2)
                await client.metadata.bookies.register("c", bookie_service("127.0.0.1", cluster.ports["c"]))
                while writer.is_reduced:
                    await asyncio.sleep(0.01)
                assert await writer.append(b"1") == 1
                metadata = await client.metadata_of(writer.ledger_id)
                assert (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum) == (3, 3, 2)
            assert [segment.reduced for segment in await logs.segments("l")] == [Quorums(2, 2), None]
            assert await values_of(logs, "l", 0, 2) == [b"0", b"1"]

    run(body())


def test_copies_that_a_bookie_missed_are_reported_and_made_up_for() -> None:
    async def body() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            logs = Logs(client)
            await logs.create("l", ROLLING)
            values = [b"%d" % number for number in range(20)]
            async with await logs.writer("l", owner="w") as writer:
                assert await writer.append_many(values[:10]) == range(10)
                await cluster["c"].stop()
                for number in range(10, 20):
                    assert await writer.append(values[number]) == number
                ledger = writer._ledger
                assert isinstance(ledger, LedgerWriter)
                await eventually(lambda: ledger.missing_bookies == ("c",))
            (short,) = await logs.segments("l")
            assert short.reduced == Quorums(3, 2)
            # The dead bookie is registered still: the new ledger would lack its copies, so the old one stays.
            assert (await logs.raise_copies("l")).postponed == 1
            assert await logs.segments("l") == [short]
            await cluster.restart("c")
            while (await logs.raise_copies("l")).postponed:
                await asyncio.sleep(0.02)
            (full,) = await logs.segments("l")
            assert (full.reduced, full.records) == (None, 20)
            for entry_id in range(full.last_entry + 1):
                assert cluster.holders(full.ledger_id, entry_id) == ["a", "b", "c"]
            assert await values_of(logs, "l", 0, 20) == values
            assert [ledger_id async for ledger_id in client.ledger_ids()] == [full.ledger_id]

    run(body())


def test_a_take_over_without_a_bookie_lists_the_segments_that_lack_copies() -> None:
    async def body() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, cluster.client() as other:
            logs, others = Logs(client), Logs(other)
            await logs.create("l")
            first = await logs.writer("l", owner="one")
            assert await first.append_many([b"a", b"b"]) == range(2)
            await cluster["b"].stop()
            async with await others.writer("l", owner="two") as second:
                assert await second.append(b"c") == 2
                # Two bookies acknowledge the record; the loss of the third may be noticed later.
                ledger = second._ledger
                assert isinstance(ledger, LedgerWriter)
                await eventually(lambda: ledger.missing_bookies == ("b",))
                closed, opened = await others.segments("l")
                assert (closed.reduced, opened.reduced) == (Quorums(3, 2), None)
            assert [segment.reduced for segment in await others.segments("l")] == [Quorums(3, 2)] * 2
            await first.abandon()

    run(body())


def test_a_take_over_with_every_bookie_there_marks_nothing() -> None:
    async def body() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, cluster.client() as other:
            logs, others = Logs(client), Logs(other)
            await logs.create("l")
            first = await logs.writer("l", owner="one")
            assert await first.append_many([b"a", b"b"]) == range(2)
            async with await others.writer("l", owner="two") as second:
                assert await second.append(b"c") == 2
            assert [segment.reduced for segment in await others.segments("l")] == [None, None]
            await first.abandon()

    run(body())
