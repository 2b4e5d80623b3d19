"""A bookie is read-only while an operator requests it, also after a restart, and writable again afterwards."""

from __future__ import annotations

import asyncio
import tempfile

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import real_cluster
from triplicate.bookie import Bookie
from triplicate.config import BookieSettings
from triplicate.errors import WrongCluster
from triplicate.metadata import ClusterMetadata
from triplicate.wire import Status


async def lists(metadata: ClusterMetadata) -> tuple[list[str], list[str]]:
    return list(await metadata.bookies.writable()), list(await metadata.bookies.readonly())


def test_a_requested_bookie_refuses_adds_serves_reads_and_resumes_when_the_request_is_withdrawn() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        client = await rig.connect()
        assert await client.add(codec, 0, b"x") is Status.OK
        metadata = rig.bookie.parts.metadata
        await metadata.read_only_requests.request("bookie-1")
        await asyncio.sleep(8)
        assert rig.bookie.read_only
        assert await lists(metadata) == ([], ["bookie-1"])
        assert await client.add(codec, 1, b"x") is Status.READ_ONLY
        assert await client.add(codec, 1, b"x", recovery=True, high_priority=True) is Status.OK
        assert (await client.read(5, 0)).status is Status.OK
        await metadata.read_only_requests.withdraw("bookie-1")
        await asyncio.sleep(8)
        assert await lists(metadata) == (["bookie-1"], [])
        assert await client.add(codec, 2, b"x") is Status.OK

    run_rig(body)


def test_a_requested_bookie_is_read_only_from_its_start() -> None:
    async def body(rig: Rig) -> None:
        await rig.bookie.parts.metadata.read_only_requests.request("bookie-1")
        await rig.restart()
        assert rig.bookie.read_only
        assert await lists(rig.bookie.parts.metadata) == ([], ["bookie-1"])

    run_rig(body)


def test_a_new_bookie_withdraws_the_request_of_a_decommissioned_one() -> None:
    """The request of a bookie that ran to the end of its decommission stays in the metadata, without a cookie."""

    async def body() -> None:
        async with real_cluster("") as cluster:
            await cluster.metadata.read_only_requests.request("a", leaving=True)
            with tempfile.TemporaryDirectory() as folder:
                settings = BookieSettings(
                    bookie_id="a",
                    journal_directories=(f"{folder}/journal",),
                    ledger_directories=(f"{folder}/ledgers",),
                    host="127.0.0.1",
                    port=0,
                )
                bookie = await Bookie.start(cluster.host, settings, cluster.metadata)
                try:
                    assert await lists(cluster.metadata) == (["a"], [])
                    assert await cluster.metadata.read_only_requests.bookie_ids() == []
                    await cluster.metadata.cookies.delete("a")
                finally:
                    await bookie.stop()
                with pytest.raises(WrongCluster, match="if the bookie was decommissioned, its data is no longer needed"):
                    await Bookie.start(cluster.host, settings, cluster.metadata)

    run(body())
