"""Garbage collection deletes the entries of deleted ledgers, and nothing while the metadata cannot be trusted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import LEDGERS
from tests.unit.metadata.lagging import LaggingTree
from triplicate.errors import ConnectionLost, MetadataError, WrongCluster
from triplicate.metadata import ClusterMetadata
from triplicate.wire import Status


def test_deleted_ledgers_are_collected_and_their_files_go() -> None:
    async def body(rig: Rig) -> None:
        kept, gone = await rig.create_ledger(1), await rig.create_ledger(2)
        client = await rig.connect()
        for entry_id in range(20):
            assert await client.add(kept, entry_id, b"x" * 3000) is Status.OK
            assert await client.add(gone, entry_id, b"x" * 3000) is Status.OK
        await asyncio.sleep(1)
        assert await rig.bookie.collect_garbage() == 0
        await rig.delete_ledger(2)
        assert await rig.bookie.collect_garbage() == 1
        assert (await client.read(2, 0)).status is Status.NO_LEDGER
        assert (await client.read(1, 19)).status is Status.OK
        await rig.delete_ledger(1)
        await rig.bookie.collect_garbage()
        for _ in range(3):
            await asyncio.sleep(1)
            await rig.bookie.collect_garbage()
        logs = [name for name in rig.files(LEDGERS) if name.endswith(".entries")]
        assert len(logs) <= 1

    run_rig(body)


def test_a_ledger_deleted_while_fenced_does_not_come_back() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(2)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK
        await client.fence(ledger)
        await rig.delete_ledger(2)
        assert await rig.bookie.collect_garbage() == 1
        assert await client.add(ledger, 1) is Status.FENCED
        assert (await client.read(2, 0)).status is Status.NO_LEDGER

    run_rig(body)


def test_metadata_out_of_reach_deletes_nothing() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(2)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK

        class Silent:
            def ids(self) -> Any:
                return self

            def __aiter__(self) -> Any:
                return self

            async def __anext__(self) -> int:
                raise StopAsyncIteration

            async def refresh(self) -> None:
                return None

            async def exists(self, ledger_id: int) -> bool:
                raise ConnectionLost("gone")

        garbage = rig.bookie.parts.garbage
        assert garbage is not None
        metadata = type("Metadata", (), {"ledgers": Silent()})()
        garbage.metadata = metadata
        with pytest.raises(MetadataError):
            await garbage.collect()
        assert (await client.read(2, 0)).status is Status.OK

    run_rig(body)


def test_a_metadata_server_that_is_behind_deletes_nothing() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(2)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK
        garbage = rig.bookie.parts.garbage
        assert garbage is not None
        host = rig.node.host
        assert host is not None
        tree = LaggingTree(rig.cluster.store)
        garbage.metadata = await ClusterMetadata.open(tree, host.port)
        tree.behind = {"/ledgers/00/0000/L0002": None}
        assert [each async for each in garbage.metadata.ledgers.ids()] == []
        assert await garbage.collect() == 0
        assert (await client.read(2, 0)).status is Status.OK
        await rig.delete_ledger(2)
        assert await garbage.collect() == 1

    run_rig(body)


def test_metadata_that_became_another_clusters_deletes_nothing() -> None:
    async def body(rig: Rig) -> None:

        ledger = await rig.create_ledger(2)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK
        await rig.delete_ledger(2)
        garbage = rig.bookie.parts.garbage
        assert garbage is not None
        tree = garbage.metadata.tree
        ours, _ = await tree.get("/ledgers/INSTANCEID")
        await tree.set("/ledgers/INSTANCEID", b"another")
        with pytest.raises(WrongCluster, match="is another now"):
            await garbage.collect()
        assert (await client.read(2, 0)).status is Status.OK
        await tree.set("/ledgers/INSTANCEID", ours)
        assert await garbage.collect() == 1

    run_rig(body)
