"""A reader that was opened early finds what was acknowledged since, wherever the ledger has gone."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.cluster import fake_cluster, run
from triplicate.errors import ConnectionLost, HandleClosed, NoSuchEntry, RecoveryFailed
from triplicate.metadata import InjectedFault
from triplicate.wire import AddRequest, Status


def test_a_reader_opened_before_the_close_reads_the_last_entry_after_it() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)
            await writer.append_many([b"0", b"1", b"2"])
            await writer.close()
            assert [entry.payload for entry in await reader.read(0, 2)] == [b"0", b"1", b"2"]
            assert await reader.read_last_confirmed() == 2

    run(main())


def test_a_reader_opened_before_the_ensemble_changed_learns_what_the_new_one_confirmed() -> None:
    async def main() -> None:
        async with fake_cluster("abcdef") as cluster, cluster.client() as client:
            writer = await client.create()
            await writer.append(b"0")
            before = writer.metadata.last_segment.ensemble
            reader = await client.open(writer.ledger_id)
            for bookie_id in before:
                cluster[bookie_id].when(AddRequest, Status.READ_ONLY)
            await writer.append_many([b"1", b"2"])
            await writer.append(b"3")
            assert not set(before) & set(writer.metadata.last_segment.ensemble)
            assert await reader.read_last_confirmed() >= 2
            assert [entry.payload for entry in await reader.read(0, 2)] == [b"0", b"1", b"2"]

    run(main())


def test_an_entry_is_not_denied_while_the_metadata_is_away() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)
            await writer.append(b"0")
            with pytest.raises(NoSuchEntry):
                await reader.read(7, 7)
            await writer.close()
            cluster.store.fault = lambda *_: InjectedFault(raise_before=ConnectionLost("the store is away"))
            with pytest.raises(ConnectionLost):
                await reader.read(0, 0)
            cluster.store.fault = None
            assert len(await reader.read(0, 0)) == 1

    run(main())


def test_a_recovery_ends_when_its_client_is_closed_while_it_looks_for_other_bookies(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster:
            async with cluster.client() as client:
                writer = await client.create()
                await writer.append_many([b"0", b"1"])
                writer.abandon()
                asked = asyncio.Event()

                async def silent() -> dict[str, object]:
                    asked.set()
                    await asyncio.Event().wait()
                    raise AssertionError

                monkeypatch.setattr(cluster.metadata.bookies, "writable", silent)
                cluster[writer.metadata.last_segment.ensemble[0]].when(AddRequest, Status.IO_ERROR)
                recovering = asyncio.ensure_future(client.recover(writer.ledger_id))
                await asked.wait()
            with pytest.raises((HandleClosed, RecoveryFailed)):
                await asyncio.wait_for(recovering, 2.0)

    run(main())


def test_an_unforeseen_failure_to_connect_reaches_the_waiters(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster:
            raised_at_the_end = False
            try:
                async with cluster.client() as client:
                    writer = await client.create()

                    async def broken(bookie_id: str) -> None:
                        raise ZeroDivisionError("a fault of ours")

                    monkeypatch.setattr(cluster.metadata.bookies, "resolve", broken)
                    with pytest.raises(HandleClosed):
                        await asyncio.wait_for(writer.append(b"x"), 2.0)
            except ZeroDivisionError:
                raised_at_the_end = True
            assert raised_at_the_end

    run(main())
