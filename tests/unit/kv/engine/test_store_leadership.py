"""A leader that is drained waits for what is at the log, and sends nothing more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.kv.held_store_log import HeldStoreLog, SetClocks, play
from triplicate.errors import NotLeading
from triplicate.kv import Add, ReplicatedStore, StoreBatch

ONE = StoreBatch([Add(b"n", 1)])


def test_a_drain_waits_for_the_groups_at_the_log_and_sends_no_other(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        log.held = True
        first = store.submit(ONE)
        await log.has_sent(1)
        draining = asyncio.get_running_loop().create_task(store.drain())
        later = [store.submit(ONE) for _ in range(20)]
        await asyncio.sleep(0.02)
        assert not draining.done(), "a group is at the log"
        log.release()
        assert await draining
        assert (await first).position == 1
        await asyncio.sleep(0.02)
        assert len(log.sent) == 1
        assert store.leadership is not None
        store.leadership._finish()
        for answer in later:
            with pytest.raises(NotLeading):
                await answer

    play(tmp_path, scene)


def test_a_drain_that_the_log_does_not_end_in_time_lets_the_leader_go_on(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        log.held = True
        assert store.leadership is not None
        first = store.submit(ONE)
        await log.has_sent(1)
        assert not await store.leadership.drain(0.02)
        log.held = False
        second = store.submit(ONE)
        log.release()
        assert [(await answer).position for answer in (first, second)] == [1, 2]

    play(tmp_path, scene)


def test_a_drain_without_anything_at_the_log_ends_at_once(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        assert await store.drain()
        later = store.submit(ONE)
        await asyncio.sleep(0.02)
        assert not later.done()
        assert not log.sent

    play(tmp_path, scene)
