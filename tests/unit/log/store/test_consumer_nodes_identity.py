"""A consumer that was deleted and created again under its name is another one: a late process of the first does nothing to the second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.unit.log.fake import Stage, play
from tests.unit.replica.hanging_tree import Hold, touches
from triplicate.errors import ConsumerFenced
from triplicate.log import Logs
from triplicate.log.core.consumer_state import decode_consumer
from triplicate.metadata import DeleteNode, TreeOperation

PATH = "/triplicate/test/subscriptions/l/c"
HOLDERS = "/triplicate/test/logs/l/holders"


def state(stage: Stage) -> tuple[int, str, int]:
    """Position, owner's token and version of the consumer."""
    data, stat = stage.store.get(PATH)
    found = decode_consumer(data, "l", "c")
    return found.position, found.owner.token, stat.version


async def filled(logs: Logs) -> None:
    await logs.create("l")
    async with await logs.writer("l") as writer:
        for number in range(9):
            await writer.append(b"%d" % number)


async def advance(logs: Logs, saves: int) -> None:
    """Open the consumer, and save as often."""
    async with await logs.consumer("l", "c", take_over=True) as consumer:
        for _ in range(saves):
            await consumer.next_records(1)
            await consumer.save()


def test_the_holder_of_a_deleted_consumer_saves_nothing_into_the_next_one() -> None:
    async def scene(stage: Stage) -> None:
        late, user = stage.logs(), stage.logs()
        await filled(user)
        async with await late.consumer("l", "c") as consumer:
            for _ in range(5):
                await consumer.next_record()
            await consumer.save()
            await user.delete_consumer("l", "c", force=True)
            await advance(user, 1)
            before = state(stage)
            assert before[2] == 1, "the same version as that of the first"
            await consumer.next_records(1)
            with pytest.raises(ConsumerFenced):
                await consumer.save()
        assert state(stage) == before

    play(scene)


async def save(logs: Logs) -> None:
    await advance(logs, 1)


async def delete(logs: Logs) -> None:
    await logs.delete_consumer("l", "c", force=True)


@pytest.mark.parametrize(("operation", "changes"), [(save, 2), (delete, 1)], ids=["save", "delete"])
def test_a_late_change_does_nothing_to_the_next_consumer(operation: Callable[[Logs], Awaitable[None]], changes: int) -> None:
    async def scene(stage: Stage) -> None:
        """A save follows the opening, which is a change as well."""
        late, user = stage.logs(), stage.logs()
        await filled(user)
        await advance(user, 1)
        seen: list[TreeOperation] = []

        def held(operations: Sequence[TreeOperation]) -> bool:
            seen.extend(operation for operation in operations if operation.path == PATH)
            return len(seen) == changes

        hold = Hold(late.store.tree, held)
        task = asyncio.ensure_future(operation(late))
        await asyncio.wait_for(hold.reached.wait(), 5)
        version = state(stage)[2]
        await user.delete_consumer("l", "c", force=True)
        await advance(user, version)
        before = state(stage)
        assert before[2] == version
        hold.go_on.set()
        await asyncio.gather(task, return_exceptions=True)
        assert state(stage) == before
        await advance(user, 1)

    play(scene)


def test_a_late_opening_takes_over_the_position_of_the_consumer_that_is_there() -> None:
    async def scene(stage: Stage) -> None:
        late, user = stage.logs(), stage.logs()
        await filled(user)
        async with await user.consumer("l", "c") as consumer:
            for _ in range(7):
                await consumer.next_record()
            await consumer.save()
        hold = Hold(late.store.tree, touches(PATH))
        task = asyncio.ensure_future(late.consumer("l", "c", take_over=True))
        await asyncio.wait_for(hold.reached.wait(), 5)
        await user.delete_consumer("l", "c", force=True)
        await advance(user, 1)
        assert state(stage)[2] == 1
        hold.go_on.set()
        async with await task as consumer:
            assert consumer.position == 1
        assert state(stage)[0] == 1

    play(scene)


def test_a_consumer_of_an_earlier_release_is_opened_and_deleted() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await filled(logs)
        for opened in (True, False):
            await advance(logs, 2)
            names, _ = stage.store.children(HOLDERS)
            await logs.store.tree.multi([*(DeleteNode(f"{HOLDERS}/{name}") for name in names), DeleteNode(HOLDERS)])
            if opened:
                await advance(logs, 1)
                assert state(stage)[0] == 3
                assert stage.store.children(HOLDERS)[0] == [state(stage)[1]]
            await logs.delete_consumer("l", "c")
            assert stage.store.exists(PATH) is None

    play(scene)


def test_a_consumer_that_is_gone_leaves_nothing() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await filled(logs)
        await advance(logs, 1)
        await logs.reset_consumer("l", "c", 4)
        await advance(logs, 1)
        assert state(stage)[0] == 5
        await logs.delete_consumer("l", "c")
        assert stage.store.children(HOLDERS)[0] == []
        await logs.delete("l")
        assert not [path for path in stage.store.dump() if "/l/" in path]

    play(scene)
