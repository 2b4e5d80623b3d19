"""A leader that is drained waits for what is at the log, and sends nothing more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.kv.held_store_log import HeldStoreLog, SetClocks, play
from tests.waiting import LIMIT_S
from triplicate.errors import EnvironmentFault, NotLeading, StoreError
from triplicate.kv import Add, Get, ReplicatedStore, StoreBatch
from triplicate.kv.core import decisions
from triplicate.kv.core.store_interface import Record
from triplicate.kv.storage.rocks_copy import RocksCopy

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


def test_whatever_a_batch_meets_fails_the_batch_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = decisions._added

    def defective(operation: Add, found: Record | None) -> bytes:
        if operation.key == b"defect":
            raise LookupError("an error that nobody expects")
        return added(operation, found)

    monkeypatch.setattr(decisions, "_added", defective)

    async def scene(store: ReplicatedStore, _log: HeldStoreLog, _clock: SetClocks) -> None:
        leadership = store.leadership
        batches = [ONE, StoreBatch([Add(b"n", 1), Add(b"defect", 1)]), ONE]
        first, refused, last = await asyncio.gather(*map(store.submit, batches), return_exceptions=True)
        assert isinstance(refused, StoreError)
        assert "LookupError" in str(refused)
        assert not isinstance(first, BaseException)
        assert not isinstance(last, BaseException)
        assert [outcome.value for outcome in (await store.submit(StoreBatch([Get(b"n")]))).outcomes] == [b"2"]
        assert store.leadership is leadership

    play(tmp_path, scene)


def test_batches_of_a_group_whose_decision_fails_with_the_copy_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    get = RocksCopy.get

    def read(self: RocksCopy, key: bytes) -> Record | None:
        if key == b"broken":
            raise EnvironmentFault("the files cannot be used")
        return get(self, key)

    monkeypatch.setattr(RocksCopy, "get", read)

    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        batches = [ONE, StoreBatch([Add(b"broken", 1)]), ONE]
        async with asyncio.timeout(LIMIT_S):
            answers = await asyncio.gather(*map(store.submit, batches), return_exceptions=True)
        assert [type(answer) for answer in answers] == [NotLeading] * 3
        assert not log.sent
        assert not store.is_leader

    play(tmp_path, scene)
