"""Requests for single copies at single bookies."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.cluster import fake_cluster, run
from triplicate.config import ClientSettings
from triplicate.errors import BookieError, DigestMismatch, HandleClosed, Unauthorized
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import AddRequest, ListEntriesRequest, ReadRequest, Status

QUICK_V3 = ClientSettings(wire="v3", add_timeout_s=0.4, read_timeout_s=0.4, connect_timeout_s=1.0)
QUICK_V2 = ClientSettings(add_timeout_s=0.4, read_timeout_s=0.4, connect_timeout_s=1.0)


def test_a_copy_is_read_written_and_listed() -> None:
    async def main(settings: ClientSettings) -> None:
        async with fake_cluster("abc") as cluster, cluster.client(settings) as client, client.bookie_copies() as copies:
            writer = await client.create(password=b"p")
            for number in range(5):
                await writer.append(b"%d" % number)
            await cluster.settled(writer.ledger_id, 4)
            codec = EntryCodec(writer.ledger_id, DigestType.CRC32C, b"p")
            await cluster.add("d")
            assert await copies.last_entry_id(codec, "a") == 4
            assert await copies.last_entry_id(codec, "d") is None
            assert cluster.fenced(writer.ledger_id) == []
            stream = copies.open_stream(codec, "d")
            bodies = {entry_id: await copies.read(codec, entry_id, "a") for entry_id in range(5)}
            await asyncio.gather(*(stream.add(entry_id, body) for entry_id, body in bodies.items() if body is not None))
            stream.close()
            assert cluster["d"].ledgers[writer.ledger_id].entries == cluster["a"].ledgers[writer.ledger_id].entries
            assert all(request.recovery for request in cluster["d"].seen if isinstance(request, AddRequest))
            assert list((await copies.listed(writer.ledger_id, "d")).runs()) == [range(5)]
            assert (await copies.listed(writer.ledger_id + 1, "d")).count == 0
            assert await copies.read(codec, 9, "a") is None
            writer.abandon()

    run(main(QUICK_V2))
    run(main(QUICK_V3))


def test_a_ledger_is_fenced_on_one_bookie() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, client.bookie_copies() as copies:
            writer = await client.create(password=b"p")
            await writer.append(b"0")
            await cluster.settled(writer.ledger_id, 0)
            codec = EntryCodec(writer.ledger_id, DigestType.CRC32C, b"p")
            await copies.fence(codec, 0, "a")
            await copies.fence(codec, 9, "b")
            assert cluster.fenced(writer.ledger_id) == ["a", "b"]
            cluster["c"].when(ReadRequest, Status.IO_ERROR)
            with pytest.raises(BookieError, match="answered IO_ERROR to the fencing read"):
                await copies.fence(codec, 0, "c")
            with pytest.raises(Unauthorized):
                await copies.fence(EntryCodec(writer.ledger_id, DigestType.CRC32C, b"q"), 0, "a")
            writer.abandon()

    run(main())


def test_a_damaged_copy_and_a_refusal_are_errors() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, client.bookie_copies() as copies:
            writer = await client.create(password=b"p")
            await writer.append(b"0")
            await cluster.settled(writer.ledger_id, 0)
            codec = EntryCodec(writer.ledger_id, DigestType.CRC32C, b"p")
            cluster["a"].when(ReadRequest, "damage")
            cluster["b"].when(ReadRequest, Status.IO_ERROR)
            cluster["b"].when(ListEntriesRequest, Status.UNKNOWN_LEDGER_STATE)
            with pytest.raises(DigestMismatch):
                await copies.read(codec, 0, "a")
            with pytest.raises(BookieError, match="answered IO_ERROR to the read of entry 0"):
                await copies.read(codec, 0, "b")
            with pytest.raises(BookieError, match="UNKNOWN_LEDGER_STATE"):
                await copies.listed(writer.ledger_id, "b")
            writer.abandon()

    run(main())


def test_copies_that_are_read_together_are_those_that_are_there_and_right() -> None:
    async def main(settings: ClientSettings) -> None:
        async with fake_cluster("abc") as cluster, cluster.client(settings) as client, client.bookie_copies() as copies:
            writer = await client.create(password=b"p")
            for number in range(5):
                await writer.append(b"%d" % number)
            await cluster.settled(writer.ledger_id, 4)
            codec = EntryCodec(writer.ledger_id, DigestType.CRC32C, b"p")
            entries = cluster["a"].ledgers[writer.ledger_id].entries
            right = dict(entries)
            entries[3] = entries[3][:-1] + bytes([entries[3][-1] ^ 1])
            assert await copies.read_each(codec, [4, 1, 3, 9], "a") == {4: right[4], 1: right[1]}
            cluster["b"].when(ReadRequest, Status.IO_ERROR)
            with pytest.raises(BookieError, match="answered IO_ERROR to the read of entry 2"):
                await copies.read_each(codec, [2, 1], "b")
            await cluster["c"].stop()
            with pytest.raises(BookieError, match="c"):
                await copies.read_each(codec, [2, 1], "c")
            writer.abandon()

    run(main(QUICK_V2))
    run(main(QUICK_V3))


def test_a_refused_or_unanswered_add_ends_the_stream() -> None:
    async def main() -> None:
        async with fake_cluster("a") as cluster, cluster.client(QUICK_V2) as client:
            codec = EntryCodec(7, DigestType.CRC32C, b"p")
            async with client.bookie_copies() as copies:
                cluster["a"].when(AddRequest, Status.READ_ONLY, entry_id=1)
                cluster["a"].when(AddRequest, "drop")
                stream = copies.open_stream(codec, "a")
                ended = await asyncio.gather(
                    stream.add(0, codec.encode(0, -1, 1, b"x")), stream.add(1, codec.encode(1, -1, 2, b"y")), return_exceptions=True
                )
                assert [type(error).__name__ for error in ended] == ["BookieReadOnly", "BookieReadOnly"]
                with pytest.raises(BookieError):
                    await stream.add(2, codec.encode(2, -1, 3, b"z"))
                stream.close()
                silent = copies.open_stream(codec, "a")
                with pytest.raises(BookieError, match="did not answer the adds"):
                    await silent.add(0, codec.encode(0, -1, 1, b"x"))
                silent.close()
            with pytest.raises(HandleClosed):
                await copies.listed(7, "a")

    run(main())
