"""A flush that fails for want of space goes on where it failed, unless what happened meanwhile contradicts what it has written."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import codec, lose_index
from tests.unit.bookie.full_disk_rig import NoSpace
from tests.waiting import eventually
from triplicate.wire import Status
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY, LEDGER_DIRECTORY

INDEX = f"{LEDGER_DIRECTORY}/current/index.db"
MARK = f"{JOURNAL_DIRECTORY}/current/mark"


async def fill(rig: Rig, ledgers: tuple[int, ...] = (5,)) -> None:
    client = await rig.connect()
    for entry_id in range(20):
        for ledger_id in ledgers:
            assert await client.add(codec(ledger_id), entry_id, b"x" * 5000) is Status.OK


async def check(rig: Rig, ledgers: tuple[int, ...] = (5,)) -> None:
    client = await rig.connect()
    for entry_id in range(20):
        for ledger_id in ledgers:
            assert (await client.read(ledger_id, entry_id)).status is Status.OK


MANY = (5, 6, 8, 9)
SETTINGS: dict[str, Any] = {"flush_interval_s": 3600.0, "disk_check_interval_s": 3600.0, "write_cache_bytes": 8 << 20}


@pytest.mark.parametrize("prefix", [INDEX, MARK])
def test_entries_are_written_once_however_often_the_steps_behind_them_fail(prefix: str) -> None:
    async def body(rig: Rig) -> None:
        await fill(rig)
        before = rig.bookie.storage.flusher.flush_number
        fault = NoSpace(rig, prefix)
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        await eventually(lambda: fault.refused >= 1)
        fault.writes.clear()
        await eventually(lambda: fault.refused >= 5)
        assert fault.writes["entries"] == 0
        if prefix == MARK:
            assert not any("index" in name for name in fault.writes), "the index has it"
        fault.prefix = ""
        await flush
        assert rig.bookie.storage.flusher.flush_number == before + 1
        await check(rig)
        await rig.restart()
        assert dict(rig.facts("bookie.replayed")[-1].facts)["groups"] == 0
        await check(rig)

    run_rig(body, **SETTINGS)


@pytest.mark.parametrize("fenced", [False, True])
@pytest.mark.parametrize("prefix", [INDEX, MARK])
def test_a_ledger_that_is_deleted_between_two_tries_stays_deleted(prefix: str, fenced: bool) -> None:
    async def body(rig: Rig) -> None:
        await fill(rig, (5, 6))
        if fenced:
            assert (await (await rig.connect()).fence(codec(6))).status is Status.OK
        storage = rig.bookie.storage
        fault = NoSpace(rig, prefix)
        flush = asyncio.ensure_future(storage.flush())
        await eventually(lambda: fault.refused >= 2)
        deletion = asyncio.ensure_future(storage.delete_ledgers([6]))
        if prefix == INDEX and fenced:
            with pytest.raises(OSError, match="No space"):
                await deletion
        await eventually(lambda: fault.refused >= 5)
        fault.prefix = ""
        await flush
        if deletion.done():
            await storage.delete_ledgers([6])
        else:
            await deletion
        for _ in range(2):
            await check(rig)
            assert rig.bookie.storage.stored.index.ledger_ids() == [5]
            assert rig.bookie.storage.stored.index.runs_of(6) == []
            assert (await (await rig.connect()).add(codec(6), 30) is Status.FENCED) is fenced
            await rig.restart()
            await rig.bookie.storage.flush()
            if not fenced:
                break

    run_rig(body, **SETTINGS)


def test_a_deletion_that_succeeds_between_two_tries_restarts_the_flush() -> None:
    async def body(rig: Rig) -> None:
        await fill(rig, (5, 6))
        assert (await (await rig.connect()).fence(codec(6))).status is Status.OK
        storage = rig.bookie.storage
        before = storage.flusher.flush_number
        add, fails = storage.stored.index.add, [2]

        def fail_twice(*arguments: object) -> None:
            if fails[0]:
                fails[0] -= 1
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), INDEX)
            add(*arguments)  # type: ignore[arg-type]

        storage.stored.index.add = fail_twice  # type: ignore[method-assign,assignment]
        flush = asyncio.ensure_future(storage.flush())
        await eventually(lambda: fails[0] == 1)
        fails[0] = 0
        await storage.delete_ledgers([6])
        assert not flush.done()
        assert storage.flusher.flush_number == before + 2, "the number of the blocks that stand in the logs is nobody else's"
        await flush
        assert storage.flusher.flush_number == before + 3
        assert storage.stored.index.ledger_ids() == [5]
        assert storage.stored.index.runs_of(6) == []
        await check(rig)
        rig.node.crash()
        lose_index(rig)
        await rig.node.start()
        await check(rig)
        assert await (await rig.connect()).add(codec(6), 30) is Status.FENCED

    run_rig(body, **SETTINGS)


def test_logs_of_which_the_index_has_not_heard_are_not_dead() -> None:
    async def body(rig: Rig) -> None:
        await fill(rig, MANY)
        fault = NoSpace(rig, INDEX)
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        await eventually(lambda: fault.refused >= 2)
        logs = [name for name in rig.files(f"{LEDGER_DIRECTORY}/current") if name.endswith(".entries")]
        assert len(logs) > 2
        assert await rig.bookie.storage.delete_dead_logs() == 0
        assert [name for name in rig.files(f"{LEDGER_DIRECTORY}/current") if name.endswith(".entries")] == logs
        fault.prefix = ""
        await flush
        await check(rig, MANY)
        await rig.restart()
        await check(rig, MANY)

    run_rig(body, entry_log_bytes=16 << 10, **SETTINGS)


def test_a_log_that_a_flush_has_grown_is_not_compacted_before_the_index_knows() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert await client.add(codec(7), 0, b"x" * 9000) is Status.OK
        await rig.bookie.storage.flush()
        await fill(rig, MANY)
        fault = NoSpace(rig, INDEX)
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        await eventually(lambda: fault.refused >= 2)
        assert rig.bookie.storage.stored.finished_logs() == {}
        fault.prefix = ""
        await flush
        assert len(rig.bookie.storage.stored.finished_logs()) > 2
        await check(rig, MANY)

    run_rig(body, entry_log_bytes=16 << 10, **SETTINGS)


def test_what_is_written_behind_a_flush_before_the_index_knows_it_is_not_forgotten() -> None:
    async def body(rig: Rig) -> None:
        await fill(rig)
        storage = rig.bookie.storage
        await storage.flush()
        await fill(rig, (6,))
        fault = NoSpace(rig, INDEX)
        flush = asyncio.ensure_future(storage.flush())
        await eventually(lambda: fault.refused >= 2)
        fault.prefix = ""
        log = storage.stored.writer.states(storage.flusher.flush_number, [])
        sizes = storage.stored.writer.sync()
        storage.stored.index.set_sizes(sizes.items())
        await flush
        assert storage.stored.index.log_sizes()[log] == sizes[log]
        await check(rig, (5, 6))

    run_rig(body, **SETTINGS)
