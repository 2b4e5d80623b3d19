"""Entry logs that a dead process left open: what stood only in the system's memory is never taken for stored."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import LEDGERS, add_all, check_all, codec, lose_index
from triplicate.errors import CorruptionError
from triplicate.wire import Status
from triplicate_simulator.cluster.simulated_cluster import LEDGER_DIRECTORY

LOG = f"{LEDGERS}/0000000000000001.entries"


async def start_without_index(rig: Rig) -> None:
    lose_index(rig)
    await rig.node.start()
    assert rig.bookie.storage.stored.rebuilt


@pytest.mark.parametrize("rebuild", [False, True])
def test_blocks_of_a_failed_sync_do_not_damage_the_finished_log(rebuild: bool) -> None:
    """The next process sees the blocks, gives the log its footer, and then the power goes; at last the index is lost as well."""

    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 9)
        await rig.bookie.storage.flush()
        await add_all(client, 5, 10, 19)
        assert (await client.fence(codec(7))).status is Status.NO_ENTRY
        rig.disk.failing_syncs.append(LOG)
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        async with asyncio.timeout(20):
            await rig.bookie.wait_failed()
        flush.cancel()
        rig.node.crash(keep_unsynced=True)
        if rebuild:
            await start_without_index(rig)
        else:
            await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt is rebuild
        await check_all(await rig.connect(), 5, 19)
        await rig.bookie.storage.flush()
        await rig.restart(keep_unsynced=False)
        await check_all(await rig.connect(), 5, 19)
        rig.node.crash()
        await start_without_index(rig)
        client = await rig.connect()
        await check_all(client, 5, 19)
        assert await client.add(codec(7), 0) is Status.FENCED
        assert not rig.facts("bookie.entry_log_damaged")

    run_rig(body, flush_interval_s=3600.0)


def kill_in_a_flush(step: int, *, rebuild: bool) -> bool:
    """Kill the process before one operation of a flush, start it, let the power go, lose the index. False: the flush had ended."""
    happened: list[str] = []

    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 9)
        await rig.bookie.storage.flush()
        await add_all(client, 5, 10, 19)
        assert (await client.fence(codec(7))).status is Status.NO_ENTRY
        rig.kill_at(step, happened, keep_unsynced=True)
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        await asyncio.sleep(2)
        rig.disk.before_operation = None
        flush.cancel()
        if not happened:
            return
        if rebuild:
            await start_without_index(rig)
        else:
            await rig.node.start()
        await check_all(await rig.connect(), 5, 19)
        rig.node.crash()
        await start_without_index(rig)
        client = await rig.connect()
        await check_all(client, 5, 19)
        assert await client.add(codec(7), 0) is Status.FENCED
        await rig.restart()
        await check_all(await rig.connect(), 5, 19)

    run_rig(body, seed=step, flush_interval_s=3600.0)
    return bool(happened)


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_kill_at_any_step_of_a_flush_leaves_logs_that_a_loss_of_power_does_not_damage(rebuild: bool) -> None:
    step = 0
    while kill_in_a_flush(step, rebuild=rebuild):
        step += 1
    assert step >= 8


def test_a_log_is_cut_at_the_length_that_the_index_knows() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 9)
        await rig.bookie.storage.flush()
        (known,) = rig.bookie.storage.stored.index.log_sizes().values()
        await add_all(client, 5, 10, 19)
        rig.disk.failing_syncs.append(f"{LEDGERS}/index.db-commits")
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        async with asyncio.timeout(20):
            await rig.bookie.wait_failed()
        flush.cancel()
        assert rig.disk.names.live[LOG].live.size > known
        # The commit is whole in memory and not on the disk; without it the index ends with the first flush.
        rig.node.crash(keep_unsynced=False)
        await rig.node.start()
        sizes = rig.bookie.storage.stored.index.log_sizes()
        assert sizes[1] == rig.disk.names.live[LOG].live.size
        data = bytes(rig.disk.names.live[LOG].live.data)
        assert data[known : known + 6] == b"TPEB\x00\x03", "the footer follows what the first flush wrote"
        await check_all(await rig.connect(), 5, 19)

    run_rig(body, flush_interval_s=3600.0)


def test_a_log_that_no_flush_came_to_rely_on_goes() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 9)
        rig.disk.failing_syncs.append(f"{LEDGER_DIRECTORY}/current/index.db-commits")
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        async with asyncio.timeout(20):
            await rig.bookie.wait_failed()
        flush.cancel()
        rig.node.crash(keep_unsynced=False)
        await rig.node.start()
        (fact,) = rig.facts("bookie.entry_log_discarded")
        assert dict(fact.facts) == {"path": LOG}
        await check_all(await rig.connect(), 5, 9)

    run_rig(body, flush_interval_s=3600.0)


def test_a_finished_log_of_a_clean_stop_is_looked_at_once() -> None:
    async def body(rig: Rig) -> None:
        await add_all(await rig.connect(), 5, 0, 9)
        await rig.node.stop()
        rig.node.crash()
        await rig.node.start()
        sizes = rig.bookie.storage.stored.index.log_sizes()
        assert sizes == {1: rig.disk.names.live[LOG].live.size}
        await rig.node.stop()
        rig.node.crash()
        operations = rig.disk.operations
        writes: list[str] = []
        rig.disk.before_operation = lambda kind, path: writes.append(path) if kind == "write" else None
        await rig.node.start()
        assert LOG not in writes
        assert rig.disk.operations > operations
        await check_all(await rig.connect(), 5, 9)

    run_rig(body)


def test_a_log_with_less_in_it_than_the_index_knows_is_left_as_it_is() -> None:
    async def body(rig: Rig) -> None:
        await add_all(await rig.connect(), 5, 0, 9)
        await rig.bookie.storage.flush()
        rig.node.crash()
        inode = rig.disk.names.live[LOG]
        # The table of the run.
        rig.disk.flip_bit(LOG, 4096 + 70)
        before = bytes(inode.live.data)
        await rig.node.start()
        assert rig.facts("bookie.entry_log_damaged")
        assert bytes(rig.disk.names.live[LOG].live.data) == before
        assert (await (await rig.connect()).read(5, 9)).status is Status.IO_ERROR
        rig.node.crash()
        lose_index(rig)
        with pytest.raises(CorruptionError):
            await rig.node.start()

    run_rig(body, flush_interval_s=3600.0)
