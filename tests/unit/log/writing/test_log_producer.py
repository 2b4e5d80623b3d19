"""Producers: repetitions on their way, after a crash, after take-overs, rolls and broken segments; and what a log without them pays."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from tests.unit.log.fake import SMALL, FakeAppender, Stage, play, read_values
from tests.unit.log.head_rig import count_reads, lose_connection
from tests.unit.log.publish_rig import staged
from tests.waiting import eventually
from triplicate.errors import (
    ArgumentError,
    HandleClosed,
    LogFenced,
    OutcomeUnknown,
    ProducerFenced,
    RecordTooLarge,
    SequenceGap,
    TooManyProducers,
)
from triplicate.log import Appended, LogClientSettings, Logs, LogSettings, StagingOrigin, decode_header
from triplicate.log.core import producer_table


async def names_of(logs: Logs, name: str = "l") -> list[bytes | None]:
    return [record.value async for record in logs.records(name, to="latest")]


def test_an_older_instance_appends_nothing_once_a_newer_one_was_opened() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l") as writer:
            old = await writer.producer("one", epoch=1)
            await old.append(b"a", sequence=0)
            new = await writer.producer("one", epoch=2)
            first = (new.last_sequence or 0) + 1
            with pytest.raises(ProducerFenced, match="opened in epoch 2"):
                await old.append(b"of the old one", sequence=first)
            assert await new.append(b"b", sequence=first) == Appended(1, 1)
            # The new one need not have a record, nor the log one of the producer.
            older, newer = await writer.producer("two", epoch=3), await writer.producer("two", epoch=4)
            with pytest.raises(ProducerFenced):
                await older.append(b"c")
            with pytest.raises(ProducerFenced):
                await writer.producer("two", epoch=3)
            assert await newer.append(b"d") == Appended(0, 2)
        assert await names_of(logs) == [b"a", b"b", b"d"]

    play(scene)


def test_producers_that_append_after_a_long_pause_are_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_table.ProducerTable.__init__, "__defaults__", (2,))

    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(producer_idle_s=3600.0))
        stage.wall_us = 1_700_000_000_000_000
        await logs.create("l")
        async with await logs.writer("l") as writer:
            one, two = await writer.producer("one"), await writer.producer("two")
            for producer in (one, two):
                await producer.append(b"a", sequence=5)
            stage.wall_us += 7_200_000_000
            for producer in (one, two):
                await producer.append(b"b", sequence=6)
            three = await writer.producer("three")
            with pytest.raises(TooManyProducers):
                await three.append(b"c", sequence=0)
            stage.wall_us += 7_200_000_000
            # Nothing was appended in the pause: the clock alone shows that it is over.
            assert await three.append(b"c", sequence=0) == Appended(0, 4)

    play(scene)


def test_a_repeated_append_is_there_once_and_returns_its_offset() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.producer("l", "orders-1") as producer:
            assert producer.last_sequence is None
            for number in (True, 1.0, -1, 2**64):
                with pytest.raises(ArgumentError, match="sequence number"):
                    await producer.append(b"a", sequence=number)  # type: ignore[arg-type]
                with pytest.raises(ArgumentError, match="sequence number"):
                    await producer.append_many([b"a"], sequence=number)  # type: ignore[arg-type]
            assert await producer.append(b"a", sequence=41) == Appended(41, 0)
            assert await producer.append(b"a", sequence=41) == Appended(41, 0, is_duplicate=True)
            assert await producer.append(b"z", sequence=3) == Appended(3, None, is_duplicate=True), (
                "a number below the first was never stored"
            )
            both = [asyncio.ensure_future(producer.append(b"b", sequence=42)) for _ in range(2)]
            assert [await each for each in both] == [Appended(42, 1), Appended(42, 1, is_duplicate=True)]
            assert await producer.append(b"c") == Appended(43, 2)
            with pytest.raises(SequenceGap, match="44 comes next, 45 was given"):
                await producer.append(b"e", sequence=45)
            assert producer.last_sequence == 43
        with pytest.raises(HandleClosed):
            await producer.append(b"d", sequence=44)
        assert await names_of(logs) == [b"a", b"b", b"c"]

    play(scene)


@pytest.mark.parametrize("many", [False, True])
def test_a_repetition_waits_for_its_record_however_many_entries_are_on_their_way(many: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(linger_s=0.0))
        await logs.create("l")
        writer = await logs.writer("l")
        producer = await writer.producer("orders")
        ledger = stage.bookies.ledger(writer.ledger_id)
        listed = len(ledger.entries)
        held = ledger.held = []

        async def append(number: int) -> list[Appended]:
            value = b"%d" % number
            if many:
                return await producer.append_many([value], sequence=number)
            return [await producer.append(value, sequence=number)]

        async def send(number: int, entries: int) -> asyncio.Task[list[Appended]]:
            task = asyncio.create_task(append(number))
            await eventually(lambda: len(held) == entries)
            return task

        for number in range(9):
            first = await send(number, number + 1)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
        again = [await send(number, 9) for number in range(9)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert not any(task.done() for task in again), "nothing of it is durable"
        for future, entry_id in held[:2]:
            future.set_result(entry_id)
        assert [await task for task in again[:2]] == [[Appended(number, number, is_duplicate=True)] for number in range(2)]
        # The others reached no bookie. The next writer does not know them, and no answer said that they are there.
        del ledger.entries[listed + 2 :]
        async with await stage.logs().writer("l", take_over=True) as successor:
            assert (await successor.producer("orders")).last_sequence == 1
        await writer.abandon()
        results = await asyncio.gather(*again[2:], return_exceptions=True)
        assert all(isinstance(result, (LogFenced, OutcomeUnknown, HandleClosed)) for result in results), results

    play(scene)


def test_records_of_one_producer_share_entries_and_others_have_their_own() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l") as writer:
            one, two = await writer.producer("one"), await writer.producer("two", epoch=7)
            first = [asyncio.ensure_future(one.append(b"1-%d" % number)) for number in range(100)]
            plain = asyncio.ensure_future(writer.append(b"plain"))
            second = [asyncio.ensure_future(two.append(b"2-%d" % number, sequence=number + 5)) for number in range(100)]
            assert [(await each).offset for each in first] == list(range(100))
            assert await plain == 100
            assert [await each for each in second] == [Appended(number + 5, number + 101) for number in range(100)]
            headers = [decode_header(entry.payload) for entry in stage.bookies.ledger(writer.ledger_id).entries]
            entries = [(header.producer, header.count) for header in headers if header.count]
            assert len(entries) < 10
            assert {producer.id for producer, _ in entries if producer is not None} == {one.id, two.id}
            assert next(producer.sequence for producer, _ in entries if producer is not None and producer.epoch == 7) == 5
            many = await one.append_many([b"x", b"y"], sequence=99)
            assert many == [Appended(99, 99, is_duplicate=True), Appended(100, 201)]

    play(scene)


@pytest.mark.parametrize("end", ["close", "abandon", "fence"])
@pytest.mark.parametrize("rolls", [False, True])
def test_the_next_writer_knows_what_the_one_before_appended(end: str, rolls: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l", SMALL if not rolls else LogSettings(roll_size_bytes=1024, compression="none"))
        writer = await logs.writer("l")
        one, two = await writer.producer("one"), await writer.producer("two")
        await two.append(b"two", sequence=9)
        for number in range(12):
            await one.append(b"%d" % number + b"." * 200, sequence=number)
            await writer.noop()
        if rolls:
            await eventually(lambda: writer.rolls > 1)
        if end == "close":
            await writer.close()
        elif end == "abandon":
            await writer.abandon()
        async with await others.writer("l") as successor:
            again = await successor.producer("one")
            assert again.last_sequence == 11
            assert await again.append(b"11", sequence=11) == Appended(11, 12, is_duplicate=True)
            assert await again.append(b"3", sequence=3) == Appended(3, None, is_duplicate=True)
            with pytest.raises(SequenceGap, match="12 comes next"):
                await again.append(b"13", sequence=13)
            assert await again.append(b"12", sequence=12) == Appended(12, 13)
            assert (await (await successor.producer("two")).append(b"two", sequence=9)).is_duplicate
        if end == "fence":
            with pytest.raises(LogFenced):
                await one.append(b"lost", sequence=12)
            await writer.close()
        async with await logs.producer("l", "one") as third:
            assert third.last_sequence == 12
        assert (await logs.end_offset("l")) == 14

    play(scene)


def test_an_append_that_was_stored_and_not_acknowledged_is_not_appended_again() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l")
        one = await writer.producer("one")
        await one.append(b"a", sequence=0)
        stage.bookies.ledger(writer.ledger_id).held = []
        waiting = asyncio.ensure_future(one.append(b"b", sequence=1))
        await eventually(lambda: bool(stage.bookies.ledger(writer.ledger_id).held))
        await writer.abandon()
        with pytest.raises(Exception, match="abandoned"):
            await waiting
        async with await others.producer("l", "one") as again:
            assert await again.append(b"b", sequence=1) == Appended(1, 1, is_duplicate=True)
            assert await again.append(b"c", sequence=2) == Appended(2, 2)
        assert await names_of(logs) == [b"a", b"b", b"c"]

    play(scene)


def test_records_that_wait_while_a_segment_is_replaced_are_not_counted_before_they_are_written() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l")
        one = await writer.producer("one")
        await one.append(b"a", sequence=0)
        broken = stage.bookies.ledger(writer.ledger_id)
        broken.broken = True
        reached, resume = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            reached.set()
            await resume.wait()

        stage.client_of(logs).hooks.create = hold
        waiting = asyncio.ensure_future(one.append(b"b", sequence=1))
        await reached.wait()
        stage.client_of(logs).hooks.create = None
        successor = await others.producer("l", "one")
        assert successor.last_sequence == 0, "the log has not got the second record"
        assert await successor.append(b"b", sequence=1) == Appended(1, 1)
        resume.set()
        with contextlib.suppress(LogFenced):
            await waiting
        await writer.abandon()
        await successor.close()
        assert await names_of(logs) == [b"a", b"b"]

    play(scene)


def test_records_that_wait_for_the_next_segment_are_not_counted_in_its_table() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l")
        one = await writer.producer("one")
        await one.append(b"a", sequence=0)
        broken = writer.ledger_id
        stage.bookies.ledger(broken).broken = True
        client = stage.client_of(logs)
        create = client.create

        async def create_held(**options: Any) -> FakeAppender:
            appender = await create(**options)
            stage.bookies.ledger(appender.ledger_id).held = []
            return appender

        client.create = create_held  # type: ignore[method-assign]
        waiting = asyncio.ensure_future(one.append(b"b", sequence=1))
        # The next segment is listed, with the table, and its header is not acknowledged.
        await eventually(lambda: writer.ledger_id != broken)
        await writer.abandon()
        with pytest.raises(OutcomeUnknown):
            await waiting
        async with await others.producer("l", "one") as again:
            assert again.last_sequence == 0
            assert await again.append(b"b", sequence=1) == Appended(1, 1)
        assert await names_of(logs) == [b"a", b"b"]

    play(scene)


def test_the_next_segment_of_a_broken_one_takes_the_records_and_counts_them() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l")
        one = await writer.producer("one")
        await one.append(b"a", sequence=0)
        ledger = stage.bookies.ledger(writer.ledger_id)
        ledger.broken = ledger.keep_broken = True
        assert await one.append(b"b", sequence=1) == Appended(1, 1)
        assert writer.repairs == 1
        await writer.abandon()
        async with await others.producer("l", "one") as again:
            assert again.last_sequence == 1
        assert await names_of(logs) == [b"a", b"b"]

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
def test_a_roll_or_the_first_producer_of_unknown_outcome_is_settled(applied: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l")
        lost = lose_connection(stage, applied=applied, times=2, only=lambda operation, path: operation == "multi")
        one = await writer.producer("one")
        await one.append(b"a", sequence=0)
        assert len(lost) == 2
        stage.store.fault = None
        lost = lose_connection(stage, applied=applied, times=2, only=lambda operation, path: operation == "multi")
        await writer.close()
        assert lost
        async with await others.producer("l", "one") as again:
            assert (await again.append(b"a", sequence=0)).is_duplicate

    play(scene)


def test_what_a_publisher_closes_for_a_dead_writer_is_counted() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l")
        one = await writer.producer("one")
        await one.append(b"a", sequence=0)
        await writer.abandon()
        async with await others.staging(StagingOrigin("l", "app")) as staging:
            await staging.append_many([b"published"])
            sealed = await staging.seal()
        await others.publish("l", [sealed], application="app", batch=0)
        async with await others.producer("l", "one") as again:
            assert (await again.append(b"a", sequence=0)).is_duplicate
            assert await again.append(b"b", sequence=1) == Appended(1, 2)
        assert await read_values(logs, "l", 0, 3) == [b"a", b"published", b"b"]

    play(scene)


def test_a_newer_instance_of_a_producer_ends_the_older() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l") as writer:
            old = await writer.producer("one", epoch=1)
            await old.append(b"a", sequence=0)
            new = await writer.producer("one", epoch=2)
            await new.append(b"b", sequence=1)
            with pytest.raises(ProducerFenced, match="epoch 2"):
                await old.append(b"c", sequence=2)
        async with await logs.writer("l") as writer:
            with pytest.raises(ProducerFenced, match="epoch 2"):
                await writer.producer("one", epoch=1)

    play(scene)


def test_too_many_producers_are_refused_until_one_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_table.ProducerTable.__init__, "__defaults__", (2,))

    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(producer_idle_s=3600.0))
        stage.wall_us = 1_700_000_000_000_000
        await logs.create("l")
        async with await logs.writer("l") as writer:
            for name in ("one", "two"):
                await (await writer.producer(name)).append(b"a", sequence=5)
            three = await writer.producer("three")
            with pytest.raises(TooManyProducers, match="'three' is not admitted"):
                await three.append(b"a", sequence=0)
            stage.wall_us += 3_600_000_000
            await (await writer.producer("two")).append(b"b", sequence=6)
            await three.append(b"a", sequence=0)
            assert (await writer.producer("one")).last_sequence is None
            assert (await writer.producer("two")).last_sequence == 6

    play(scene)


def test_a_log_without_producers_has_no_node_and_no_change_of_one() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        async with await logs.writer("l") as writer:
            for _ in range(10):
                await writer.append(b"." * 300)
            await eventually(lambda: writer.rolls > 0)
            reads = count_reads(logs)
        node = f"{logs.store.path('l')}/producers"
        assert node not in reads
        assert await logs.store.tree.exists(node) is None

    play(scene)


def test_a_writer_that_lost_its_log_cannot_begin_with_producers() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="old")
        async with await others.writer("l", owner="new"):
            with pytest.raises(LogFenced, match="taken over"):
                await writer.producer("one")
            assert await logs.store.tree.exists(f"{logs.store.path('l')}/producers") is None
        await writer.abandon()

    play(scene)


def test_many_records_with_one_that_is_too_large_are_refused_before_any_is_appended() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.producer("l", "one") as producer:
            for sequence in (None, 0):
                with pytest.raises(RecordTooLarge):
                    await producer.append_many([b"a", b"." * (5 << 20), b"c"], sequence=sequence)
            assert producer.last_sequence is None
            assert [each.offset for each in await producer.append_many([b"a", b"b"])] == [0, 1]
        assert await names_of(logs) == [b"a", b"b"]

    play(scene)


def test_a_producer_that_opens_slowly_does_not_make_the_log_forget_another() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        writer = await logs.writer("l")
        tree: Any = logs.store.tree
        sync, reached, resume = tree.sync, asyncio.Event(), asyncio.Event()

        async def held(path: str) -> None:
            tree.sync = sync
            reached.set()
            await resume.wait()

        async def append() -> None:
            one = await writer.producer("one")
            for number in range(3):
                await one.append(b"." * 300, sequence=number)
            await eventually(lambda: writer.rolls > 0)

        tree.sync = held
        slow = asyncio.ensure_future(writer.producer("two"))
        await reached.wait()
        appending = asyncio.ensure_future(append())
        await asyncio.wait([appending], timeout=0.2)
        resume.set()
        await slow
        await appending
        await writer.abandon()
        async with await others.producer("l", "one") as again:
            assert again.last_sequence == 2
            assert (await again.append(b"." * 300, sequence=2)).is_duplicate

    play(scene)


def test_records_that_publishers_have_listed_behind_the_counted_ones_need_no_counting() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l")
        producer = await writer.producer("p")
        await producer.append(b"a", sequence=0)
        await others.publish("l", [await staged(others, [b"b", b"c"])])
        await producer.append(b"d", sequence=1)
        _, end = producer_table.decode_producers(stage.store.get("/triplicate/test/logs/l/producers")[0], "l")
        opened = (await others.head("l")).open
        assert opened is not None
        assert end == opened.first_offset == 3
        async with await others.writer("l", take_over=True) as successor:
            assert (await successor.producer("p")).last_sequence == 1
        await writer.close()

    play(scene)
