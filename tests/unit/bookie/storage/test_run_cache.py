"""Runs cached between reads always equal those of the index, and batches hold the entries that single reads find."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import add_all, codec
from tests.unit.bookie.index_rig import CACHE, PATH, Machine, run_of
from triplicate.bookie.storage import run_cache
from triplicate.bookie.storage.index import Index
from triplicate.bookie.storage.run_cache import RunCache
from triplicate.wire import Status

runs = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 25), st.integers(1, 4)), max_size=40)


@settings(max_examples=examples(60), deadline=None)
@given(runs, runs, st.lists(st.integers(0, 160), min_size=1, max_size=30), st.integers(1, 5))
def test_windows_say_what_the_index_says(
    before: list[tuple[int, int, int]], after: list[tuple[int, int, int]], asked: list[int], few: int
) -> None:
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    windows = RunCache(index)
    try:
        run_cache.FEW_RUNS, run_cache.MANY_RUNS = few, few + 2
        offset = 4096
        for part in (before, after):
            rows = []
            for first, span, flush in part:
                offset += 100
                rows.append((1, run_of(5, first, first + span, flush, offset)))
            index.add(5, (), rows, [])
            for entry_id in [*asked, *range(0, 150, 7), *range(60, 70)]:
                expected = index.runs_holding(5, entry_id)
                assert windows.holding(5, entry_id) == expected
                alone = windows.alone(5, entry_id)
                if alone is not None:
                    assert [alone[:2]] == expected
                    for further in range(entry_id, alone[2] + 1):
                        assert index.runs_holding(5, further) == expected
        index.delete_ledgers([5])
        assert windows.holding(5, asked[0]) == []
    finally:
        run_cache.FEW_RUNS, run_cache.MANY_RUNS = 4, 32
        index.close()


def test_a_bounded_number_of_windows_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_cache, "WINDOWS_MAX", 5)
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    index.add(1, (), [(1, run_of(ledger, 0, 9, offset=4096 + 100 * ledger)) for ledger in range(20)], [])
    windows = RunCache(index)
    for ledger in range(20):
        assert len(windows.holding(ledger, 3)) == 1
    assert len(windows._windows) == 0
    for ledger in range(20):
        for entry_id in range(3, 6):
            assert len(windows.holding(ledger, entry_id)) == 1
    assert len(windows._windows) == len(windows._last_read) == 5
    index.close()


async def read_everything(rig: Rig, count: int, chance: random.Random) -> None:
    client = await rig.connect()
    singles = {}
    for entry_id in range(count):
        answer = await client.read(5, entry_id)
        singles[entry_id] = answer.body if answer.status is Status.OK else None
    for _ in range(30):
        start, most, size = chance.randrange(count), chance.choice([0, 1, 3, 50]), chance.choice([1, 200, 900, 1 << 20])
        batch = await client.batch(5, start, most, size)
        if singles[start] is None:
            assert batch.status is Status.NO_ENTRY
            continue
        assert batch.status is Status.OK
        assert batch.bodies
        assert not most or len(batch.bodies) <= most
        assert len(batch.bodies) == 1 or 36 + sum(len(body) + 4 for body in batch.bodies) <= size
        for number, body in enumerate(batch.bodies):
            assert body == singles[start + number]
        behind = start + len(batch.bodies)
        full = 36 + sum(len(body) + 4 for body in batch.bodies) + len(singles.get(behind) or b"") + 4 > size
        assert full or len(batch.bodies) == most or singles.get(behind) is None


@pytest.mark.parametrize("seed", range(6))
def test_batches_hold_what_single_reads_find(seed: int) -> None:
    """Runs with gaps, runs that overlap, newer copies in the cache and in logs, and reads while it all changes."""
    chance = random.Random(seed)

    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert await client.add(codec(), 0, b"first") is Status.OK
        for _ in range(6):
            for _ in range(chance.randrange(1, 30)):
                entry_id = chance.randrange(60)
                assert await client.add(codec(), entry_id, b"%d" % chance.randrange(1000) * chance.randrange(1, 30)) is Status.OK
            await read_everything(rig, 60, chance)
            if chance.random() < 0.7:
                await rig.bookie.storage.flush()
                await read_everything(rig, 60, chance)

    run_rig(body, seed, flush_interval_s=3600.0)


def test_an_entry_added_again_is_read_as_it_is_now() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 19)
        await rig.bookie.storage.flush()
        assert (await client.batch(5, 0)).bodies[7] == (await client.read(5, 7)).body
        assert await client.add(codec(), 7, b"again", recovery=True) is Status.OK
        for _ in range(2):
            body = (await client.read(5, 7)).body
            assert body is not None
            assert codec().decode(body, 7).payload == b"again"
            batch = await client.batch(5, 5, 4)
            assert batch.bodies[2] == body
            await rig.bookie.storage.flush()

    run_rig(body, flush_interval_s=3600.0)


def test_a_damaged_size_ends_a_batch_before_it() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 19)
        await rig.bookie.storage.flush()
        stored = rig.bookie.storage.stored
        ((log, run),) = stored.index.runs_of(5)
        entry_bytes = len((await client.read(5, 0)).body or b"") + 4
        rig.disk.flip_bit(stored._paths[log], run.body_offset + 7 * entry_bytes + 3)
        await rig.restart()
        client = await rig.connect()
        assert len((await client.batch(5, 0)).bodies) == 7
        assert (await client.batch(5, 7)).status is Status.IO_ERROR
        assert len((await client.batch(5, 8)).bodies) == 12

    run_rig(body, flush_interval_s=3600.0)
