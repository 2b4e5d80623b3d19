"""Kills at bad moments: what was acknowledged is there, what was fenced stays fenced, or the bookie says why it does not start."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import JOURNAL, LEDGERS, add_all, check_all, codec, lose_index, refuses_to_start
from triplicate.errors import CorruptionError
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import AddRequest, Status


@pytest.mark.parametrize("seed", range(6))
def test_acknowledged_entries_survive_a_power_loss_before_and_after_flushes(seed: int) -> None:
    async def body(rig: Rig) -> None:
        last = -1
        for _ in range(3):
            client = await rig.connect()
            await add_all(client, 5, last + 1, last + 10)
            last += 10
            await rig.flushed()
            await add_all(client, 5, last + 1, last + 5)
            last += 5
            await rig.restart()
            await check_all(await rig.connect(), 5, last)

    run_rig(body, seed)


@pytest.mark.parametrize("seed", range(6))
def test_fences_survive_a_power_loss_wherever_they_stand(seed: int) -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for ledger_id in (1, 2, 3):
            await add_all(client, ledger_id, 0, 3)
        assert (await client.fence(codec(1))).status is Status.OK
        await rig.flushed()
        assert (await client.fence(codec(2))).status is Status.OK
        await rig.restart()
        client = await rig.connect()
        for ledger_id, status in ((1, Status.FENCED), (2, Status.FENCED), (3, Status.OK)):
            assert await client.add(codec(ledger_id), 4, b"4") is status

    run_rig(body, seed)


def test_journals_behind_the_mark_are_deleted_and_the_mark_never_goes_back() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for entry_id in range(60):
            assert await client.add(codec(), entry_id, b"x" * 20_000) is Status.OK
        await rig.flushed() if rig.bookie.storage.cache.active else None
        await asyncio.sleep(1)
        assert len([name for name in rig.files(JOURNAL) if name.endswith(".journal")]) <= 3
        marks = [journal.read_mark() for journal in rig.bookie.storage.journals]
        assert marks[0] is not None
        before = marks[0]
        journal = rig.bookie.storage.journals[0]
        journal.write_mark(type(journal.synced)(1, 4096, 1), 1)
        assert journal.read_mark() == before
        await rig.restart()
        assert (await (await rig.connect()).read(5, 59)).status is Status.OK

    run_rig(body)


def crash_at_each_step_of_a_flush() -> list[tuple[int, str]]:
    """Kill the bookie before each operation of one flush in turn, restart it, and check everything; returns (step, operation)."""
    tried: list[tuple[int, str]] = []
    for step in range(200):
        happened: list[str] = []

        async def body(rig: Rig, step: int = step, happened: list[str] = happened) -> None:
            client = await rig.connect()
            await add_all(client, 5, 0, 9)
            assert (await client.fence(codec(7))).status is Status.NO_ENTRY
            rig.kill_at(step, happened)
            await asyncio.sleep(2)
            rig.disk.before_operation = None
            if not happened:
                return
            await rig.node.start()
            client = await rig.connect()
            await check_all(client, 5, 9)
            assert await client.add(codec(7), 0) is Status.FENCED
            await rig.flushed() if rig.bookie.storage.cache.active else None
            await rig.restart()
            client = await rig.connect()
            await check_all(client, 5, 9)
            assert await client.add(codec(7), 0) is Status.FENCED

        run_rig(body, seed=step)
        if not happened:
            return tried
        tried.append((step, happened[0]))
    return tried


def test_a_crash_at_any_step_of_a_flush_loses_nothing() -> None:
    tried = crash_at_each_step_of_a_flush()
    kinds = " ".join(operation for _, operation in tried)
    assert ".entries" in kinds
    assert "index.db" in kinds
    assert "mark" in kinds


def test_a_lost_index_is_rebuilt_with_entries_and_fences() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 9)
        await client.fence(codec(7))
        await client.fence(codec(5))
        await rig.flushed()
        await client.add(codec(5), 10, b"10", recovery=True)
        await rig.node.stop()
        lose_index(rig)
        rig.node.crash()
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt
        assert rig.facts("bookie.index_rebuild")
        client = await rig.connect()
        await check_all(client, 5, 10)
        assert await client.add(codec(5), 11) is Status.FENCED
        assert await client.add(codec(7), 0) is Status.FENCED

    run_rig(body)


def test_a_lost_index_is_rebuilt_after_every_ledger_was_collected() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(5)
        assert await (await rig.connect()).add(ledger, 0) is Status.OK
        await rig.flushed()
        await rig.node.stop()
        await rig.restart()
        await rig.delete_ledger(5)
        assert await rig.bookie.collect_garbage() == 1
        await rig.bookie.collect_garbage()
        await rig.node.stop()
        lose_index(rig)
        rig.node.crash()
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt

    run_rig(body)


def test_a_damaged_index_is_rebuilt() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 9)
        await rig.flushed()
        await rig.node.stop()
        rig.node.crash()
        # Within the first commit: everything behind it is gone as well, and the mark says that it should be there.
        rig.disk.flip_bit(f"{LEDGERS}/index.db-commits", 100)
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt
        await check_all(await rig.connect(), 5, 9)

    run_rig(body)


def test_an_index_older_than_the_mark_is_rebuilt() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 4)
        await rig.flushed()
        old = {name: bytes(rig.disk.names.live[f"{LEDGERS}/{name}"].live.data) for name in ("index.db", "index.db-commits")}
        await add_all(client, 5, 5, 9)
        await rig.flushed()
        await rig.node.stop()
        for name, data in old.items():
            inode = rig.disk.names.live[f"{LEDGERS}/{name}"]
            for image in (inode.live, inode.durable):
                image.data[:] = data
                image.size = len(data)
        rig.node.crash()
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt
        await check_all(await rig.connect(), 5, 9)

    run_rig(body)


def test_a_damaged_group_in_the_middle_of_the_journal_stops_the_start_and_changes_nothing() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 5)
        rig.node.crash()
        rig.disk.flip_bit(f"{JOURNAL}/0000000000000001.journal", 4096 + 60)
        before = rig.files(JOURNAL)
        await refuses_to_start(rig, CorruptionError, "group at byte 4096 is damaged, but group")
        assert rig.files(JOURNAL) == before

    run_rig(body, flush_interval_s=100.0)


def test_a_damaged_last_group_is_a_torn_tail_and_is_reported() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 2)
        rig.node.crash()
        rig.disk.flip_bit(f"{JOURNAL}/0000000000000001.journal", 4096 + 2 * 4096 + 60)
        await rig.node.start()
        (fact,) = rig.facts("bookie.torn_tail")
        assert dict(fact.facts) == {"path": f"{JOURNAL}/0000000000000001.journal", "offset": 4096 + 2 * 4096}
        await check_all(await rig.connect(), 5, 1)

    run_rig(body, flush_interval_s=100.0)


def test_a_damaged_group_at_the_end_of_a_journal_file_that_others_follow_is_named() -> None:
    async def body(rig: Rig) -> None:
        await add_all(await rig.connect(), 5, 0, 2)
        rig.node.crash()
        await rig.node.start()
        await add_all(await rig.connect(), 5, 3, 5)
        rig.node.crash()
        first, second = (f"{JOURNAL}/{number:016}.journal" for number in (1, 2))
        offset = 4096 + 2 * 4096
        rig.disk.flip_bit(first, offset + 60)
        await refuses_to_start(rig, CorruptionError, f"{second}: .* are missing .{first} is damaged from byte {offset} on")

    run_rig(body, flush_interval_s=100.0)


def test_a_missing_journal_file_stops_the_start() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for entry_id in range(60):
            assert await client.add(codec(), entry_id, b"x" * 20_000) is Status.OK
        rig.node.crash()
        names = [name for name in rig.files(JOURNAL) if name.endswith(".journal")]
        rig.disk.names.live.pop(f"{JOURNAL}/{names[0]}")
        await refuses_to_start(rig, CorruptionError, "missing")

    run_rig(body)


def test_a_flush_without_space_loses_nothing_and_goes_on_when_there_is_room() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 2)
        rig.disk.total_bytes = rig.disk.used_bytes() + 5000
        await asyncio.sleep(3)
        assert rig.bookie.read_only
        assert rig.facts("bookie.flush_without_space")
        await check_all(client, 5, 2)
        rig.disk.total_bytes = 1 << 40
        await asyncio.sleep(3)
        assert not rig.bookie.read_only
        assert await client.add(codec(), 3, b"3") is Status.OK
        await rig.restart()
        await check_all(await rig.connect(), 5, 3)

    run_rig(body, disk_check_interval_s=0.2, journal_preallocate_bytes=1 << 20, journal_file_bytes=1 << 20)


DELAYS_S = [step * 0.0005 for step in range(1, 12)]


def test_a_group_that_only_a_replay_saw_is_there_after_a_loss_of_power() -> None:
    replayed = []
    for delay_s in DELAYS_S:

        async def body(rig: Rig, delay_s: float = delay_s) -> None:
            codec = EntryCodec(5, DigestType.CRC32C, b"")
            client = await rig.connect()
            assert await client.add(codec, 0) is Status.OK
            client.send(AddRequest(5, 1, codec.master_key, codec.encode(1, 0, 2, b"x")))
            await asyncio.sleep(delay_s)
            answered = not client.answers.empty()
            await rig.restart(keep_unsynced=True)
            client = await rig.connect()
            found = (await client.read(5, 1)).status
            replayed.append((answered, found))
            assert found is Status.OK or not answered
            assert await client.add(codec, 2) is Status.OK
            await rig.restart(keep_unsynced=False)
            client = await rig.connect()
            assert (await client.read(5, 2)).status is Status.OK
            assert (await client.read(5, 1)).status is found

        # No flush comes in between, so all of it must come from the journal.
        run_rig(body, flush_interval_s=3600.0)
    assert (False, Status.OK) in replayed, "one of the kills came between write and sync"
