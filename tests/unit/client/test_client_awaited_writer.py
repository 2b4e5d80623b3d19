"""A ledger made for a later writer gets exactly one."""

from __future__ import annotations

import pytest

from tests.unit.client.cluster import fake_cluster, run
from triplicate.client import WRITER_AWAITED
from triplicate.errors import ArgumentError, LedgerClosed, NoSuchLedger, Unauthorized


def test_an_awaited_writer_takes_the_ledger_up_and_closes_it() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster:
            async with cluster.client() as creator:
                ledger_id = (await creator.create(custom=WRITER_AWAITED, password=b"p")).ledger_id
            async with cluster.client() as client, await client.take_up(ledger_id, password=b"p") as writer:
                assert await writer.append(b"x") == 0
            metadata = await cluster.metadata_of(ledger_id)
            assert metadata.is_closed
            assert metadata.last_entry_id == 0

    run(body())


def test_only_one_of_several_becomes_the_writer() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            ledger_id = (await client.create(custom=WRITER_AWAITED)).ledger_id
            await client.take_up(ledger_id)
            for late in (client, other):
                with pytest.raises(ArgumentError, match=f"ledger {ledger_id} has a writer already"):
                    await late.take_up(ledger_id)

    run(body())


def test_a_ledger_with_a_writer_or_an_end_is_refused() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            ordinary = await client.create()
            with pytest.raises(ArgumentError, match="has a writer already"):
                await client.take_up(ordinary.ledger_id)
            awaited = await client.create(custom=WRITER_AWAITED, password=b"p")
            with pytest.raises(Unauthorized):
                await client.take_up(awaited.ledger_id, password=b"q")
            await client.recover(awaited.ledger_id, password=b"p")
            with pytest.raises(LedgerClosed, match="is closed"):
                await client.take_up(awaited.ledger_id, password=b"p")
            with pytest.raises(NoSuchLedger):
                await client.take_up(12345)

    run(body())
