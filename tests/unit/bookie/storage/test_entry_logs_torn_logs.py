"""A rebuild of the index with an unfinished entry log: torn blocks of an uncommitted flush are skipped, others are damage."""

from __future__ import annotations

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import LOG, add_all, check_all, contents, lose_index, overwrite
from triplicate.bookie.core.entry_log_format import BlockInfo, BlockType
from triplicate.bookie.storage.entry_logs import read_log
from triplicate.errors import CorruptionError
from triplicate.wire import Status
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY


def traceless(kind: str, /, **facts: object) -> None:
    """Ignore the traces."""


def blocks_of(rig: Rig) -> list[BlockInfo]:
    return read_log(rig.bookie.storage._host.disk, 1, LOG, with_states=False, trace=traceless).blocks


async def flushed_twice(rig: Rig, *, marked: bool) -> list[BlockInfo]:
    """A log of two flushes, each of three ledgers; without `marked` no journal's mark relies on the second."""
    client = await rig.connect()
    for ledger_id in (5, 6, 7):
        await add_all(client, ledger_id, 0, 9)
    await rig.bookie.storage.flush()
    if not marked:
        rig.bookie.storage.journals[0].write_mark = lambda position, flush_number: None  # type: ignore[method-assign]
    for ledger_id in (5, 6, 7):
        await add_all(client, ledger_id, 10, 19)
    await rig.bookie.storage.flush()
    found = blocks_of(rig)
    rig.node.crash()
    lose_index(rig)
    return found


def runs_of(blocks: list[BlockInfo], flush_number: int) -> list[BlockInfo]:
    return [block for block in blocks if block.type is BlockType.RUN and block.flush_number == flush_number]


@pytest.mark.parametrize("where", ["last", "midst", "header"])
def test_a_damaged_block_is_refused_at_every_start(where: str) -> None:
    async def body(rig: Rig) -> None:
        blocks = await flushed_twice(rig, marked=True)
        runs = runs_of(blocks, blocks[-1].flush_number)
        run = runs[-1] if where == "last" else runs[0]
        overwrite(rig, run.offset if where == "header" else run.table_offset + 8, bytes(16))
        if where == "last":
            for image in (rig.disk.names.live[LOG].live, rig.disk.names.live[LOG].durable):
                image.resize(run.end)
        before = contents(rig)[LOG]
        for _ in range(3):
            with pytest.raises(CorruptionError, match=rf"^{LOG}: damaged at byte {run.offset}, and the index that knew the rest is gone"):
                await rig.node.start()
            rig.node.crash(keep_unsynced=True)
            assert contents(rig)[LOG] == before

    run_rig(body, flush_interval_s=3600.0)


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 1)])
def test_torn_runs_of_a_flush_that_nothing_relies_on_are_passed_over(lost: tuple[int, ...]) -> None:
    """A sector was lost within what was never synced, and whole blocks stand behind it: the journal has all of it."""

    async def body(rig: Rig) -> None:
        blocks = await flushed_twice(rig, marked=False)
        runs = runs_of(blocks, blocks[-1].flush_number)
        assert len(runs) == 3
        for number in lost:
            overwrite(rig, runs[number].table_offset + 8, bytes(16))
        for _ in range(2):
            await rig.node.start()
            assert rig.bookie.storage.stored.rebuilt
            for ledger_id in (5, 6, 7):
                await check_all(await rig.connect(), ledger_id, 19)
            rig.node.crash()
            lose_index(rig)
        await rig.node.start()
        await rig.bookie.storage.flush()
        await rig.restart()
        for ledger_id in (5, 6, 7):
            await check_all(await rig.connect(), ledger_id, 19)
        assert (await (await rig.connect()).read(5, 20)).status is Status.NO_ENTRY

    run_rig(body, flush_interval_s=3600.0)


def test_a_torn_run_whose_header_is_gone_is_refused_and_the_cure_is_said() -> None:
    """The earlier content of the block is unknown."""

    async def body(rig: Rig) -> None:
        blocks = await flushed_twice(rig, marked=False)
        run = runs_of(blocks, blocks[-1].flush_number)[0]
        overwrite(rig, run.offset, bytes(60))
        before = contents(rig)[LOG]
        cure = r"restore the file from a backup; if there is none, move .*bookie format --config FILE --replace"
        with pytest.raises(CorruptionError, match=cure):
            await rig.node.start()
        rig.node.crash(keep_unsynced=True)
        assert contents(rig)[LOG] == before

    run_rig(body, flush_interval_s=3600.0)


def test_without_a_mark_no_torn_run_is_passed_over() -> None:
    """An operator may have deleted a damaged one, and the journal holds less than every flush since the beginning."""

    async def body(rig: Rig) -> None:
        blocks = await flushed_twice(rig, marked=False)
        run = runs_of(blocks, blocks[-1].flush_number)[0]
        overwrite(rig, run.table_offset + 8, bytes(16))
        for names in (rig.disk.names.live, rig.disk.names.durable):
            del names[f"{JOURNAL_DIRECTORY}/current/mark"]
        with pytest.raises(CorruptionError, match=f"damaged at byte {run.offset}"):
            await rig.node.start()

    run_rig(body, flush_interval_s=3600.0)
