"""A leader decides batches in order, shows nothing before the log has it, and answers nothing that another leader may contradict."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.kv.held_store_log import HeldStoreLog, SetClocks, play, store_at
from tests.waiting import eventually
from triplicate.errors import ArgumentError, LevelNotMet, LogFenced, NotLeading, StoreOutcomeUnknown, StoreUnavailable, WrongValue
from triplicate.kv import (
    ALL_KEYS,
    ANY,
    LINEARIZABLE,
    Add,
    Append,
    Delete,
    Expire,
    Expiry,
    Get,
    KeyExists,
    KeyRange,
    Operation,
    Put,
    ReplicatedStore,
    StoreBatch,
    ValueIs,
    VersionIs,
    When,
    bounded,
    session,
)
from triplicate.kv.engine.batch_queue import BatchQueue, QueuedBatch

LEASE_S = 10.0


def test_nothing_is_visible_before_the_log_acknowledges(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        log.held = True
        answer = store.submit(StoreBatch([Put(b"a", b"1")]))
        await log.has_sent(1)
        assert (await store.get(b"a", ANY)).record is None
        assert not answer.done()
        log.release()
        result = await answer
        record = (await store.get(b"a", ANY)).record
        assert record is not None
        assert (record.value, record.version, result.position, store.position) == (b"1", 1, 1, 1)

    play(tmp_path, scene, LEASE_S)


def test_later_batches_are_decided_on_groups_that_are_still_at_the_log(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        log.held = True
        first = store.submit(StoreBatch([Add(b"n", 1)]))
        await log.has_sent(1)
        others = [store.submit(StoreBatch([Add(b"n", 1)])) for _ in range(20)]
        refused = store.submit(StoreBatch([Put(b"n", b"x")], [KeyExists(b"n", expected=False)]))
        await log.has_sent(2)
        # The later entry is acknowledged first: no answer may come before the earlier one's.
        log.release_at(1)
        await asyncio.sleep(0)
        assert not any(answer.done() for answer in (first, refused, *others))
        log.release()
        assert [(await answer).outcomes[0].value for answer in (first, *others)] == [b"%d" % number for number in range(1, 22)]
        assert not (await refused).held
        assert len(log.sent) == 2

    play(tmp_path, scene, LEASE_S)


def test_an_append_without_outcome_leaves_changes_unknown_and_nothing_visible(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        log.held = True
        changed = store.submit(StoreBatch([Put(b"a", b"1")]))
        refused = store.submit(StoreBatch([Put(b"a", b"2")], [VersionIs(b"a", 7)]))
        await log.has_sent(1)
        waiting = store.submit(StoreBatch([Put(b"b", b"1")]))
        log.release_at(0, LogFenced("another node leads"))
        with pytest.raises(StoreOutcomeUnknown):
            await changed
        for answer in (refused, waiting):
            with pytest.raises(NotLeading):
                await answer
        await eventually(lambda: not store.is_leader)
        assert (await store.get(b"a", ANY)).record is None
        with pytest.raises(NotLeading):
            store.submit(StoreBatch([Put(b"a", b"1")]))
        with pytest.raises(NotLeading):
            await store.get(b"a")

    play(tmp_path, scene, LEASE_S)


def test_a_batch_whose_condition_fails_changes_nothing(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        first = await store.execute(StoreBatch([Put(b"a", b"1"), Put(b"b", b"1")]))
        for condition in (ValueIs(b"a", b"2"), VersionIs(b"a", first.position + 1), KeyExists(b"a", expected=False), ValueIs(b"c", b"")):
            answer = await store.execute(StoreBatch([Put(b"a", b"9"), Delete(b"b")], [condition]))
            assert not answer.held
        await store.execute(StoreBatch([Put(b"a", b"2")], [ValueIs(b"a", b"1"), VersionIs(b"b", first.position), ValueIs(b"c", None)]))
        found = await store.get_many([b"a", b"b", b"c"])
        assert [record and record.value for record in found.records] == [b"2", b"1", None]
        assert len(log.sent) == 2

    play(tmp_path, scene)


def test_a_batch_that_fails_changes_nothing_and_one_that_goes_on_changes_the_rest(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        await store.put(b"a", b"text")
        operations: list[Operation] = [Put(b"b", b"1"), Add(b"a", 1), Append(b"b", b"2")]
        with pytest.raises(WrongValue):
            await store.execute(StoreBatch(operations))
        assert (await store.get(b"b")).record is None
        result = await store.execute(StoreBatch(operations, continues_after_errors=True))
        assert [outcome.applied for outcome in result.outcomes] == [True, False, True]
        assert isinstance(result.outcomes[1].error, WrongValue)
        assert result.outcomes[2].value == b"12"

    play(tmp_path, scene)


def test_requests_beyond_the_limits_are_refused_and_change_nothing(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        for key, value in ((b"", b""), (b"k" * 4097, b""), (b"k", b"v" * 1001)):
            with pytest.raises(ArgumentError):
                store.submit(StoreBatch([Put(key, value)]))
        with pytest.raises(ArgumentError):
            store.submit(StoreBatch([]))
        with pytest.raises(ArgumentError):
            store.submit(StoreBatch([Put(b"k", b"", Expiry(at_ms=1, after_ms=1))]))
        await store.put(b"k", b"v" * 1000)
        with pytest.raises(WrongValue):
            await store.execute(StoreBatch([Append(b"k", b"v")]))
        large = StoreBatch([Put(b"k%d" % number, b"v" * 1000) for number in range(3900)])
        await store.execute(large)
        with pytest.raises(ArgumentError, match="send it in parts"):
            store.submit(StoreBatch([Put(b"k%d" % number, b"v" * 1000) for number in range(4100)]))
        assert (await store.count()).number == 3901

    play(tmp_path, scene)


WRONG_BATCHES: dict[str, StoreBatch] = {
    "a text as key": StoreBatch([Put("k", b"")]),  # type: ignore[arg-type]
    "a bytearray as key": StoreBatch([Delete(bytearray(b"k"))]),  # type: ignore[arg-type]
    "a text as value": StoreBatch([Put(b"k", "v")]),  # type: ignore[arg-type]
    "no value": StoreBatch([Put(b"k", None)]),  # type: ignore[arg-type]
    "a text as suffix": StoreBatch([Append(b"k", "v")]),  # type: ignore[arg-type]
    "a fraction as amount": StoreBatch([Add(b"k", 1.5)]),  # type: ignore[arg-type]
    "a fraction as deadline": StoreBatch([Put(b"k", b"v", Expiry(after_ms=1.5))]),  # type: ignore[arg-type]
    "a number as expiry": StoreBatch([Expire(b"k", 1000)]),  # type: ignore[arg-type]
    "a text as a put's condition": StoreBatch([Put(b"k", b"v", when="if absent")]),  # type: ignore[arg-type]
    "a condition as operation": StoreBatch([KeyExists(b"k")]),  # type: ignore[list-item]
    "an operation as condition": StoreBatch([], [Get(b"k")]),  # type: ignore[list-item]
    "a text as condition's value": StoreBatch([Get(b"k")], [ValueIs(b"k", "v")]),  # type: ignore[arg-type]
    "a text as version": StoreBatch([Get(b"k")], [VersionIs(b"k", "1")]),  # type: ignore[arg-type]
}


def test_batches_of_wrong_types_are_refused_where_they_are_submitted_and_harm_no_other(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        taken: list[str] = []
        for number, (name, batch) in enumerate(WRONG_BATCHES.items()):
            before = store.submit(StoreBatch([Put(b"before", b"1")]))
            try:
                store.submit(batch)
                taken.append(name)
            except ArgumentError:
                assert (await before).position == number + 1
        assert not taken
        assert store.is_leader

    play(tmp_path, scene)


def test_reads_and_watches_of_wrong_types_are_refused_where_they_are_made(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        wrong: Any = "text"
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: store.get(wrong),
            lambda: store.get_many([b"k", wrong]),
            lambda: store.scan(KeyRange(wrong)),
            lambda: store.scan(KeyRange(b"", wrong)),
            lambda: store.scan(wrong),
            lambda: store.count(wrong),
            lambda: store.scan(ALL_KEYS, wrong),
            lambda: store.count(KeyRange(wrong)),
            lambda: store.watch(wrong),
            lambda: store.watch(b"", wrong),
        ]
        for call in calls:
            with pytest.raises(ArgumentError, match=" not str"):
                await call()
        with pytest.raises(ArgumentError, match="not str"):
            store.try_get(wrong)
        await store.put(b"k", b"1")

    play(tmp_path, scene)


def test_a_deposed_leader_answers_nothing_after_its_lease(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, clock: SetClocks) -> None:
        await store.put(b"a", b"1")
        assert store.try_get(b"a") is not None
        log.held = True
        clock.now += LEASE_S
        assert store.try_get(b"a") is None
        read = asyncio.ensure_future(store.get(b"a"))
        condition = store.submit(StoreBatch([Put(b"a", b"2")], [KeyExists(b"a", expected=False)]))
        await log.has_sent(1)
        assert not read.done()
        assert not condition.done()
        log.release(LogFenced("another node leads"))
        for answer in (read, condition):
            with pytest.raises(NotLeading):
                await answer

    play(tmp_path, scene, LEASE_S)


def test_answers_say_how_old_they_are(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, clock: SetClocks) -> None:
        await store.put(b"a", b"1")
        for level in (LINEARIZABLE, ANY, session(1), bounded(1.0)):
            answers = await store.get(b"a", level), await store.get_many([b"a", b"b"], level), await store.scan(ALL_KEYS, 10, level)
            assert [answer.age_s for answer in answers] == [0.0, 0.0, 0.0]
            assert (await store.count(ALL_KEYS, level)).age_s == 0.0
        # Beyond the lease another node may lead, so a weaker read is as old as the last proof that this one did.
        clock.now += LEASE_S + 2.0
        assert (await store.get(b"a", ANY)).age_s == (await store.scan(ALL_KEYS, 10, session(1))).age_s == LEASE_S + 2.0
        assert (await store.get(b"a")).age_s == 0.0
        log.held = True
        changed = store.submit(StoreBatch([Put(b"a", b"2")]))
        await log.has_sent(1)
        log.release(LogFenced("another node leads"))
        with pytest.raises(StoreOutcomeUnknown):
            await changed
        await eventually(lambda: not store.is_leader)
        # It has followed nothing yet.
        assert (await store.get(b"a", ANY)).age_s is None
        with pytest.raises(LevelNotMet, match="of unknown age"):
            await store.get(b"a", bounded(1e9, wait_s=0.0))

    play(tmp_path, scene, LEASE_S)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, True, "1", None])
def test_a_level_that_cannot_be_is_refused(number: Any) -> None:
    for level in (session, bounded, partial(session, 1), partial(bounded, 1.0)):
        with pytest.raises(ArgumentError, match="not "):
            level(number)
    with pytest.raises(ArgumentError):
        session(1 << 63)
    assert (session(0).position, bounded(0).age_s) == (0, 0)


def test_the_lease_counts_from_the_sending_of_an_append(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, clock: SetClocks) -> None:
        clock.now += LEASE_S
        log.held = True
        answer = store.submit(StoreBatch([Put(b"a", b"1")]))
        await log.has_sent(1)
        clock.now += LEASE_S - 1.0
        log.release()
        await answer
        assert store.try_get(b"a") is not None
        clock.now += 1.0
        log.held = True
        assert store.try_get(b"a") is None

    play(tmp_path, scene, LEASE_S)


def test_a_group_that_waits_for_the_append_of_a_later_group_is_answered(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        await store.put(b"a", b"1")
        log.held = True
        read = asyncio.ensure_future(store.get(b"a"))
        await log.has_sent(1)
        refused = store.submit(StoreBatch([Put(b"a", b"2")], [KeyExists(b"a", expected=False)]))
        await asyncio.sleep(0)
        changes = [store.submit(StoreBatch([Put(b"b", b"1")])) for _ in range(20)]
        await log.has_sent(2)
        log.release()
        log.held = False
        assert not (await refused).held
        assert (await read).record is not None
        for change in changes:
            await change

    play(tmp_path, scene)


def test_a_successor_waits_for_the_lease_of_its_predecessor(tmp_path: Path) -> None:
    async def scene() -> None:
        store, clock = store_at(tmp_path, LEASE_S)
        await store.open()
        log = HeldStoreLog(epoch=2)
        leading = asyncio.get_running_loop().create_task(store._lead(log, lambda: None), name="leading")
        clock.wall_ms += 1
        for _ in range(5):
            await asyncio.sleep(0)
        assert not store.is_leader
        assert log.noops == 0
        leading.cancel()
        await asyncio.wait([leading])
        await store.close()

    asyncio.run(scene())


def test_keys_expire_by_the_leaders_clock_and_stay_expired_at_a_slower_one(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, clock: SetClocks) -> None:
        await store.execute(StoreBatch([Put(b"a", b"1", Expiry(after_ms=1000)), Put(b"b", b"1", Expiry(at_ms=clock.wall_ms + 1000))]))
        found = store.try_get(b"a")
        assert found is not None
        assert found.record is not None
        assert found.record.deadline_ms - found.time_ms == 1000
        clock.wall_ms += 1000
        # The expiry is in the log before it is answered.
        assert store.try_get(b"a") is None
        assert (await store.get(b"a")).record is None
        clock.wall_ms -= 900
        assert (await store.get(b"a")).record is None
        found = store.try_get(b"b")
        assert found is not None
        assert found.record is None
        assert (await store.put(b"a", b"2", when=When.IF_PRESENT))[0].applied is False
        assert (await store.count()).number == 0

    play(tmp_path, scene, LEASE_S)


def test_a_followers_own_clock_hides_nothing(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, clock: SetClocks) -> None:
        await store.execute(StoreBatch([Put(b"a", b"1", Expiry(after_ms=10_000))]))
        follower, follower_clock = store_at(tmp_path / "follower")
        await follower.open()
        follower_clock.wall_ms += 1_000_000
        await follower._worker.run(follower._local.apply, log.sent)
        follower._committed((), follower._state)
        assert (await follower.get(b"a", ANY)).record is not None
        assert [item.key for item in (await follower.scan(ALL_KEYS, level=ANY)).items] == [b"a"]
        await follower.close()

    play(tmp_path, scene, LEASE_S)


def test_expired_keys_are_deleted_by_entries_of_the_log(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, clock: SetClocks) -> None:
        watch = await store.watch()
        await store.execute(StoreBatch([Put(b"k%02d" % number, b"1", Expiry(after_ms=1000 + number)) for number in range(20)]))
        await store.put(b"stays", b"1")
        clock.wall_ms += 1010
        await eventually(lambda: store._state.keys == 10)
        clock.wall_ms += 1_000
        await eventually(lambda: store._state.keys == 1)
        kinds = []
        async for changes in watch:
            kinds += [change.kind.value for change in changes]
            if len(kinds) == 41:
                break
        assert sorted(kinds) == ["expire"] * 20 + ["put"] * 21

    play(tmp_path, scene, LEASE_S)


def test_a_full_queue_delays_the_deletion_of_expired_keys_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, clock: SetClocks) -> None:
        await store.put(b"a", b"1", expiry=Expiry(after_ms=10))
        refused = 0

        def refuse(self: BatchQueue, batch: StoreBatch, size_bytes: int) -> QueuedBatch:
            nonlocal refused
            refused += 1
            raise StoreUnavailable("full")

        with monkeypatch.context() as patched:
            patched.setattr(BatchQueue, "add", refuse)
            clock.wall_ms += 10
            await eventually(lambda: refused > 1)
        await eventually(lambda: store._state.keys == 0)
        assert store.is_leader

    play(tmp_path, scene, LEASE_S)


def test_keys_of_any_length_expire_by_one_read(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, clock: SetClocks) -> None:
        keys = [b"%04d" % number + b"k" * 4092 for number in range(2000)]
        for begin in range(0, 2000, 500):
            await store.execute(StoreBatch([Put(key, b"", Expiry(after_ms=1000)) for key in keys[begin : begin + 500]]))
        clock.wall_ms += 1000
        assert (await store.get_many(keys)).records == [None] * 2000

    play(tmp_path, scene, LEASE_S)


def test_pages_of_a_scan_join_to_the_range(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        keys = [b"a\xff", b"a\xff\xff", b"b", b"\xff", b"\xff\xff", b"a", b"a\x00"]
        await store.execute(StoreBatch([Put(key, b"v") for key in keys]))
        for keys_of, expected in (
            (ALL_KEYS, sorted(keys)),
            (KeyRange.prefix(b"a"), [b"a", b"a\x00", b"a\xff", b"a\xff\xff"]),
            (KeyRange.prefix(b"a\xff"), [b"a\xff", b"a\xff\xff"]),
            (KeyRange.prefix(b"\xff"), [b"\xff", b"\xff\xff"]),
            (KeyRange(b"a\x00", b"b"), [b"a\x00", b"a\xff", b"a\xff\xff"]),
        ):
            for limit in (1, 2, 200):
                found, rest = [], keys_of
                while True:
                    page = await store.scan(rest, limit, with_values=limit != 2)
                    found += [item.key for item in page.items]
                    if page.cursor is None:
                        break
                    rest = keys_of.from_cursor(page.cursor)
                assert found == expected
            assert (await store.count(keys_of)).number == len(expected)

    play(tmp_path, scene, LEASE_S)


def test_reads_inside_a_batch_see_the_operations_before_them(tmp_path: Path) -> None:
    async def scene(store: ReplicatedStore, log: HeldStoreLog, _clock: SetClocks) -> None:
        result = await store.execute(StoreBatch([Get(b"a"), Put(b"a", b"1"), Get(b"a"), Delete(b"a", returns_old=True), Get(b"a")]))
        assert [(outcome.applied, outcome.value) for outcome in result.outcomes] == [
            (False, None),
            (True, None),
            (True, b"1"),
            (True, b"1"),
            (False, None),
        ]
        assert result.position == 0
        assert not log.sent

    play(tmp_path, scene, LEASE_S)
