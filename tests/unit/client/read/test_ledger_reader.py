"""Reading and tailing without disturbing the writer."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import LedgerWriter, Tail
from triplicate.errors import (
    ArgumentError,
    BookieError,
    ConnectionLost,
    DigestMismatch,
    HandleClosed,
    NoSuchEntry,
    NoSuchLedger,
    ReadFailed,
)
from triplicate.ledger import Entry
from triplicate.metadata import InjectedFault
from triplicate.wire import LAST_ENTRY, ReadLacRequest, ReadRequest, Status


def test_an_open_ledger_shows_what_is_confirmed_and_is_not_fenced() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, await client.create() as writer:
            await writer.append_many([b"0", b"1", b"2"])
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 2)) == 3)
            reader = await client.open(writer.ledger_id)
            assert reader.last_add_confirmed <= 1, "the last entry is known to be confirmed only by the one that follows it"
            await writer.append(b"3")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 3)) == 3)
            assert await reader.read_last_confirmed() == 2
            assert [entry.payload for entry in await reader.read(0, 2)] == [b"0", b"1", b"2"]
            with pytest.raises(NoSuchEntry, match="last confirmed entry is 2"):
                await reader.read(0, 3)
            with pytest.raises(ArgumentError):
                await reader.read(2, 1)
            assert cluster.fenced(writer.ledger_id) == []
            assert not any(request.fence for name in "abc" for request in cluster[name].seen if isinstance(request, ReadRequest))

    run(main())


def test_a_read_goes_on_to_the_next_replica_on_every_kind_of_failure() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            async with await client.create() as writer:
                await writer.append_many([f"{i}".encode() for i in range(30)])
                ensemble = writer.metadata.last_segment.ensemble
            reader = await client.open(writer.ledger_id)
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 29)) == 3)
            for action in (
                Status.IO_ERROR,
                Status.NO_ENTRY,
                Status.NO_LEDGER,
                Status.FENCED,
                Status.TOO_MANY_REQUESTS,
                "damage",
                "close",
                "drop",
            ):
                rule = cluster[ensemble[0]].when(ReadRequest, action)
                assert [entry.payload for entry in await reader.read(0, 29)] == [f"{i}".encode() for i in range(30)]
                cluster[ensemble[0]].rules.remove(rule)

    run(main())


def test_an_entry_that_no_replica_delivers_is_an_error_that_says_what_each_answered() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            async with await client.create() as writer:
                await writer.append(b"x")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 0)) == 3)
            reader = await client.open(writer.ledger_id)
            a, b, c = writer.metadata.last_segment.ensemble
            cluster[a].when(ReadRequest, "damage")
            cluster[b].when(ReadRequest, Status.IO_ERROR)
            cluster[c].when(ReadRequest, Status.NO_ENTRY)
            with pytest.raises(ReadFailed) as raised:
                await reader.read(0, 0)
            text = str(raised.value)
            assert f"{a}: " in text
            assert "digest" in text
            assert "IO_ERROR" in text
            assert f"{c}: has no such entry" in text

    run(main())


def test_metadata_is_read_again_when_all_replicas_fail() -> None:
    async def main() -> None:
        async with fake_cluster("abcdef") as cluster, cluster.client() as client:
            async with await client.create() as writer:
                await writer.append(b"x")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 0)) == 3)
            reader = await client.open(writer.ledger_id)
            before = writer.metadata.last_segment.ensemble
            after = tuple(name for name in "abcdef" if name not in before)
            for old, new in zip(before, after, strict=True):
                cluster[new].ledgers = cluster[old].ledgers
                await cluster[old].stop()
            found = await cluster.metadata.ledgers.get(writer.ledger_id)
            moved = replace(found.value, segments=(replace(found.value.last_segment, ensemble=after),))
            await cluster.metadata.ledgers.update(writer.ledger_id, moved, found.version)
            assert (await reader.read(0, 0))[0].payload == b"x"

    run(main())


def test_too_few_answers_do_not_prove_a_last_add_confirmed() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"x")
            cluster["a"].when(ReadRequest, Status.IO_ERROR)
            cluster["a"].when(ReadLacRequest, Status.IO_ERROR)
            await cluster["b"].stop()
            with pytest.raises(ReadFailed, match="too many bookies are unknown"):
                await client.open(writer.ledger_id)

    run(main())


def test_one_replica_can_be_asked_by_name() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            async with await client.create() as writer:
                await writer.append(b"x")
            await eventually(lambda: len(cluster.holders(writer.ledger_id, 0)) == 3)
            reader = await client.open(writer.ledger_id)
            first, second, third = writer.metadata.last_segment.ensemble
            (outsider,) = [name for name in "abcd" if name not in writer.metadata.last_segment.ensemble]
            found = await reader.read_from(first, 0)
            assert found is not None
            assert found.payload == b"x"
            assert await reader.read_from(first, 1) is None
            assert await reader.read_from(outsider, 0) is None
            cluster[second].when(ReadRequest, "damage")
            with pytest.raises(DigestMismatch):
                await reader.read_from(second, 0)
            cluster[third].when(ReadRequest, "drop")
            with pytest.raises(BookieError, match="did not answer"):
                await reader.read_from(third, 0)

    run(main())


def test_an_unknown_ledger_is_named() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            with pytest.raises(NoSuchLedger, match="4711"):
                await client.open(4711)

    run(main())


async def follow(tail: Tail, into: list[Entry]) -> None:
    while entries := await tail.next_entries():
        into += entries


def test_a_tail_sees_every_entry_in_order_and_ends_at_the_close() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await client.create()
            reader = await other.open(writer.ledger_id)
            seen: list[Entry] = []
            following = asyncio.ensure_future(follow(reader.tail(), seen))
            for i in range(40):
                await writer.append(f"{i}".encode())
                if i % 7 == 0:
                    await asyncio.sleep(0.004)
            await eventually(lambda: len(seen) >= 39)
            await asyncio.sleep(0.02)
            assert len(seen) == 39, "the last becomes readable with the append that follows it, or with the close"
            await writer.close()
            await following
            assert [entry.payload for entry in seen] == [f"{i}".encode() for i in range(40)]
            assert reader.is_closed

    run(main())


def test_a_tail_follows_across_changes_of_the_ensemble() -> None:
    async def main() -> None:
        async with fake_cluster("abcde") as cluster, cluster.client() as client, cluster.client() as other:
            writer = await client.create()
            reader = await other.open(writer.ledger_id)
            seen: list[Entry] = []
            following = asyncio.ensure_future(follow(reader.tail(), seen))
            for i in range(30):
                await writer.append(f"{i}".encode())
                if i in (9, 19):
                    await cluster[writer.metadata.last_segment.ensemble[0]].stop()
                if i in (10, 20):
                    await eventually(lambda changes=i // 10: writer.ensemble_changes == changes)  # type: ignore[misc]
            await writer.close()
            await following
            assert [entry.entry_id for entry in seen] == list(range(30))
            assert len(reader.metadata.segments) >= 3

    run(main())


def test_a_tail_may_start_anywhere_and_be_closed_while_it_waits() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            for _ in range(10):
                await writer.append(b"x")
            async with await client.open(writer.ledger_id) as reader:
                async with reader.tail(5) as tail:
                    assert [(await anext(tail)).entry_id for _ in range(4)] == [5, 6, 7, 8]
                    waiting = asyncio.ensure_future(follow(tail, []))
                    await asyncio.sleep(0.01)
                    with pytest.raises(HandleClosed, match="two tasks"):
                        await anext(tail)
                await waiting
                far = reader.tail(100)
                await far.aclose()
                await far.aclose()

    run(main())


def test_cancelling_an_iteration_loses_no_entry() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)
            tail = reader.tail()
            seen: list[int] = []
            for i in range(60):
                task = asyncio.ensure_future(anext(tail))
                await writer.append(f"{i}".encode())
                for _ in range(i % 5):
                    await asyncio.sleep(0.0005)
                task.cancel()
                (result,) = await asyncio.gather(task, return_exceptions=True)
                if isinstance(result, Entry):
                    seen.append(result.entry_id)
            await writer.close()
            seen += [entry.entry_id async for entry in tail]
            assert seen == list(range(60))

    run(main())


def test_a_tail_goes_on_while_the_metadata_store_is_away() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            for _ in range(5):
                await writer.append(b"x")
            reader = await client.open(writer.ledger_id)
            tail = reader.tail()
            assert (await anext(tail)).entry_id == 0
            cluster.store.fault = lambda session, name, path: InjectedFault(raise_before=ConnectionLost("away"))
            for _ in range(5):
                await writer.append(b"y")
            assert [(await anext(tail)).entry_id for _ in range(8)] == list(range(1, 9))
            cluster.store.fault = None
            await writer.close()
            assert [entry.entry_id async for entry in tail] == [9]

    run(main())


def test_a_tail_of_a_deleted_ledger_says_so() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)
            tail = reader.tail()
            waiting = asyncio.ensure_future(anext(tail))
            await asyncio.sleep(0.01)
            await client.delete(writer.ledger_id)
            with pytest.raises(NoSuchLedger):
                await waiting

    run(main())


def test_a_range_larger_than_the_window_is_read_in_order() -> None:
    async def main() -> None:
        settings = replace(QUICK, read_window_entries=7, read_window_bytes=4096)
        async with fake_cluster("abcde") as cluster, cluster.client(settings) as client:
            writer: LedgerWriter
            async with await client.create(ensemble_size=5, write_quorum=3, ack_quorum=2) as writer:
                await writer.append_many([f"{i}".encode() * (i % 900) for i in range(500)])
            reader = await client.open(writer.ledger_id)
            cluster[writer.metadata.last_segment.ensemble[2]].when(ReadRequest, Status.NO_ENTRY)
            entries = await reader.read(0, 499)
            assert [entry.payload for entry in entries] == [f"{i}".encode() * (i % 900) for i in range(500)]
            reads = [request for name in "abcde" for request in cluster[name].seen if isinstance(request, ReadRequest)]
            assert all(request.entry_id != LAST_ENTRY for request in reads), "a closed ledger is not asked how far it goes"

    run(main())
