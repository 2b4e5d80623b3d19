"""A copy that a loss of power tore keeps its header and table, and maybe not its body: a rebuild takes the other copy."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.compaction_rig import KEPT, check, fill, logs
from tests.unit.bookie.crash_rig import LEDGERS, lose_index
from tests.unit.bookie.index_rig import Machine
from triplicate.bookie.core.entry_log_format import BlockInfo, BlockType
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.storage.entry_log_writer import EntryLogWriter
from triplicate.bookie.storage.entry_logs import LogContent, drop_copies, read_log
from triplicate.bookie.storage.ledger_dirs import LedgerDirs
from triplicate.sim import HostCrashed


def traceless(kind: str, /, **facts: object) -> None:
    """Ignore the traces."""


def runs_of_log(rig: Rig, number: int) -> list[BlockInfo]:
    disk = rig.bookie.storage._host.disk
    content = read_log(disk, number, f"{LEDGERS}/{number:016d}.entries", with_states=False, trace=traceless)
    return [block for block in content.blocks if block.type is BlockType.RUN]


@pytest.mark.parametrize("part", [1.0, 0.5])
def test_a_torn_copy_does_not_replace_the_original(part: float) -> None:
    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        stored = rig.bookie.storage.stored
        found: list[BlockInfo] = []

        def die(*arguments: object) -> None:
            found.extend(runs_of_log(rig, max(stored._paths)))
            rig.node.crash(keep_unsynced=True)
            raise HostCrashed("test")

        stored.index.move_runs = die  # type: ignore[assignment,method-assign]
        running = asyncio.ensure_future(rig.bookie.compact(0.8))
        await asyncio.sleep(3)
        running.cancel()
        inode = rig.disk.names.live[f"{LEDGERS}/{logs(rig)[-1]}"]
        copies = [run for run in found if run.ledger_id == KEPT]
        assert copies
        for run in copies:
            lost = int(run.body_bytes * part)
            for image in (inode.live, inode.durable):
                image.data[run.end - lost : run.end] = bytes(lost)
        for _ in range(2):
            # The second time every log has its footer.
            lose_index(rig)
            await rig.node.start()
            assert rig.bookie.storage.stored.rebuilt
            await check(rig, codecs, gone=False)
            await rig.bookie.collect_garbage()
            await check(rig, codecs)
            rig.node.crash()
        await rig.node.start()
        assert await rig.bookie.compact(0.8) >= 1
        await check(rig, codecs)

    run_rig(body, flush_interval_s=3600.0)


def test_of_two_unfinished_copies_the_whole_one_counts() -> None:
    machine = Machine()
    paths: dict[int, str] = {}
    identity = FileIdentity("bookie", "instance", 0, 1)
    writer = EntryLogWriter(machine.disk, LedgerDirs(machine.disk, ["/data"], 0.95), identity, 1 << 20, paths, iter(range(1, 9)))
    entries = {entry_id: b"%d" % entry_id * 100 for entry_id in range(20)}
    for _ in range(2):
        list(writer.runs(3, 7, entries))
        writer.sync()
        writer.abandon()

    def contents() -> list[LogContent]:
        return [read_log(machine.disk, number, path, with_states=False, trace=traceless) for number, path in paths.items()]

    def kept(known: bool = False) -> list[int]:
        found = contents()
        drop_copies(machine.disk, found, lambda run: known)
        return [content.number for content in found if content.blocks]

    assert kept() == [1]
    assert kept(known=True) == []
    (run,) = contents()[0].blocks
    file = machine.disk.open(paths[1])
    file.pwrite([bytes(300)], run.end - 300)
    assert kept() == [2]
    file = machine.disk.open(paths[2])
    file.pwrite([bytes(300)], run.end - 300)
    assert kept() == [1]
