"""The index of a stopped bookie is rebuilt by a command."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import LEDGERS, add_all, check_all, codec
from tests.unit.bookie.rebuild_rig import filled, rebuild, rebuilt_up_to
from triplicate.bookie import RebuildReport, rebuild_index
from triplicate.errors import ConfigError, CorruptionError, EnvironmentFault, WrongCluster
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.wire import Status


async def check(rig: Rig) -> None:
    await rig.node.start()
    assert not rig.bookie.storage.stored.rebuilt
    client = await rig.connect()
    await check_all(client, 5, 12)
    assert await client.add(codec(7), 0) is Status.FENCED
    assert await client.add(codec(8), 0) is Status.FENCED


def test_an_index_is_made_anew_from_logs_and_journals() -> None:
    async def body(rig: Rig) -> None:
        await filled(rig)
        report = await rebuild(rig)
        assert report == RebuildReport(logs=2, ledgers=3, runs=2, replayed_groups=report.replayed_groups)
        assert report.replayed_groups >= 4
        assert [name for name in rig.files(LEDGERS) if name.startswith("index")] == ["index.db", "index.db-commits"]
        assert (await rebuild(rig)).replayed_groups == 0
        await check(rig)

    run_rig(body, flush_interval_s=3600.0)


def test_a_bookie_that_runs_is_refused() -> None:
    async def body(rig: Rig) -> None:
        await add_all(await rig.connect(), 5, 0, 3)
        settings = rig.bookie.settings
        metadata = await ClusterMetadata.open(MemoryTree(rig.cluster.store), rig.client_host.port)
        port = dataclasses.replace(rig.client_host.port, disk=rig.node.host.port.disk)  # type: ignore[union-attr]
        with pytest.raises(EnvironmentFault, match="another bookie runs on this directory"):
            await rebuild_index(port, settings, metadata)
        await metadata.aclose()
        await check_all(await rig.connect(), 5, 3)

    run_rig(body)


def test_an_unknown_bookie_or_another_directory_is_refused_and_nothing_changes() -> None:
    async def body(rig: Rig) -> None:
        await filled(rig)
        before = rig.files(LEDGERS)
        with pytest.raises(ConfigError, match="the cluster knows no bookie other: correct"):
            await rebuild(rig, bookie_id="other")
        with pytest.raises(WrongCluster):
            await rebuild(rig, ledger_directories=("/data/elsewhere",))
        assert rig.files(LEDGERS) == before
        await check(rig)

    run_rig(body, flush_interval_s=3600.0)


def test_the_old_index_comes_back_where_a_log_cannot_be_read() -> None:
    async def body(rig: Rig) -> None:
        await filled(rig)
        (name,) = [name for name in rig.files(LEDGERS) if name.endswith(".entries")]
        # The table of the first run, with other blocks behind it.
        rig.disk.flip_bit(f"{LEDGERS}/{name}", 4096 + 70)
        with pytest.raises(CorruptionError, match="damaged at byte"):
            await rebuild(rig)
        rig.disk.flip_bit(f"{LEDGERS}/{name}", 4096 + 70)
        assert [name for name in rig.files(LEDGERS) if name.startswith("index")] == ["index.db", "index.db-commits"]
        await check(rig)

    run_rig(body, flush_interval_s=3600.0)


def test_an_interrupted_rebuild_is_made_good_by_the_next_start() -> None:
    for step in range(0, 30, 3):

        async def body(rig: Rig, step: int = step) -> None:
            await filled(rig)
            await rebuilt_up_to(rig, step)
            rig.disk.crash()
            await rig.node.start()
            client = await rig.connect()
            await check_all(client, 5, 12)
            assert await client.add(codec(7), 0) is Status.FENCED
            assert await client.add(codec(8), 0) is Status.FENCED

        run_rig(body, seed=step, flush_interval_s=3600.0)
