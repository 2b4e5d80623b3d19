"""A bookie whose journal holds more than half a write cache starts on a full disk as it stood there, and goes on."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import codec
from tests.unit.bookie.full_disk_rig import NoSpace
from tests.waiting import eventually
from triplicate.errors import EnvironmentFault
from triplicate.wire import Status
from triplicate_simulator.cluster.simulated_cluster import LEDGER_DIRECTORY

KIB = 1024
SETTINGS: dict[str, Any] = {"flush_interval_s": 3600.0, "write_cache_bytes": 16 << 20, "disk_check_interval_s": 0.3}


async def crash_with_a_long_journal(rig: Rig, entries: int) -> None:
    """The next start has a write cache of 512 KiB, and queues of 64."""
    client = await rig.connect()
    for entry_id in range(entries):
        assert await client.add(codec(5 + entry_id % 3), entry_id, b"x" * 20 * KIB) is Status.OK
    made = rig.cluster.options.bookie_settings
    smaller: dict[str, Any] = {"write_cache_bytes": 512 * KIB, "journal_queue_bytes": 64 * KIB, "journal_group_bytes": 64 * KIB}
    rig.cluster.options.bookie_settings = lambda name: dataclasses.replace(made(name), **smaller)
    rig.node.crash()


async def check(rig: Rig, entries: int) -> None:
    client = await rig.connect()
    for entry_id in range(entries):
        assert (await client.read(5 + entry_id % 3, entry_id)).status is Status.OK


@pytest.mark.parametrize("where", ["", f"{LEDGER_DIRECTORY}/current/0"])
@pytest.mark.parametrize("entries", [14, 30, 45])
def test_it_starts_serves_and_goes_on_by_itself(where: str, entries: int) -> None:
    async def body(rig: Rig) -> None:
        await crash_with_a_long_journal(rig, entries)
        fault = NoSpace(rig, "-")
        if not where:
            rig.disk.before_operation = None
            rig.disk.fill()
        await rig.node.stop()
        starting = asyncio.ensure_future(rig.node.start())
        fault.prefix = where
        await starting
        assert rig.bookie.read_only
        for _ in range(2):
            await check(rig, entries)
            assert await (await rig.connect()).add(codec(9), 0) is Status.READ_ONLY
            await asyncio.sleep(3)
        fault.prefix = "-"
        rig.disk.relieve()
        await eventually(lambda: not rig.bookie.read_only)
        assert await (await rig.connect()).add(codec(9), 0) is Status.OK
        await check(rig, entries)
        await rig.bookie.storage.flush()
        await rig.restart()
        assert dict(rig.facts("bookie.replayed")[-1].facts)["groups"] == 0
        await check(rig, entries)

    run_rig(body, **SETTINGS)


def test_more_than_memory_takes_is_refused_in_one_line_and_lost_by_nobody() -> None:
    async def body(rig: Rig) -> None:
        await crash_with_a_long_journal(rig, 100)
        rig.disk.fill()
        with pytest.raises(EnvironmentFault, match=r"^/data/ledgers\S*: the disk is full \(there is no space to flush, and the journal"):
            await rig.node.start()
        rig.node.crash()
        rig.disk.relieve()
        await rig.node.start()
        await check(rig, 100)
        await rig.restart()
        await check(rig, 100)

    run_rig(body, **SETTINGS)
