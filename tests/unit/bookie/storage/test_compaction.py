"""Compaction: what lives moves, what is dead goes, and no crash, flush, deletion or read in between is worse off."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.examples import stride
from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.compaction_rig import FENCED, KEPT, ROUNDS, check, fill, logs, payload
from tests.unit.bookie.crash_rig import LEDGERS, lose_index
from tests.waiting import eventually
from triplicate.bookie.storage import compaction, run_copier
from triplicate.wire import Status


def bytes_of(rig: Rig) -> int:
    return sum(rig.disk.names.live[f"{LEDGERS}/{name}"].live.size for name in logs(rig))


def test_what_lives_moves_and_the_space_of_the_rest_comes_back() -> None:
    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        before, size = logs(rig), bytes_of(rig)
        assert await rig.bookie.compact(0.8) >= 3
        assert bytes_of(rig) < size / 3
        assert len(set(before) & set(logs(rig))) <= 2
        await check(rig, codecs)
        assert await rig.bookie.compact(0.8) == 0
        await rig.restart()
        await check(rig, codecs)
        rig.node.crash()
        lose_index(rig)
        await rig.node.start()
        await check(rig, codecs, gone=False)
        fact = rig.facts("bookie.log_compacted")[0]
        assert dict(fact.facts)["freed_bytes"] > 0

    run_rig(body, flush_interval_s=3600.0)


@pytest.mark.parametrize("part_bytes", [300, 5000])
def test_big_runs_are_copied_in_parts(monkeypatch: pytest.MonkeyPatch, part_bytes: int) -> None:
    monkeypatch.setattr(compaction, "PORTION_BYTES", part_bytes)
    monkeypatch.setattr(run_copier, "BATCH_RUNS", 2)

    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        assert await rig.bookie.compact(0.8) >= 3
        await check(rig, codecs)
        await rig.restart()
        await check(rig, codecs)

    run_rig(body, flush_interval_s=3600.0)


def test_a_batch_that_fills_a_log_goes_on_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        stored = rig.bookie.storage.stored
        monkeypatch.setattr(stored.copier._writer, "_log_bytes", 4096 + 3000)
        monkeypatch.setattr(compaction, "PORTION_BYTES", 2000)
        collect = asyncio.ensure_future(keep_collecting(rig))
        assert await rig.bookie.compact(0.8) >= 3
        collect.cancel()
        await check(rig, codecs)
        await rig.restart()
        await check(rig, codecs)

    run_rig(body, flush_interval_s=3600.0)


async def keep_collecting(rig: Rig) -> None:
    while True:
        await rig.bookie.storage.delete_dead_logs()
        await asyncio.sleep(0.001)


def test_compaction_runs_by_itself_and_no_faster_than_it_may() -> None:
    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        living = sum(dict(fact.facts)["living_bytes"] for fact in rig.facts("bookie.log_compacted"))
        assert living == 0
        began = asyncio.get_running_loop().time()
        await eventually(lambda: len(logs(rig)) <= 3, 600)
        took = asyncio.get_running_loop().time() - began
        copied = sum(dict(fact.facts)["living_bytes"] for fact in rig.facts("bookie.log_compacted"))
        assert copied / took <= 4096
        await check(rig, codecs)

    run_rig(body, flush_interval_s=3600.0, compaction_threshold=0.5, compaction_interval_s=5.0, compaction_bytes_per_s=4096)


def test_flushes_and_deletions_go_on_during_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "PORTION_BYTES", 1000)

    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        running = asyncio.ensure_future(rig.bookie.compact(0.8))
        client = await rig.connect()
        flushes = rig.bookie.storage.flusher.flushes
        for entry_id in range(ROUNDS * 8, ROUNDS * 8 + 20):
            assert await client.add(codecs[KEPT], entry_id, payload(KEPT, entry_id)) is Status.OK
            await rig.bookie.storage.flush()
        assert rig.bookie.storage.flusher.flushes == flushes + 20
        assert not running.done()
        await rig.delete_ledger(KEPT)
        assert await rig.bookie.collect_garbage() == 1
        await running
        assert (await client.read(KEPT, 0)).status is Status.NO_LEDGER
        assert rig.bookie.storage.stored.index.runs_of(KEPT) == []
        assert await client.add(codecs[FENCED], 1) is Status.FENCED

    run_rig(body, flush_interval_s=3600.0, compaction_bytes_per_s=20_000)


def test_nothing_is_copied_where_the_disk_lacks_room() -> None:
    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        before = logs(rig)
        rig.disk.fill(free_bytes=20_000)
        assert await rig.bookie.compact(0.8) == 0
        assert logs(rig) == before
        assert rig.facts("bookie.compaction_lacks_room")
        rig.disk.relieve()
        await check(rig, codecs)
        assert await rig.bookie.compact(0.8) >= 3
        await check(rig, codecs)

    run_rig(body, flush_interval_s=3600.0, recovery_adds_free_bytes=15_000, disk_check_interval_s=3600.0)


def test_a_disk_that_fills_in_between_loses_nothing() -> None:
    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        writes = 0

        def refuse(kind: str, path: str) -> None:
            nonlocal writes
            if kind == "write" and path.endswith(".entries"):
                writes += 1
                if writes > 2:
                    raise OSError(28, "No space left on device", path)

        rig.disk.before_operation = refuse
        with pytest.raises(OSError, match="No space"):
            await rig.bookie.compact(0.8)
        rig.disk.before_operation = None
        await check(rig, codecs)
        assert await rig.bookie.compact(0.8) >= 1
        await check(rig, codecs)
        await rig.restart()
        await check(rig, codecs)

    run_rig(body, flush_interval_s=3600.0)


def test_a_damaged_run_stays_where_it_is() -> None:
    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        stored = rig.bookie.storage.stored
        log, run = stored.index.runs_holding(KEPT, 20)[0]
        path = stored._paths[log]
        rig.disk.flip_bit(path, run.offset + 70)
        await rig.bookie.compact(0.8)
        assert dict(rig.facts("bookie.compaction_met_damage")[0].facts)["log"] == log
        assert path.rpartition("/")[2] in logs(rig)
        client = await rig.connect()
        assert (await client.read(KEPT, 20)).status is Status.IO_ERROR
        assert (await client.read(KEPT, 0)).status is Status.OK
        assert await client.add(codecs[FENCED], 1) is Status.FENCED
        rig.disk.flip_bit(path, run.offset + 70)
        await rig.restart()
        assert await rig.bookie.compact(0.8) >= 1
        await check(rig, codecs)

    run_rig(body, flush_interval_s=3600.0)


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_damaged_run_goes_when_all_of_its_entries_are_stored_again(lacking: int) -> None:
    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        stored = rig.bookie.storage.stored
        log, run = stored.index.runs_holding(KEPT, 20)[0]
        name = stored._paths[log].rpartition("/")[2]
        rig.disk.flip_bit(stored._paths[log], run.offset + 70)
        client = await rig.connect()
        for entry_id in range(run.first, run.last + 1 - lacking):
            assert await client.add(codecs[KEPT], entry_id, payload(KEPT, entry_id), recovery=True) is Status.OK
        await rig.bookie.storage.flush()
        await rig.bookie.compact(0.8)
        assert (name in logs(rig)) == (bool(lacking))
        assert bool(rig.facts("bookie.compaction_met_damage")) == (bool(lacking))
        if lacking:
            assert (await client.read(KEPT, run.last)).status is Status.IO_ERROR, "its only copy may be restored from a backup"
            return
        await check(rig, codecs)
        await rig.restart()
        await check(rig, codecs)
        lose_index(rig)
        await rig.restart()
        await check(rig, codecs, gone=False)

    run_rig(body, flush_interval_s=3600.0)


def crash_at(step: int, *, keep_unsynced: bool, rebuild: bool) -> bool:
    """Kill before one operation of a compaction; False when there are no more."""
    happened: list[str] = []

    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        rig.kill_at(step, happened, keep_unsynced=keep_unsynced)
        running = asyncio.ensure_future(rig.bookie.compact(0.8))
        await asyncio.sleep(3)
        rig.disk.before_operation = None
        running.cancel()
        if not happened:
            return
        if rebuild:
            lose_index(rig)
        await rig.node.start()
        await check(rig, codecs, gone=False)
        await rig.bookie.collect_garbage()
        await rig.bookie.compact(0.8)
        await check(rig, codecs)
        await rig.restart()
        await check(rig, codecs)

    run_rig(body, seed=step, flush_interval_s=3600.0)
    return bool(happened)


@pytest.mark.parametrize(("keep_unsynced", "rebuild", "every"), [(False, False, 1), (True, False, 4), (False, True, 4)])
def test_a_crash_at_any_step_of_a_compaction_loses_nothing(keep_unsynced: bool, rebuild: bool, every: int) -> None:
    step = 0
    while crash_at(step, keep_unsynced=keep_unsynced, rebuild=rebuild):
        step += stride(every)
    assert step > 20


def test_copies_that_a_rebuild_finds_twice_count_once() -> None:
    async def body(rig: Rig) -> None:
        codecs = await fill(rig)
        stored = rig.bookie.storage.stored
        runs = len(stored.index.runs_of(KEPT))
        stored.forget_logs = lambda logs: None  # type: ignore[method-assign]
        stored.delete_logs = lambda logs: 0  # type: ignore[method-assign]
        assert await rig.bookie.compact(0.8) >= 3
        rig.node.crash()
        lose_index(rig)
        await rig.node.start()
        stored = rig.bookie.storage.stored
        assert len(stored.index.runs_of(KEPT)) == runs
        await check(rig, codecs, gone=False)

    run_rig(body, flush_interval_s=3600.0)


def test_a_compacted_log_is_looked_at_alone() -> None:
    async def body(rig: Rig) -> None:
        await fill(rig)
        index = rig.bookie.storage.stored.index
        rows, seen = index._rows, dict[str, int]()

        def counted(sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
            found = rows(sql, parameters)
            if "EXISTS" in sql or "DISTINCT" in sql or "UNION" in sql:
                seen[sql] = seen.get(sql, 0) + len(found)
            return found

        index._rows = counted  # type: ignore[method-assign]
        before = len(logs(rig))
        compacted = await rig.bookie.compact(0.8)
        assert 3 <= compacted < before
        assert sum(seen.values()) <= 2 * compacted

    run_rig(body, flush_interval_s=3600.0)
