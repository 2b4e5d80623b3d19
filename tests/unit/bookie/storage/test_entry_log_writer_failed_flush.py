"""The space that a failed flush used before the disk was full is freed, so that the next try finds as much."""

from __future__ import annotations

import asyncio
import errno

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import codec
from tests.unit.bookie.index_rig import Machine
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.storage.entry_log_writer import EntryLogWriter
from triplicate.bookie.storage.ledger_dirs import LedgerDirs
from triplicate.wire import Status
from triplicate_simulator.cluster.simulated_cluster import LEDGER_DIRECTORY

FULL = OSError(errno.ENOSPC, "No space left on device")


def writer_on(machine: Machine, paths: dict[int, str], log_bytes: int = 1 << 30) -> EntryLogWriter:
    places = LedgerDirs(machine.disk, ["/data"], 0.95)
    return EntryLogWriter(machine.disk, places, FileIdentity("bookie", "instance", 0, 1), log_bytes, paths, iter(range(1, 99)))


def entries(first: int, size: int = 600_000) -> dict[int, bytes]:
    return dict.fromkeys(range(first, first + 5), b"x" * size)


def test_a_log_that_nobody_was_told_of_goes() -> None:
    machine, paths = Machine(), dict[int, str]()
    writer = writer_on(machine, paths)
    list(writer.runs(1, 5, entries(0)))
    assert machine.size("/data/0000000000000001.entries") > 1 << 20
    writer.abandon(FULL)
    machine.crash()
    assert paths == {}
    assert machine.disk.names("/data") == []


def test_a_log_keeps_what_was_told_of_it() -> None:
    machine, paths = Machine(), dict[int, str]()
    writer = writer_on(machine, paths)
    list(writer.runs(1, 5, entries(0)))
    told = writer.sync()[1]
    before = machine.read(paths[1])
    list(writer.runs(2, 5, entries(5)))
    assert machine.size(paths[1]) > told
    writer.abandon(FULL)
    machine.crash()
    assert machine.read(paths[1]) == before
    assert len(before) == told


def test_logs_that_the_flush_has_filled_go_too() -> None:
    machine, paths = Machine(), dict[int, str]()
    writer = writer_on(machine, paths, log_bytes=1 << 20)
    list(writer.runs(1, 5, entries(0, 1000)))
    told = writer.sync()[1]
    for flush in range(5):
        list(writer.runs(2, 5, entries(5 + 5 * flush)))
    assert len(paths) > 2
    writer.abandon(FULL)
    assert list(paths) == [1]
    assert machine.size(paths[1]) == told
    list(writer.runs(2, 5, entries(5)))
    assert set(writer.sync()) == set(paths) - {1}


@pytest.mark.parametrize("error", [None, OSError(errno.EIO, "Input/output error")])
def test_another_failure_leaves_the_log_as_it_is(error: OSError | None) -> None:
    machine, paths = Machine(), dict[int, str]()
    writer = writer_on(machine, paths)
    list(writer.runs(1, 5, entries(0)))
    size = machine.size(paths[1])
    writer.abandon(error)
    assert machine.size(paths[1]) == size


def test_a_log_that_cannot_be_cut_is_left_to_the_next_start() -> None:
    machine, paths = Machine(), dict[int, str]()
    writer = writer_on(machine, paths)
    list(writer.runs(1, 5, entries(0)))
    told = writer.sync()[1]
    list(writer.runs(2, 5, entries(5)))

    def refuse(kind: str, path: str) -> None:
        raise OSError(errno.EIO, "Input/output error", path)

    machine.world.disk("node").before_operation = refuse
    assert not writer.abandon(FULL)
    machine.world.disk("node").before_operation = None
    assert machine.size(paths[1]) > told


def test_tries_of_a_flush_on_a_full_disk_do_not_eat_what_is_free() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for entry_id in range(40):
            assert await client.add(codec(), entry_id, b"x" * 100_000) is Status.OK
            if entry_id == 5:
                await rig.bookie.storage.flush()
        logs = rig.files(f"{LEDGER_DIRECTORY}/current")
        rig.disk.fill(2_500_000)
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        await asyncio.sleep(30)
        assert not flush.done()
        assert len(rig.facts("bookie.flush_without_space")) > 3
        assert rig.disk.free_bytes() > 2_000_000
        assert rig.files(f"{LEDGER_DIRECTORY}/current") == logs
        assert (await client.read(5, 3)).status is Status.OK
        rig.disk.relieve()
        await flush
        await rig.restart()
        client = await rig.connect()
        for entry_id in range(40):
            assert (await client.read(5, entry_id)).status is Status.OK

    run_rig(body, flush_interval_s=3600.0, disk_check_interval_s=3600.0, write_cache_bytes=32 << 20)
