"""Tails and waits by long poll: what an empty answer says, and what happens when the bookie that keeps the poll is slow, old or gone."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import LedgerReader, LedgerWriter, Tail
from triplicate.config import ClientSettings
from triplicate.errors import ArgumentError, NoSuchLedger, ReadFailed
from triplicate.ledger import Entry, EntryCodec
from triplicate.wire import ReadRequest, Status

Result = TypeVar("Result")

WIRES = [QUICK, replace(QUICK, wire="v3")]
PATIENT = replace(QUICK, read_timeout_s=20.0, long_poll_wait_s=10.0)
"""A poll that is not answered stays for the whole test."""
RARE = replace(PATIENT, tail_wait_minimum_s=60.0, tail_wait_maximum_s=60.0)
"""Nobody is asked beside the poll."""


def soon(coroutine: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    return asyncio.ensure_future(coroutine)


@asynccontextmanager
async def one_entry(settings: ClientSettings, names: str = "abc") -> AsyncIterator[tuple[FakeCluster, LedgerWriter, LedgerReader]]:
    """A ledger with one entry, which no reader knows to be confirmed yet."""
    async with fake_cluster(names) as cluster, cluster.client(settings) as client:
        writer = await client.create()
        await writer.append(b"0")
        # A bookie that knows nothing of the ledger yet would answer its poll at once.
        await cluster.settled(writer.ledger_id, 0, len(writer.metadata.last_segment.ensemble))
        yield cluster, writer, await client.open(writer.ledger_id)


def polls(cluster: FakeCluster) -> list[ReadRequest]:
    seen = [request for bookie in cluster.bookies.values() for request in bookie.seen]
    return [request for request in seen if isinstance(request, ReadRequest) and request.previous_lac is not None]


def parked(cluster: FakeCluster) -> list[str]:
    """The bookies that hold polls, one name per poll."""
    return [name for name, bookie in cluster.bookies.items() for _ in bookie.parked]


@pytest.mark.parametrize("settings", [RARE, replace(RARE, wire="v3")])
def test_the_poll_brings_the_next_entry(settings: ClientSettings) -> None:
    async def main() -> None:
        async with one_entry(settings) as (cluster, writer, reader):
            async with reader.tail() as tail:
                for number in range(1, 6):
                    waiting = soon(anext(tail))
                    await eventually(lambda: len(parked(cluster)) == 1)
                    await writer.append(b"%d" % number)
                    assert (await waiting).payload == b"%d" % (number - 1)
            assert len(polls(cluster)) == 5
            assert len([request for bookie in cluster.bookies.values() for request in bookie.seen if request in polls(cluster)]) == 5

    run(main())


def test_an_explicit_record_wakes_the_tail() -> None:
    async def main() -> None:
        async with one_entry(replace(RARE, explicit_lac_interval_s=0.03)) as (_cluster, writer, reader):
            async with reader.tail() as tail:
                assert (await anext(tail)).payload == b"0"
            assert reader.last_add_confirmed == 0 == writer.last_add_confirmed

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_an_answer_without_an_entry_is_not_the_end(settings: ClientSettings) -> None:
    async def main() -> None:
        async with one_entry(replace(settings, long_poll_wait_s=0.02)) as (cluster, writer, reader), reader.tail() as tail:
            waiting = soon(anext(tail))
            await eventually(lambda: len(polls(cluster)) >= 4)
            assert not waiting.done()
            await writer.append(b"1")
            assert (await waiting).payload == b"0"

    run(main())


def test_an_idle_tail_asks_for_almost_nothing() -> None:
    async def main() -> None:
        async with one_entry(PATIENT) as (cluster, _writer, reader):
            before = sum(len(bookie.seen) for bookie in cluster.bookies.values())
            async with reader.tail() as tail:
                began, waiting = time.monotonic(), soon(anext(tail))
                await asyncio.sleep(0.8)
                asked = sum(len(bookie.seen) for bookie in cluster.bookies.values()) - before
                # Each pause is twice the one before; a busy machine sleeps longer than it was asked to.
                questions = math.log2((time.monotonic() - began) / 0.05 + 1)
                assert asked <= 2 + questions, "one poll, and questions after 50, 150, 350, 750 ms and so on"
                assert len(parked(cluster)) == 1
                waiting.cancel()

    run(main())


def test_a_bookie_that_is_behind_does_not_keep_the_news() -> None:
    async def main() -> None:
        async with one_entry(PATIENT) as (cluster, writer, reader), reader.tail() as tail:
            waiting = soon(anext(tail))
            await eventually(lambda: len(parked(cluster)) == 1)
            (slow,) = parked(cluster)
            cluster[slow].when(object, "hold")
            await writer.append(b"1")
            assert (await asyncio.wait_for(waiting, 5)).payload == b"0"
            waiting = soon(anext(tail))
            await eventually(lambda: len(parked(cluster)) == 2)
            assert sum(name == slow for name in parked(cluster)) == 1, "who owes an answer is not asked again"
            await writer.append(b"2")
            assert (await asyncio.wait_for(waiting, 5)).payload == b"1"

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_the_death_of_the_bookie_with_the_poll_is_survived(settings: ClientSettings) -> None:
    """A segment that begins behind an entry confirms it too, so an entry may come before the next append."""

    async def main() -> None:
        async with one_entry(settings, "abcd") as (cluster, writer, reader), reader.tail() as tail:
            seen: list[bytes] = []
            following = soon(_collect(tail, seen))
            for number in range(1, 4):
                await eventually(lambda: len(parked(cluster)) == 1)
                (name,) = parked(cluster)
                await cluster[name].stop()
                await writer.append(b"%d" % number)
                await eventually(lambda: len(seen) >= number)  # noqa: B023
                await cluster.restart(name)
            await writer.append(b"4")
            await eventually(lambda: len(seen) >= 4)
            assert seen[:4] == [b"0", b"1", b"2", b"3"]
            following.cancel()

    run(main())


async def _collect(tail: Tail, seen: list[bytes]) -> None:
    while entries := await tail.next_entries():
        seen += [entry.payload for entry in entries]


def test_a_new_ensemble_gets_the_poll() -> None:
    async def main() -> None:
        async with one_entry(RARE, "abcdef") as (cluster, writer, reader), reader.tail() as tail:
            waiting = soon(anext(tail))
            await eventually(lambda: len(parked(cluster)) == 1)
            (name,) = parked(cluster)
            cluster[name].when(object, "hold")
            await writer.append(b"1")
            await eventually(lambda: writer.ensemble_changes == 1)
            assert (await asyncio.wait_for(waiting, 2)).payload == b"0"
            assert (await anext(tail)).payload == b"1", "a new segment begins behind what is confirmed"
            waiting = soon(anext(tail))
            await eventually(lambda: any(other != name for other in parked(cluster)))
            assert all(other in writer.metadata.last_segment.ensemble for other in parked(cluster) if other != name)
            await writer.append(b"2")
            await writer.append(b"3")
            assert (await waiting).payload == b"2"

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_the_close_ends_the_tail_at_once(settings: ClientSettings) -> None:
    async def main() -> None:
        async with one_entry(replace(settings, read_timeout_s=20.0)) as (cluster, writer, reader), reader.tail() as tail:
            rest = soon(_all(tail))
            await eventually(lambda: len(parked(cluster)) == 1)
            await writer.close()
            assert [entry.payload for entry in await asyncio.wait_for(rest, 5)] == [b"0"]

    run(main())


async def _all(tail: Any) -> list[Entry]:
    return [entry async for entry in tail]


def test_deletion_ends_the_tail() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(RARE) as client:
            writer = await client.create()
            await writer.append(b"0")
            reader = await client.open(writer.ledger_id)
            async with reader.tail() as tail:
                waiting = soon(anext(tail))
                await eventually(lambda: len(parked(cluster)) == 1)
                await client.delete(writer.ledger_id)
                with pytest.raises(NoSuchLedger):
                    await waiting

    run(main())


@pytest.mark.parametrize("case", ["off", "no version 3", "refused", "too many", "short of memory", "never answered"])
def test_a_tail_polls_where_long_polls_cannot_be_had(case: str) -> None:
    async def main() -> None:
        settings = replace(QUICK, long_poll=False) if case == "off" else QUICK
        async with fake_cluster() as cluster, cluster.client(settings) as client:
            statuses = {"refused": Status.BAD_REQUEST, "too many": Status.TOO_MANY_REQUESTS, "short of memory": Status.IO_ERROR}
            writer = await client.create()
            await writer.append(b"0")
            reader = await client.open(writer.ledger_id)
            for bookie in cluster.bookies.values():
                bookie.knows_v3 = case != "no version 3"
                if case in statuses:
                    bookie.rules.append(_polls_only(statuses[case]))
                if case == "never answered":
                    bookie.rules.append(_polls_only("drop"))
            async with reader.tail() as tail:
                for number in range(1, 20):
                    await writer.append(b"%d" % number)
                    assert (await asyncio.wait_for(anext(tail), 3)).payload == b"%d" % (number - 1)
                if case == "off":
                    assert not polls(cluster)

    run(main())


def _polls_only(action: Status | str) -> Any:
    return lambda request: action if isinstance(request, ReadRequest) and request.previous_lac is not None else None


def test_a_ledger_without_entries_is_followed() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)
            async with reader.tail() as tail:
                waiting = soon(anext(tail))
                await asyncio.sleep(0.3)
                assert len(polls(cluster)) <= 3, "a bookie that knows nothing is not asked to wait again and again"
                await writer.append(b"0")
                await writer.append(b"1")
                assert (await asyncio.wait_for(waiting, 3)).payload == b"0"
                waiting = soon(anext(tail))
                await eventually(lambda: len(parked(cluster)) == 1)
                await writer.append(b"2")
                assert (await waiting).payload == b"1"

    run(main())


def test_a_damaged_entry_beside_the_news_is_read_from_another_replica() -> None:
    async def main() -> None:
        async with one_entry(RARE) as (cluster, writer, reader), reader.tail() as tail:
            waiting = soon(anext(tail))
            await eventually(lambda: len(parked(cluster)) == 1)
            (name,) = parked(cluster)
            entries = cluster[name].ledgers[writer.ledger_id].entries
            entries[0] = entries[0][:-1] + b"?"
            await writer.append(b"1")
            assert (await waiting).payload == b"0"

    run(main())


def test_a_striped_ledger_is_followed_entry_by_entry() -> None:
    async def main() -> None:
        async with fake_cluster("abcde") as cluster, cluster.client(RARE) as client:
            writer = await client.create(ensemble_size=5, write_quorum=2, ack_quorum=2)
            await writer.append(b"0")
            reader = await client.open(writer.ledger_id)
            async with reader.tail() as tail:
                for number in range(1, 12):
                    waiting = soon(anext(tail))
                    await eventually(lambda: len(parked(cluster)) == 1)
                    await writer.append(b"%d" % number)
                    assert (await asyncio.wait_for(waiting, 5)).payload == b"%d" % (number - 1)

    run(main())


def test_cancelling_an_iteration_loses_no_entry() -> None:
    async def main() -> None:
        async with one_entry(PATIENT) as (_cluster, writer, reader):
            seen: list[bytes] = []
            async with reader.tail() as tail:
                for number in range(1, 30):
                    waiting = soon(anext(tail))
                    await asyncio.sleep(0)
                    await writer.append(b"%d" % number)
                    for _ in range(number % 7):
                        await asyncio.sleep(0)
                    waiting.cancel()
                    try:
                        seen.append((await waiting).payload)
                    except asyncio.CancelledError:
                        continue
                while len(seen) < 29:
                    seen.append((await anext(tail)).payload)
            assert seen == [b"%d" % number for number in range(29)]

    run(main())


# Waiting for one entry.


@pytest.mark.parametrize("settings", WIRES)
def test_one_can_wait_for_an_entry(settings: ClientSettings) -> None:
    async def main() -> None:
        async with one_entry(settings) as (_cluster, writer, reader):
            waiting = soon(reader.wait_for_entry(2, 5.0))
            for number in range(1, 4):
                await asyncio.sleep(0.02)
                await writer.append(b"%d" % number)
            entry = await waiting
            assert entry is not None
            assert (entry.entry_id, entry.payload) == (2, b"2")
            known = await reader.wait_for_entry(0, 0.0)
            assert known is not None
            assert known.payload == b"0"
            with pytest.raises(ArgumentError):
                await reader.wait_for_entry(-1, 1.0)

    run(main())


def test_nothing_new_in_time_is_none_and_what_was_learnt_stays() -> None:
    async def main() -> None:
        async with one_entry(QUICK) as (_cluster, writer, reader):
            assert await reader.wait_for_entry(0, 0.1) is None
            waiting = soon(reader.wait_for_entry(5, 0.3))
            await writer.append(b"1")
            assert await waiting is None
            assert reader.last_add_confirmed == 0
            await writer.close()
            assert await reader.wait_for_entry(2, 5.0) is None, "it will never come"
            assert reader.is_closed

    run(main())


def test_that_nobody_answers_is_not_that_there_is_nothing_new() -> None:
    async def main() -> None:
        async with one_entry(replace(QUICK, read_timeout_s=0.2)) as (cluster, _writer, reader):
            for bookie in cluster.bookies.values():
                bookie.when(object, "drop")
            with pytest.raises(ReadFailed, match="entry 0"):
                await reader.wait_for_entry(0, 2.0)

    run(main())


def test_a_read_brings_explicit_records_too() -> None:
    """Over version 3 an entry comes with the last-add-confirmed that the bookie knows."""

    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, wire="v3")) as client:
            writer = await client.create()
            for _ in range(3):
                await writer.append(b"x")
            reader = await client.open(writer.ledger_id)
            assert reader.last_add_confirmed == 1
            await cluster.settled(writer.ledger_id, 2)
            for bookie in cluster.bookies.values():
                codec = EntryCodec(writer.ledger_id, writer.metadata.digest_type, b"")
                bookie.ledgers[writer.ledger_id].explicit_lac = codec.encode_lac(2)
            await reader.read(0, 1)
            assert reader.last_add_confirmed == 2

    run(main())
