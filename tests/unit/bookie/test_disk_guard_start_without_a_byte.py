"""A bookie whose disk has not one byte free, and no reserve left, starts read-only, serves, and goes on once there is room."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import codec
from tests.unit.bookie.full_disk_rig import KIB
from tests.unit.bookie.rebuild_rig import rebuild
from tests.waiting import eventually
from triplicate.wire import Status
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY, LEDGER_DIRECTORY

SETTINGS: dict[str, Any] = {"reserve_bytes": 0, "flush_interval_s": 3600.0, "disk_check_interval_s": 0.3}
GROWS = ("write", "create", "allocate")


async def write(rig: Rig, *, flushed: int, behind: int) -> None:
    """Leave an entry log without its footer that holds `flushed` entries, and `behind` entries in the journal alone."""
    client = await rig.connect()
    for entry_id in range(flushed):
        assert await client.add(codec(), entry_id, b"x" * KIB) is Status.OK
    await rig.bookie.storage.flush()
    for entry_id in range(flushed, flushed + behind):
        assert await client.add(codec(), entry_id, b"x" * KIB) is Status.OK


async def check(rig: Rig, entries: int) -> None:
    client = await rig.connect()
    for entry_id in range(entries):
        assert (await client.read(5, entry_id)).status is Status.OK, entry_id
    assert (await client.read(5, entries)).status is Status.NO_ENTRY


def no_room(rig: Rig, places: tuple[str, ...]) -> None:
    def strike(kind: str, path: str) -> None:
        if kind in GROWS and path.startswith(places) and not path.endswith("/LOCK"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    rig.disk.before_operation = strike


async def goes_on(rig: Rig, entries: int) -> None:
    """Entries that were served without space are durable, and the index can be rebuilt from the files."""
    await eventually(lambda: not rig.bookie.read_only)
    assert await (await rig.connect()).add(codec(), entries) is Status.OK
    await rig.bookie.storage.flush()
    await rig.restart()
    await check(rig, entries + 1)
    rig.node.crash(keep_unsynced=True)
    assert (await rebuild(rig)).runs
    await rig.node.start()
    await check(rig, entries + 1)


@pytest.mark.parametrize("behind", [0, 5])
@pytest.mark.parametrize("clean", [True, False])
def test_it_serves_reads_where_no_file_can_grow(clean: bool, behind: int) -> None:
    async def body(rig: Rig) -> None:
        await write(rig, flushed=20, behind=behind)
        if clean:
            await rig.node.stop()
        rig.node.crash()
        for _ in range(2):
            rig.disk.fill()
            await rig.node.start()
            assert rig.bookie.read_only
            await check(rig, 20 + behind)
            assert await (await rig.connect()).add(codec(), 99) is Status.READ_ONLY
            assert await (await rig.connect()).add(codec(), 99, recovery=True) is not Status.OK
            await asyncio.sleep(3)
            await check(rig, 20 + behind)
            rig.node.crash()
        await rig.node.start()
        rig.disk.relieve()
        await goes_on(rig, 20 + behind)

    run_rig(body, **SETTINGS)


@pytest.mark.parametrize("clean", [True, False])
def test_it_serves_reads_where_not_a_byte_can_be_written(clean: bool) -> None:
    """As on a file system that never writes in place."""

    async def body(rig: Rig) -> None:
        await write(rig, flushed=20, behind=0)
        if clean:
            await rig.node.stop()
        rig.node.crash()
        rig.disk.fill()
        no_room(rig, (LEDGER_DIRECTORY, JOURNAL_DIRECTORY))
        await rig.node.start()
        assert rig.bookie.read_only
        await check(rig, 20)
        assert (await (await rig.connect()).fence(codec(), 3)).status is Status.IO_ERROR
        await check(rig, 20)
        rig.node.crash()
        await rig.node.start()
        rig.disk.before_operation = None
        rig.disk.relieve()
        await goes_on(rig, 20)

    run_rig(body, **SETTINGS)


def test_a_footer_that_finds_room_only_in_part_is_cut_off() -> None:
    async def body(rig: Rig) -> None:
        await write(rig, flushed=20, behind=0)
        rig.node.crash()
        rig.disk.fill(10)
        sizes = {path: inode.live.size for path, inode in rig.disk.names.live.items() if path.endswith(".entries")}
        await rig.node.start()
        await check(rig, 20)
        assert {path: rig.disk.names.live[path].live.size for path in sizes} == sizes
        rig.disk.relieve()
        await goes_on(rig, 20)

    run_rig(body, **SETTINGS)


def test_what_a_start_looks_at_first_needs_no_room_where_there_is_a_reserve() -> None:
    """An index that was emptied is rebuilt in the space of the reserve."""

    async def body(rig: Rig) -> None:
        await write(rig, flushed=20, behind=0)
        rig.node.crash()
        for name in ("index.db", "index.db-commits"):
            file = rig.world.start_host("bookie-1").port.disk.open(f"{LEDGER_DIRECTORY}/current/{name}")
            file.truncate(0)
            file.sync()
        rig.disk.fill()
        await rig.node.start()
        await check(rig, 20)

    run_rig(body, **{**SETTINGS, "reserve_bytes": 256 * KIB})
