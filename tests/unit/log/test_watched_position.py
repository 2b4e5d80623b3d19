"""Positions of streams as named consumers: never in the way of a consumer that goes on at its position."""

from __future__ import annotations

import asyncio
import functools

import pytest

from tests.unit.log.fake import SMALL, Stage, play
from tests.unit.log.head_rig import held_at
from triplicate.errors import ConsumerFenced, ConsumerOwned, NoSuchLog
from triplicate.log import ConsumerInfo, Logs, WatchedPosition, stream_owner


async def filled(stage: Stage, count: int = 20) -> Logs:
    logs = stage.logs()
    await logs.create("l", SMALL)
    async with await logs.writer("l") as writer:
        for number in range(count):
            await writer.append_entry([b"%d" % number])
    return logs


async def watched(logs: Logs, name: str = "copy", owner: str = "stream") -> WatchedPosition:
    return WatchedPosition(logs.store, "l", (await logs.head("l")).log_id, name, stream_owner(logs.store, owner))


async def listed(logs: Logs) -> list[tuple[str, int, int, str | None]]:
    return [(one.name, one.position, one.lag, one.owner) for one in await logs.consumers("l")]


def test_a_position_is_listed_with_its_lag_and_may_go_back() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        position = await watched(logs)
        stage.wall_us = 5_000_000
        await position.save(0)
        await position.save(15)
        assert await logs.consumers("l") == [ConsumerInfo("copy", 15, 5, 0, "stream", 5000)]
        await position.save(12)
        await position.close()
        await position.close()
        assert await listed(logs) == [("copy", 12, 8, None)]
        # The same stream after a restart, in another process.
        again = await watched(stage.logs(), owner="again")
        await again.save(13)
        assert await listed(logs) == [("copy", 13, 7, "again")]
        with pytest.raises(ConsumerFenced, match="belongs to 'again'"):
            await position.save(14)

    play(scene)


def test_a_consumer_that_is_used_is_left_alone() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = await filled(stage), stage.logs()
        async with await others.consumer("l", "billing", owner="worker") as consumer:
            await consumer.next_record()
            await consumer.save()
            with pytest.raises(ConsumerOwned, match="used by 'worker'"):
                await (await watched(logs, "billing")).save(9)
        # Nobody uses it now, but it goes on at its position.
        with pytest.raises(ConsumerFenced, match="saved at offset 1 by 'worker', which is no stream"):
            await (await watched(logs, "billing")).save(9)
        assert await listed(logs) == [("billing", 1, 19, None)]
        await logs.delete_consumer("l", "billing")
        await (await watched(logs, "billing")).save(9)
        assert await listed(logs) == [("billing", 9, 11, "stream")]

    play(scene)


def test_two_streams_of_one_name_do_not_alternate() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        first, second = await watched(logs, owner="first"), await watched(stage.logs(), owner="second")
        await first.save(3)
        with pytest.raises(ConsumerOwned, match="used by 'first'"):
            await second.save(9)
        await first.save(4)
        await first.close()
        await second.save(10)
        assert await listed(logs) == [("copy", 10, 10, "second")]

    play(scene)


def test_a_consumer_takes_a_stopped_streams_position_over_and_keeps_it() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        position = await watched(logs)
        await position.save(18)
        with pytest.raises(ConsumerOwned):
            await logs.consumer("l", "copy")
        await position.close()
        async with await logs.consumer("l", "copy", owner="worker") as consumer:
            assert [record.offset for record in await consumer.next_records()] == [18, 19]
        with pytest.raises(ConsumerFenced):
            await position.save(19)
        with pytest.raises(ConsumerFenced, match="no stream"):
            await (await watched(logs)).save(19)

    play(scene)


def test_a_reset_or_deletion_by_force_ends_the_saves() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        for change in (lambda: logs.reset_consumer("l", "copy", 2, force=True), lambda: logs.delete_consumer("l", "copy", force=True)):
            position = await watched(logs)
            await position.save(3)
            await change()
            before = await listed(logs)
            for _ in range(2):
                with pytest.raises(ConsumerFenced):
                    await position.save(4)
            assert await listed(logs) == before
            await position.close()
            if before:
                await logs.delete_consumer("l", "copy")

    play(scene)


def test_a_position_of_a_deleted_log_is_not_saved_in_the_next_one() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        position, fresh = await watched(logs), await watched(logs, "fresh")
        await position.save(3)
        await logs.delete("l")
        await logs.create("l", SMALL)
        with pytest.raises((ConsumerFenced, NoSuchLog)):
            await position.save(4)
        with pytest.raises(NoSuchLog):
            await fresh.save(4)
        assert await listed(logs) == []
        await (await watched(logs)).save(0)
        assert await listed(logs) == [("copy", 0, 0, "stream")]

    play(scene)


def test_a_save_that_was_cancelled_is_settled_by_the_next() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        position = await watched(logs)
        for value in (1, 2):
            saving = await held_at(logs.store.tree, "multi", functools.partial(position.save, value), ending="/copy")
            saving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await saving
            await position.save(value + 10)
        assert await listed(logs) == [("copy", 12, 8, "stream")]

    play(scene)
