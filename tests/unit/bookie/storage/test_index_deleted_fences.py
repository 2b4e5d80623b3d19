"""A ledger that was fenced and then deleted stays fenced: over crashes, a rebuild of the index, and the end of the log that says so."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import RawClient, Rig, run_rig
from tests.unit.bookie.index_rig import CACHE, PATH, Machine
from triplicate.bookie.core.ledger_data import LedgerData, decode_state, encode_state
from triplicate.bookie.storage import index as index_module
from triplicate.bookie.storage.index import Index
from triplicate.errors import CorruptionError, FormatError
from triplicate.ledger import EntryCodec
from triplicate.wire import Status

LEDGERS = "/data/ledgers/current"


async def fenced_ledger(rig: Rig, ledger_id: int = 2) -> tuple[EntryCodec, RawClient]:
    ledger = await rig.create_ledger(ledger_id)
    client = await rig.connect()
    assert await client.add(ledger, 0) is Status.OK
    await client.fence(ledger)
    return ledger, client


async def stays_fenced(rig: Rig, ledger: EntryCodec) -> None:
    client = await rig.connect()
    assert await client.add(ledger, 1) is Status.FENCED
    assert (await client.fence(ledger)).status is Status.NO_LEDGER
    assert (await client.read(ledger.ledger_id, 0)).status is Status.NO_LEDGER


def lose_index(rig: Rig) -> None:
    for name in ("index.db", "index.db-commits"):
        rig.disk.names.live.pop(f"{LEDGERS}/{name}")
        rig.disk.names.durable.pop(f"{LEDGERS}/{name}", None)


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_fence_outlives_its_ledger_and_a_loss_of_power(flushed: bool, in_memory: bool) -> None:
    async def body(rig: Rig) -> None:
        ledger, _ = await fenced_ledger(rig)
        if flushed:
            await rig.bookie.storage.flush()
        if not in_memory:
            # Nobody has asked for the ledger since: only the index or the journal's replay knows it.
            await rig.restart()
        await rig.delete_ledger(2)
        assert await rig.bookie.collect_garbage() == 1
        await stays_fenced(rig, ledger)
        await rig.restart()
        await stays_fenced(rig, ledger)
        assert await rig.bookie.collect_garbage() == 0

    run_rig(body, flush_interval_s=3600.0)


def test_a_fence_outlives_its_ledger_and_the_index() -> None:
    async def body(rig: Rig) -> None:
        ledger, client = await fenced_ledger(rig)
        other = await rig.create_ledger(3)
        assert await client.add(other, 0) is Status.OK
        await rig.bookie.storage.flush()
        await rig.delete_ledger(2)
        assert await rig.bookie.collect_garbage() == 1
        await rig.node.stop()
        lose_index(rig)
        rig.node.crash()
        await rig.node.start()
        assert rig.bookie.storage.stored.rebuilt
        await stays_fenced(rig, ledger)
        assert rig.bookie.storage.stored.index.ledger_ids() == [3]
        assert rig.bookie.storage.stored.index.runs_of(2) == []

    run_rig(body)


def test_a_crash_at_any_step_of_a_deletion_leaves_the_ledger_or_its_fence() -> None:
    tried = 0
    for step in range(200):
        happened: list[str] = []

        async def body(rig: Rig, step: int = step, happened: list[str] = happened) -> None:
            ledger, client = await fenced_ledger(rig)
            await rig.bookie.storage.flush()
            assert (await client.read(2, 0)).status is Status.OK
            await rig.delete_ledger(2)
            rig.kill_at(step, happened)
            deletion = asyncio.ensure_future(rig.bookie.collect_garbage())
            await asyncio.sleep(1)
            rig.disk.before_operation = None
            deletion.cancel()
            if not happened:
                return
            await rig.node.start()
            client = await rig.connect()
            assert await client.add(ledger, 1) is Status.FENCED
            await rig.bookie.collect_garbage()
            await rig.restart()
            await stays_fenced(rig, ledger)

        run_rig(body, seed=step, flush_interval_s=3600.0)
        if not happened:
            break
        tried += 1
    assert tried >= 4


def test_a_fence_is_carried_out_of_a_log_that_goes() -> None:
    async def body(rig: Rig) -> None:
        ledger, client = await fenced_ledger(rig)
        await rig.bookie.storage.flush()
        await rig.delete_ledger(2)
        assert await rig.bookie.collect_garbage() == 1
        stored = rig.bookie.storage.stored
        (log,) = [log for log in stored.index.log_sizes() if stored.index.lives_in(log)[1]]
        await rig.restart()
        other = await rig.create_ledger(3)
        client = await rig.connect()
        assert await client.add(other, 0) is Status.OK
        await rig.bookie.storage.flush()
        await rig.bookie.collect_garbage()
        stored = rig.bookie.storage.stored
        assert stored.index.lives_in(log) == (False, False)
        assert f"{log:016d}.entries" not in rig.files(LEDGERS)
        await rig.restart()
        await stays_fenced(rig, ledger)
        await rig.node.stop()
        lose_index(rig)
        rig.node.crash()
        await rig.node.start()
        await stays_fenced(rig, ledger)

    run_rig(body)


def test_what_a_flush_holds_of_a_deleted_ledger_does_not_come_back() -> None:
    """The deletion comes while a flush waits for space; the flush goes on afterwards with what it took before."""

    async def body(rig: Rig) -> None:
        ledger, client = await fenced_ledger(rig)
        kept = await rig.create_ledger(3)
        assert await client.add(kept, 0) is Status.OK
        await rig.delete_ledger(2)
        full = True

        def refuse(kind: str, path: str) -> None:
            if full and kind in ("write", "create") and path.endswith(".entries"):
                raise OSError(28, "No space left on device", path)

        rig.disk.before_operation = refuse
        flush = asyncio.ensure_future(rig.bookie.storage.flush())
        await asyncio.sleep(0.5)
        with pytest.raises(OSError, match="No space"):
            await rig.bookie.collect_garbage()
        assert (await client.fence(ledger)).status is Status.NO_LEDGER
        full = False
        await flush
        await asyncio.sleep(3)
        assert await rig.bookie.collect_garbage() == 0
        await stays_fenced(rig, ledger)
        assert rig.bookie.storage.stored.index.runs_of(2) == []
        await rig.restart()
        await rig.bookie.collect_garbage()
        await stays_fenced(rig, ledger)
        assert (await (await rig.connect()).read(3, 0)).status is Status.OK

    run_rig(body, flush_interval_s=3600.0)


def test_a_bounded_number_of_deleted_ledgers_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "TOMBSTONES_MAX", 20)
    monkeypatch.setattr(index_module, "TOMBSTONES_SLACK", 5)
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    for flush in range(1, 31):
        index.add(flush, [(1, LedgerData(flush, b"k", True).tombstone())], (), [(1, 100)])
    assert 20 <= index.count("deleted") <= 25
    assert index.tombstone(1) is None
    assert index.tombstone(30) == LedgerData(30, b"k", True, deleted=True)
    index.close()


def test_an_index_of_the_first_version_is_taken_over() -> None:
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    index.add(1, [(1, LedgerData(5, b"k" * 20, True))], [], [(1, 99)])
    assert index._database is not None
    with index._database:
        for sql in ("DROP TABLE deleted", "DROP TABLE missing", "UPDATE facts SET value = 1 WHERE name = 'version'"):
            index._database.execute(sql)
    machine.crash()
    again = Index(machine.disk, PATH, CACHE)
    assert again.fact("version") == 2
    assert again.ledger_ids() == [5]
    assert again.count("deleted") == 0
    again.close()


def test_a_record_of_a_deleted_ledger_is_of_a_version_that_older_releases_refuse() -> None:
    state = LedgerData(5, b"k" * 20, True, b"l" * 20).tombstone()
    data = encode_state(state)
    assert data[0] == 2
    assert decode_state(data) == state
    assert encode_state(LedgerData(5, b"k"))[0] == 1
    with pytest.raises(FormatError, match="version 1, flags 0x9"):
        decode_state(b"\x01" + data[1:])
    with pytest.raises(FormatError, match="version 3"):
        decode_state(b"\x03" + data[1:])
    with pytest.raises(CorruptionError):
        decode_state(data[:-1])
