"""Named consumers: saved positions, two of one name, truncation, recreated logs, unknown outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.log.fake import SMALL, Stage, play
from tests.unit.log.head_rig import held_at, lose_connection
from tests.waiting import eventually
from triplicate.errors import (
    ArgumentError,
    ConsumerFenced,
    ConsumerOwned,
    HandleClosed,
    LogReplaced,
    NoSuchConsumer,
    NoSuchLog,
    OffsetTruncated,
)
from triplicate.log import ConsumerInfo, LogConsumer, Logs
from triplicate.metadata import TreeOperation


async def filled(stage: Stage, count: int = 20) -> Logs:
    logs = stage.logs()
    await logs.create("l", SMALL)
    async with await logs.writer("l") as writer:
        for number in range(count):
            await writer.append_entry([b"%d" % number])
    return logs


async def take(consumer: LogConsumer, count: int) -> list[int]:
    return [record.offset for record in [await consumer.next_record() for _ in range(count)] if record is not None]


def test_a_consumer_goes_on_where_it_saved() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = await filled(stage), stage.logs()
        async with await logs.consumer("l", "billing") as consumer:
            async for record in consumer:
                if record.offset == 4:
                    assert await consumer.save() == 5
                if record.offset == 7:
                    break
            assert (consumer.position, consumer.saved_position) == (8, 5)
        async with await others.consumer("l", "billing") as consumer:
            assert await take(consumer, 3) == [5, 6, 7]
            assert await consumer.save(7) == 7
            with pytest.raises(ArgumentError, match="delivered the records before 8"):
                await consumer.save(9)
        with pytest.raises(HandleClosed):
            await consumer.next_record()
        async with await others.consumer("l", "late", start="latest") as consumer:
            assert await consumer.next_record(0.01) is None
        assert await logs.consumers("l") == [
            ConsumerInfo("billing", 7, 13, 0, None, (await logs.consumers("l"))[0].saved_ms),
            ConsumerInfo("late", 20, 0, 0, None, 0),
        ]

    play(scene)


def test_a_second_consumer_of_a_name_is_refused_while_the_first_lives() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = await filled(stage), stage.logs()
        async with await logs.consumer("l", "billing", owner="first"):
            with pytest.raises(ConsumerOwned, match="'billing' of log 'l' is used by 'first'"):
                await others.consumer("l", "billing")
            async with await others.consumer("l", "audit"):
                assert [(item.name, item.owner) for item in await logs.consumers("l")] == [("audit", "client-2"), ("billing", "first")]
        async with await others.consumer("l", "billing"):
            pass

    play(scene)


def test_a_consumer_that_was_taken_over_cannot_save_and_is_told_by_whom() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = await filled(stage), stage.logs()
        async with await logs.consumer("l", "billing", owner="first") as first:
            assert await take(first, 5) == [0, 1, 2, 3, 4]
            async with await others.consumer("l", "billing", owner="second", take_over=True) as second:
                assert await take(second, 2) == [0, 1]
                with pytest.raises(ConsumerFenced, match="belongs to 'second' now, at offset 0"):
                    await first.save()
                assert await second.save() == 2
                with pytest.raises(ConsumerFenced, match="at offset 2"):
                    await first.save()
                await asyncio.sleep(0)
                assert [item.owner for item in await logs.consumers("l")] == ["second"], "the first does not record itself again"
        assert [(item.position, item.owner) for item in await logs.consumers("l")] == [(2, None)]

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
def test_a_save_of_unknown_outcome_is_settled(applied: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with await logs.consumer("l", "billing") as consumer:
            await take(consumer, 3)
            lost = lose_connection(stage, applied=applied, times=2, only=lambda operation, path: operation == "multi" and "billing" in path)
            assert await consumer.save() == 3
            assert lost
            await take(consumer, 2)
            assert await consumer.save() == 5
        assert [item.position for item in await logs.consumers("l")] == [5]

    play(scene)


def test_a_consumer_saves_by_itself_what_was_processed() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with await logs.consumer("l", "billing", save_interval_s=0.0) as consumer:
            for expected in range(4):
                await consumer.next_record()
                assert consumer.saved_position == expected, "the record that was delivered last may not be processed yet"
        assert [item.position for item in await logs.consumers("l")] == [4]
        failing = await logs.consumer("l", "billing", save_interval_s=1000.0)
        await take(failing, 3)
        await failing.__aexit__(RuntimeError, RuntimeError("the processing failed"), None)
        assert [item.position for item in await logs.consumers("l")] == [4]
        async with await logs.consumer("l", "billing", save_interval_s=0.01) as consumer:
            await take(consumer, 16)
            waiting = asyncio.ensure_future(consumer.next_record())
            await eventually(lambda: consumer.saved_position == 20)
            waiting.cancel()

    play(scene)


NAN: Any = float("nan")


@pytest.mark.parametrize("interval_s", [NAN, float("inf"), -1.0, True, "5"])
def test_an_interval_of_saves_that_cannot_be_is_refused(interval_s: Any) -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        with pytest.raises(ArgumentError, match="the interval of saves"):
            await logs.consumer("l", "billing", save_interval_s=interval_s)
        assert await logs.consumers("l") == []

    play(scene)


def test_a_consumer_takes_no_boolean_for_a_number_and_no_wait_that_is_not_a_number() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with await logs.consumer("l", "billing") as consumer:
            limits: list[Any] = [True, 1.5, NAN, 0]
            for limit in limits:
                with pytest.raises(ArgumentError, match="at least 1 record"):
                    await consumer.next_records(limit)
            with pytest.raises(ArgumentError, match="not nan"):
                await consumer.next_record(NAN)
            with pytest.raises(ArgumentError, match="not nan"):
                await logs.records("l", "latest").next_record(NAN)
            assert await take(consumer, 5) == [0, 1, 2, 3, 4]
            with pytest.raises(ArgumentError, match="is no offset"):
                await consumer.save(True)
            assert await consumer.save() == 5

    play(scene)


def test_a_consumer_whose_place_was_truncated_is_told_from_where_it_can_go_on() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with await logs.consumer("l", "billing") as consumer:
            await take(consumer, 3)
            await consumer.save()
        await logs.truncate("l", 12)
        assert [(item.position, item.lag, item.truncated) for item in await logs.consumers("l")] == [(3, 8, 9)]
        with pytest.raises(OffsetTruncated, match=r"stood at offset 3.*up to 11.*goes on at 12"):
            await logs.consumer("l", "billing")
        async with await logs.consumer("l", "billing", skip_truncated=True) as consumer:
            assert await take(consumer, 2) == [12, 13]
            assert consumer.missed == [(3, 11)]
        assert await logs.reset_consumer("l", "billing", "earliest") == 12
        async with await logs.consumer("l", "billing") as consumer:
            assert await take(consumer, 1) == [12]

    play(scene)


def test_a_reset_or_deletion_needs_force_while_somebody_consumes_who_then_cannot_save() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = await filled(stage), stage.logs()
        async with await logs.consumer("l", "billing") as consumer:
            await take(consumer, 3)
            with pytest.raises(ConsumerOwned):
                await others.reset_consumer("l", "billing", 0)
            with pytest.raises(ConsumerOwned):
                await others.delete_consumer("l", "billing")
            assert await others.reset_consumer("l", "billing", 9, force=True) == 9
            with pytest.raises(ConsumerFenced, match="belongs to 'client-2' now, at offset 9"):
                await consumer.save()
            await others.delete_consumer("l", "billing", force=True)
            with pytest.raises(ConsumerFenced, match="was deleted"):
                await consumer.save()
        with pytest.raises(NoSuchConsumer, match="triplicate log consumers l"):
            await others.delete_consumer("l", "billing")
        assert await others.consumers("l") == []

    play(scene)


def test_a_reset_of_a_consumer_that_does_not_exist_can_be_refused() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        with pytest.raises(NoSuchConsumer, match="it has none"):
            await logs.reset_consumer("l", "billing", 0, create=False)
        for number in range(21):
            assert await logs.reset_consumer("l", f"c{number:02}", 1) == 1
        with pytest.raises(NoSuchConsumer, match=r"no consumer 'c99': it has 'c00', .*, 'c19' and 1 others .*`--create`"):
            await logs.reset_consumer("l", "c99", 0, create=False)
        assert await logs.reset_consumer("l", "c20", 2, create=False) == 2
        assert len(await logs.consumers("l")) == 21

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
def test_a_deletion_of_unknown_outcome_is_settled(applied: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with await logs.consumer("l", "billing"):
            lost = lose_connection(stage, applied=applied, times=2, only=lambda operation, path: operation == "multi")
            await logs.delete_consumer("l", "billing", force=True)
            assert lost
        assert await logs.consumers("l") == []

    play(scene)


def test_consumers_go_with_their_log_and_do_not_go_on_in_another_of_its_name() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with await logs.consumer("l", "billing") as consumer:
            await take(consumer, 3)
            await consumer.save()
        path = f"{logs.store.own_root}/subscriptions/l/billing"
        data, _ = await logs.store.tree.get(path)
        await logs.delete("l")
        assert await logs.store.tree.exists(f"{logs.store.own_root}/subscriptions/l") is None
        await logs.create("l", SMALL)
        await logs.store.tree.create(path, data, parents=True)  # As a process of before may leave it.
        with pytest.raises(LogReplaced, match="stood at offset 3 of a log of this name that was deleted"):
            await logs.consumer("l", "billing")
        assert await logs.reset_consumer("l", "billing", 0) == 0
        async with await logs.consumer("l", "billing") as consumer:
            assert consumer.position == 0

    play(scene)


def test_an_opening_that_is_cancelled_at_its_claim_shuts_nobody_out() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", SMALL)
        opening = await held_at(logs.store.tree, "create", lambda: logs.consumer("l", "c"))
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        async with await logs.consumer("l", "c"):
            pass

    play(scene)


def test_a_position_beyond_the_end_is_refused_and_the_end_itself_is_not() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", SMALL)
        async with await logs.writer("l") as writer:
            await writer.append_many([b"a", b"b"])
            with pytest.raises(ArgumentError, match="ends at 2: no consumer can be put at 3"):
                await logs.consumer("l", "new", start=3)
            assert await logs.consumers("l") == []
            assert await logs.reset_consumer("l", "c", 1) == 1
            with pytest.raises(ArgumentError, match="ends at 2"):
                await logs.reset_consumer("l", "c", 10**9)
            assert [consumer.position for consumer in await logs.consumers("l")] == [1]
            # Also where the end of the acknowledged records is not readable yet.
            offset = await writer.append(b"c")
            async with await logs.consumer("l", "at the end", start=offset + 1) as consumer:
                waiting = asyncio.ensure_future(consumer.next_record())
                await writer.append(b"d")
                await writer.noop()
                record = await waiting
                assert record is not None
                assert (record.offset, record.value) == (3, b"d")

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
def test_a_save_that_was_cancelled_does_not_shut_the_consumer_out(applied: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        tree = logs.store.tree
        async with await logs.consumer("l", "billing") as consumer:
            await take(consumer, 3)
            held = hold_sets(tree, applied=applied)
            saving = asyncio.ensure_future(consumer.save())
            await eventually(lambda: len(held) == 1)
            saving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await saving
            held.append("go on")
            await take(consumer, 2)
            assert await consumer.save() == 5
            assert await consumer.save(4) == 4
        assert [item.position for item in await logs.consumers("l")] == [4]

    play(scene)


def test_an_earlier_position_is_saved_also_after_a_cancelled_save_of_a_later_one() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with await logs.consumer("l", "billing") as consumer:
            await take(consumer, 2)
            await consumer.save()
            await take(consumer, 6)
            held = hold_sets(logs.store.tree, applied=True)
            saving = asyncio.ensure_future(consumer.save())
            await eventually(lambda: len(held) == 1)
            saving.cancel()
            held.append("go on")
            assert await consumer.save(2) == 2
        assert [item.position for item in await logs.consumers("l")] == [2]

    play(scene)


def test_saves_of_one_consumer_at_the_same_time_follow_one_another() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with await logs.consumer("l", "billing") as consumer:
            await take(consumer, 5)
            assert await asyncio.gather(*(consumer.save(position) for position in (1, 2, 5, 3))) == [1, 2, 5, 3]
        assert [item.position for item in await logs.consumers("l")] == [3]

    play(scene)


def hold_sets(tree: Any, *, applied: bool) -> list[str]:
    """Let the next change of a consumer's position hang, before or after it is applied; those behind an item "go on" do not."""
    change, held = tree.multi, list[str]()

    async def hanging(operations: Sequence[TreeOperation]) -> Any:
        if held:
            return await change(operations)
        held.append(operations[0].path)
        if applied:
            await change(operations)
        return await asyncio.get_running_loop().create_future()

    tree.multi = hanging
    return held


@pytest.mark.parametrize("read_before", [0, 1])
@pytest.mark.parametrize("skip_truncated", [False, True])
def test_an_open_consumer_delivers_no_record_of_another_log_of_the_name(read_before: int, skip_truncated: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs, others = await filled(stage), stage.logs()
        async with await others.consumer("l", "billing") as consumer:
            await take(consumer, 3)
            await consumer.save()
        consumer = await logs.consumer("l", "billing", skip_truncated=skip_truncated)
        await take(consumer, read_before)
        await others.delete("l", force=True)
        await others.create("l", SMALL)
        async with await others.writer("l") as writer:
            for _ in range(20):
                await writer.append_entry([b"of the other log"])
        if skip_truncated:
            await others.truncate("l", 12)
        for _ in range(3):
            with pytest.raises(NoSuchLog, match="deleted and created again"):
                await read_on(consumer)
        assert consumer.missed == []
        await consumer.close()

    async def read_on(consumer: LogConsumer) -> None:
        async for record in consumer:  # It may have fetched more of the log that is gone.
            assert record.value == b"%d" % record.offset

    play(scene)
