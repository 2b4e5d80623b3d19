"""Full disks: what was not synced is refused, what is there is served, and the bookie comes back by itself."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import add_all, codec
from tests.unit.bookie.full_disk_rig import KIB
from tests.waiting import eventually
from triplicate.wire import AddRequest, Status
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY, LEDGER_DIRECTORY

ROOM = 256 * KIB
RESERVES = [f"{directory}/current/RESERVE" for directory in (JOURNAL_DIRECTORY, LEDGER_DIRECTORY)]


def no_space(kind: str, prefix: str, times: int = 1) -> Callable[[str, str], None]:
    """A fault: the next `times` operations of a kind below a path find no space."""
    left = [times]

    def strike(operation: str, path: str) -> None:
        if left[0] and operation == kind and path.startswith(prefix):
            left[0] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    return strike


async def check_synced(rig: Rig, acknowledged: list[int]) -> None:
    """Check that acknowledged entries outlive a power cut."""
    await rig.restart()
    client = await rig.connect()
    for entry_id in acknowledged:
        assert (await client.read(5, entry_id)).status is Status.OK, entry_id


def test_a_journal_without_space_refuses_adds_serves_reads_and_comes_back() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert await client.add(codec(), 0, b"x" * 8 * KIB) is Status.OK
        rig.disk.fill()
        answers = [await client.add(codec(), entry_id, b"x" * 8 * KIB) for entry_id in range(1, 20)]
        acknowledged = [0, *(number for number, status in enumerate(answers, 1) if status is Status.OK)]
        assert set(answers) == {Status.OK, Status.IO_ERROR, Status.READ_ONLY}, "what was preallocated is used, then no more is taken"
        assert rig.bookie.read_only
        assert (await client.read(5, 0)).status is Status.OK
        rig.disk.relieve()
        await eventually(lambda: not rig.bookie.read_only)
        assert await client.add(codec(), 20) is Status.OK
        await check_synced(rig, [*acknowledged, 20])

    settings: dict[str, Any] = {"disk_check_interval_s": 0.3, "disk_usage_threshold": 1.0, "disk_usage_low_water": 1.0}
    run_rig(body, flush_interval_s=3600.0, journal_spare_files=0, **settings)


@pytest.mark.parametrize("spare_files", [0, 2])
@pytest.mark.parametrize("kind", ["write", "sync", "allocate", "create"])
def test_a_group_that_found_no_space_is_not_built_upon(kind: str, spare_files: int) -> None:
    """Whole, in part or not at all: what is left of it goes before another group takes its number."""

    async def body(rig: Rig) -> None:
        client = await rig.connect()
        acknowledged = [number for number in range(12) if await client.add(codec(), number, b"x" * 4 * KIB) is Status.OK]
        rig.disk.before_operation = no_space(kind, JOURNAL_DIRECTORY + "/current/0")
        refused = []
        for number in range(12, 60):
            status = await client.add(codec(), number, b"x" * 4 * KIB)
            if status is Status.OK:
                acknowledged.append(number)
            else:
                refused.append(status)
                await eventually(lambda: not rig.bookie.read_only)
        # A file that was written before needs no space any more.
        assert refused == ([] if spare_files and kind in ("allocate", "create") else [Status.IO_ERROR])
        await check_synced(rig, acknowledged)
        assert await (await rig.connect()).add(codec(), 99) is Status.OK
        await check_synced(rig, [*acknowledged, 99])

    run_rig(body, flush_interval_s=3600.0, disk_check_interval_s=0.3, write_cache_bytes=8 << 20, journal_spare_files=spare_files)


def test_many_adds_at_once_are_each_answered_once_when_there_is_no_space() -> None:
    async def body(rig: Rig) -> None:
        old, new = await rig.connect(), await rig.connect_v3()
        assert await old.add(codec(), 0) is Status.OK
        rig.disk.before_operation = no_space("write", JOURNAL_DIRECTORY + "/current/0")
        for client, first in ((old, 1), (new, 101)):
            client.send(*(AddRequest(5, n, codec().master_key, codec().encode(n, n - 1, n, b"x")) for n in range(first, first + 50)))
        for client in (old, new):
            statuses = [(await client.answer()).status for _ in range(50)]
            assert set(statuses) <= {Status.OK, Status.IO_ERROR, Status.READ_ONLY}
        assert await new.force(5) is Status.OK
        assert old.answers.empty()
        assert new.answers.empty()

    run_rig(body)


def test_a_fence_that_found_no_space_is_refused_and_durable_at_the_next_try() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert await client.add(codec(), 0) is Status.OK
        rig.disk.before_operation = no_space("write", JOURNAL_DIRECTORY + "/current/0")
        assert (await client.fence(codec(), 0)).status is Status.IO_ERROR
        assert (await client.fence(codec(), 0)).status is Status.OK
        await rig.restart()
        assert await (await rig.connect()).add(codec(), 1) in (Status.FENCED, Status.READ_ONLY)

    run_rig(body, flush_interval_s=3600.0)


def test_an_add_acknowledged_before_its_sync_is_not_lost_in_silence() -> None:
    """Its sync found no space: a later force would promise what the journal does not hold, so the bookie ends."""

    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        assert await client.add(codec(), 0) is Status.OK
        rig.disk.before_operation = no_space("sync", JOURNAL_DIRECTORY + "/current/0")
        assert await client.add(codec(), 1, deferred_sync=True) is Status.OK
        async with asyncio.timeout(20):
            assert (await rig.bookie.wait_failed()).errno == errno.ENOSPC

    run_rig(body, flush_interval_s=3600.0)


@pytest.mark.parametrize("reserve_bytes", [0, ROOM])
def test_a_bookie_starts_on_a_full_disk_and_serves_reads(reserve_bytes: int) -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert await client.add(codec(), 0) is Status.OK
        rig.disk.fill()
        await rig.restart()
        client = await rig.connect()
        assert (await client.read(5, 0)).status is Status.OK
        assert rig.bookie.read_only
        if reserve_bytes:
            assert (await client.fence(codec(), 0)).status is Status.OK, "the reserve is there for that"
            await rig.restart()
            client = await rig.connect()
        rig.disk.relieve()
        await eventually(lambda: not rig.bookie.read_only)
        assert await client.add(codec(6), 0) is Status.OK
        await check_synced(rig, [0])

    run_rig(body, reserve_bytes=reserve_bytes, disk_check_interval_s=0.3)


def test_the_reserve_is_given_up_for_a_flush_and_made_again() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert [rig.disk.names.live[path].live.size for path in RESERVES] == [ROOM, ROOM]
        assert await client.add(codec(), 0) is Status.OK
        rig.disk.fill()
        await rig.flushed()
        assert not any(path in rig.disk.names.live for path in RESERVES)
        assert (await client.read(5, 0)).status is Status.OK
        rig.disk.relieve()
        await eventually(lambda: all(path in rig.disk.names.live for path in RESERVES))
        await eventually(lambda: not rig.bookie.read_only)
        assert await client.add(codec(), 1) is Status.OK

    run_rig(body, reserve_bytes=ROOM, disk_check_interval_s=0.3)


def test_a_reserve_of_another_size_is_replaced() -> None:
    async def body(rig: Rig) -> None:
        file = rig.disk.names.live[RESERVES[0]]
        assert file.live.size == ROOM
        made = rig.cluster.options.bookie_settings
        rig.cluster.options.bookie_settings = lambda name: dataclasses.replace(made(name), reserve_bytes=2 * ROOM)
        await rig.restart()
        assert rig.disk.names.live[RESERVES[0]].live.size == 2 * ROOM

    run_rig(body, reserve_bytes=ROOM)


def test_a_bookie_warns_before_it_turns_read_only() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        rig.disk.fill(int(rig.disk.total_bytes * 0.08))
        await asyncio.sleep(1)
        assert len(rig.facts("bookie.disks_nearly_full")) == 1
        assert not rig.bookie.read_only
        assert await client.add(codec(), 0) is Status.OK
        rig.disk.fill(int(rig.disk.total_bytes * 0.04))
        await asyncio.sleep(1)
        assert rig.bookie.read_only

    run_rig(body, disk_check_interval_s=0.2)


def no_space_beside_the_reserve(rig: Rig) -> None:
    """Let writes to the ledger directory find no space while its reserve is there, on a bookie that is read-only."""

    def strike(operation: str, path: str) -> None:
        if operation == "write" and path.startswith(LEDGER_DIRECTORY) and RESERVES[1] in rig.disk.names.live:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    rig.disk.fill(ROOM // 2)
    rig.disk.before_operation = strike


def test_compaction_that_finds_no_space_has_the_reserve_at_its_next_round() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for entry_id in range(30):
            for ledger_id in (5, 6):
                assert await client.add(codec(ledger_id), entry_id, b"x" * (1 + ledger_id % 2 * 8) * KIB) is Status.OK
        await rig.create_ledger(6)
        await rig.bookie.storage.flush()
        assert await rig.bookie.collect_garbage() == 1
        no_space_beside_the_reserve(rig)
        await eventually(lambda: bool(rig.facts("bookie.log_compacted")))
        assert rig.facts("bookie.compaction_put_off")
        assert not rig.facts("bookie.flush_without_space")
        assert (await client.read(6, 0)).status is Status.OK

    settings: dict[str, Any] = {
        "compaction_interval_s": 5.0,
        "compaction_threshold": 0.8,
        "flush_interval_s": 3600.0,
        "recovery_adds_free_bytes": 4096,
        # Given back, they would leave room for the reserve.
        "journal_spare_files": 0,
    }
    run_rig(body, reserve_bytes=ROOM, disk_check_interval_s=0.3, **settings)


def test_garbage_collection_that_finds_no_space_has_the_reserve_at_its_next_round() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert await client.add(codec(), 0) is Status.OK
        await rig.bookie.storage.flush()
        no_space_beside_the_reserve(rig)
        await eventually(lambda: bool(rig.facts("bookie.ledgers_deleted")))
        assert rig.facts("bookie.gc_put_off")
        assert not rig.facts("bookie.flush_without_space")

    run_rig(body, reserve_bytes=ROOM, disk_check_interval_s=0.3, gc_interval_s=5.0, flush_interval_s=3600.0)


def test_compaction_for_whose_copy_there_is_no_room_has_the_reserve_at_its_next_round() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for entry_id in range(30):
            for ledger_id in (5, 6):
                assert await client.add(codec(ledger_id), entry_id, b"x" * (1 + ledger_id % 2 * 8) * KIB) is Status.OK
        await rig.create_ledger(6)
        await rig.bookie.storage.flush()
        assert await rig.bookie.collect_garbage() == 1
        rig.disk.fill(20 * KIB)
        await eventually(lambda: bool(rig.facts("bookie.log_compacted")))
        assert rig.facts("bookie.compaction_lacks_room")
        assert not rig.facts("bookie.compaction_put_off")
        assert not rig.facts("bookie.flush_without_space")
        assert (await client.read(6, 0)).status is Status.OK

    settings: dict[str, Any] = {
        "compaction_interval_s": 5.0,
        "compaction_threshold": 0.8,
        "flush_interval_s": 3600.0,
        "recovery_adds_free_bytes": 16 * KIB,
        # Given back, they would leave room for the copy.
        "journal_spare_files": 0,
    }
    run_rig(body, reserve_bytes=ROOM, disk_check_interval_s=0.3, **settings)


def test_fences_of_ever_new_ledgers_have_a_bound_while_no_flush_finds_space() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert await client.add(codec(5), 0) is Status.OK
        full = True

        def strike(operation: str, path: str) -> None:
            if full and operation in ("write", "create") and path.endswith(".entries"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

        rig.disk.before_operation = strike
        answers = [(await client.fence(codec(ledger_id))).status for ledger_id in range(100, 300)]
        fenced = answers.index(Status.TOO_MANY_REQUESTS)
        assert 90 <= fenced <= 100
        assert set(answers[:fenced]) == {Status.NO_ENTRY}
        assert set(answers[fenced:]) == {Status.TOO_MANY_REQUESTS}
        assert len(rig.bookie.storage.ledgers) <= 100
        # Those that are in memory are served as ever.
        assert (await client.fence(codec(100))).status is Status.NO_ENTRY
        assert (await client.read(5, 0)).status is Status.OK
        full = False
        await eventually(lambda: rig.bookie.storage.flusher.flushes > 0)
        for _ in range(2):
            answers = [(await client.fence(codec(ledger_id))).status for ledger_id in range(100, 300)]
            assert set(answers) == {Status.NO_ENTRY}
            await rig.restart()
            client = await rig.connect()

    run_rig(body, flush_interval_s=3600.0, disk_check_interval_s=0.3, ledger_handles=50)


def test_many_new_ledgers_are_flushed_before_they_fill_memory() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for ledger_id in range(100, 600):
            assert await client.add(codec(ledger_id), 0) is Status.OK
            assert len(rig.bookie.storage.ledgers) <= 100
        for _ in range(2):
            for ledger_id in range(100, 600):
                assert (await client.read(ledger_id, 0)).status is Status.OK
            await rig.restart()
            client = await rig.connect()

    run_rig(body, flush_interval_s=3600.0, ledger_handles=50)


def test_a_full_disk_makes_the_bookie_read_only_and_room_makes_it_writable_again() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 2)
        rig.disk.total_bytes = int(rig.disk.used_bytes() * 1.04)
        await asyncio.sleep(1)
        assert rig.bookie.read_only
        assert await client.add(codec(), 3, b"3") is Status.READ_ONLY
        assert await client.add(codec(), 3, b"3", recovery=True, high_priority=True) is Status.OK
        assert (await client.read(5, 3)).status is Status.OK
        assert (await client.fence(codec(6))).status is Status.NO_ENTRY
        rig.disk.total_bytes = 1 << 40
        await asyncio.sleep(1)
        assert not rig.bookie.read_only
        assert await client.add(codec(), 4, b"4") is Status.OK

    run_rig(body, disk_check_interval_s=0.2, recovery_adds_free_bytes=1000, journal_preallocate_bytes=4 << 20, journal_file_bytes=8 << 20)
