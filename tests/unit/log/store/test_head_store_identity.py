"""A log that was deleted and created again under its name is another log: what began on the first does nothing to the second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play
from tests.unit.log.head_rig import lose_connection
from tests.unit.log.publish_rig import staged
from triplicate.errors import ConnectionLost, ConsumerFenced, NoSuchLog, TriplicateError
from triplicate.log import LogClientSettings, Logs, LogSettings, PageLimits
from triplicate.log.core.head import LogSegment, SegmentState
from triplicate.log.core.publish_request import PublishRequest
from triplicate.log.core.snapshot_list import Snapshot
from triplicate.log.publishing.publishers import sweep_publishers
from triplicate.log.publishing.request_queue import RequestQueue
from triplicate.log.upkeep.orphans import Sweep
from triplicate.log.upkeep.truncation import sweep_pages
from triplicate.metadata import DeleteNode, TreeOperation

HEAD = "/triplicate/test/logs/l"
SETTINGS = LogSettings(roll_size_bytes=1024, compression="none")
SMALL_PAGES = PageLimits(recent=5, recent_kept=2, page_segments=3, references=4, references_folded=3)
IDLE = LogClientSettings(page_sweep_age_s=0.0, publishers_kept=0, publisher_idle_s=0.0, linger_s=0.0)


async def live(logs: Logs) -> None:
    """Create the log, and let everything have nodes. Every life of it reaches the same versions."""
    await logs.create("l", SETTINGS)
    async with await logs.writer("l") as writer:
        producer = await writer.producer("p")
        for number in range(12):
            await producer.append(b"%04d" % number + b"." * 1000, sequence=number)
    async with await logs.consumer("l", "c") as consumer:
        await consumer.next_records(2)
        await consumer.save()
    await logs.publish("l", [await staged(logs, [b"staged"])], application="app", batch=1)
    await logs.snapshots("l").want(3)


def nodes(stage: Stage) -> dict[str, Any]:
    """All that is stored of the log."""
    return {path: found for path, found in stage.store.dump().items() if path.startswith((HEAD, "/triplicate/test/subscriptions/l"))}


class Hold:
    """Lets a client's first transaction that touches the log, from now on, hang until it may go on.

    Args:
        last: what it must touch, by the end of a path.
    """

    def __init__(self, logs: Logs, last: str = "") -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        tree: Any = logs.store.tree
        multi = tree.multi

        async def hanging(operations: Sequence[TreeOperation]) -> None:
            if not self.reached.is_set() and any(path.startswith(tuple(PLACES)) and path.endswith(last) for path in paths_of(operations)):
                self.reached.set()
                await self.go_on.wait()
            await multi(operations)

        tree.multi = hanging


PLACES = (HEAD, "/triplicate/test/subscriptions/l")


def paths_of(operations: Sequence[TreeOperation]) -> list[str]:
    return [operation.path for operation in operations]


async def alter(logs: Logs) -> None:
    await logs.alter("l", {"roll_age_s": 7.0})


async def truncate(logs: Logs) -> None:
    await logs.truncate("l", 3)


async def take_over(logs: Logs) -> None:
    await (await logs.writer("l")).close()


async def publish(logs: Logs) -> None:
    await logs.publish("l", [await staged(logs, [b"staged"])], application="other", batch=1)


async def add_producer(logs: Logs) -> None:
    async with await logs.producer("l", "q") as producer:
        await producer.append(b"x")


async def consume(logs: Logs) -> None:
    async with await logs.consumer("l", "c", take_over=True) as consumer:
        await consumer.next_records(1)
        await consumer.save()


async def consume_anew(logs: Logs) -> None:
    await (await logs.consumer("l", "another")).close()


async def sweep(logs: Logs) -> None:
    await sweep_publishers(logs.store, "l")


async def sweep_page(logs: Logs) -> None:
    await logs.store.tree.create(f"{HEAD}/pages/", b"", sequential=True)
    await sweep_pages(logs.store, "l")


async def snapshot(logs: Logs) -> None:
    await logs.snapshots("l").want(5)


async def claim_snapshot(logs: Logs) -> None:
    await logs.snapshots("l").claim()


async def delete(logs: Logs) -> None:
    await logs.delete("l", force=True)


OPERATIONS: list[tuple[Callable[[Logs], Awaitable[None]], str]] = [
    (alter, "/l"),
    (truncate, "/l"),
    (take_over, "/owner"),
    (take_over, "/l"),
    (publish, "/l"),
    (add_producer, "/producers"),
    (consume, "/c"),
    (consume_anew, "/another"),
    (sweep, "/app"),
    (sweep_page, ""),
    (snapshot, "/snapshots"),
    (claim_snapshot, "/claim"),
    (delete, "/l"),
    (delete, "/c"),
    (delete, "/producers"),
]


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "of an earlier release"])
@pytest.mark.parametrize(("operation", "last"), OPERATIONS, ids=[f"{call.__name__}{last}" for call, last in OPERATIONS])
def test_a_late_transaction_does_nothing_to_the_next_log(operation: Callable[[Logs], Awaitable[None]], last: str, marked: bool) -> None:
    async def scene(stage: Stage) -> None:
        late, user = (Logs(stage.client_of(stage.logs()), IDLE, SMALL_PAGES) for _ in range(2))
        await live(user)
        if not marked:
            tree = user.store.tree
            await tree.multi([DeleteNode(f"{HEAD}/id/{(await user.head('l')).log_id}"), DeleteNode(f"{HEAD}/id")])
        hold = Hold(late, last if marked else "")
        task = asyncio.ensure_future(operation(late))
        await hold.reached.wait()
        versions = (await user.store.read_deleted("l")).version
        await Logs(stage.client_of(stage.logs()), IDLE, SMALL_PAGES).delete("l", force=True)
        await live(user)
        while (await user.store.read("l")).version < versions:
            await user.alter("l", {"roll_age_s": 100.0 + (await user.store.read("l")).version})
        before, ledgers = nodes(stage), set(stage.bookies.ledgers)
        hold.go_on.set()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        assert nodes(stage) == before
        assert set(stage.bookies.ledgers) >= ledgers
        assert result is None or isinstance(result, TriplicateError), result
        assert [record.offset async for record in user.records("l", to="latest")] == list(range(13))

    play(scene)


def test_a_deletion_whose_last_answer_is_lost_leaves_the_next_log_alone() -> None:
    async def scene(stage: Stage) -> None:
        logs, user = stage.logs(), stage.logs()
        await live(user)
        tree: Any = logs.store.tree
        multi, lost = tree.multi, list[str]()

        async def losing(operations: Sequence[TreeOperation]) -> None:
            await multi(operations)
            if DeleteNode(HEAD) in operations and not lost:
                lost.append(HEAD)
                await live(user)
                raise ConnectionLost("the answer was lost")

        tree.multi = losing
        await logs.delete("l")
        assert lost
        assert (await user.consumers("l"))[0].position == 1
        assert len([record async for record in user.records("l", to="latest")]) == 13
        swept = await Sweep(stage.client_of(user), user.store, LogClientSettings(orphan_grace_s=0.0, staging_grace_s=0.0), None).run()
        assert swept == []

    play(scene)


def test_two_deletions_at_once_both_succeed() -> None:
    async def scene(stage: Stage) -> None:
        logs, other = stage.logs(), stage.logs()
        await live(logs)
        hold = Hold(logs, "/c")
        task = asyncio.ensure_future(logs.delete("l"))
        await hold.reached.wait()
        await other.delete("l")
        hold.go_on.set()
        await task
        assert nodes(stage) == {}
        with pytest.raises(NoSuchLog):
            await logs.delete("l")

    play(scene)


def test_a_deletion_that_ended_among_the_nodes_is_finished_by_another() -> None:
    async def scene(stage: Stage) -> None:
        user = Logs(stage.client_of(stage.logs()), IDLE, SMALL_PAGES)
        await live(user)
        hold = Hold(user, "/publishers")  # Behind the pages.
        task = asyncio.ensure_future(user.delete("l"))
        await hold.reached.wait()
        task.cancel()
        await asyncio.wait([task])
        await stage.logs().delete("l")
        assert nodes(stage) == {}
        assert not stage.bookies.ledgers

    play(scene)


def test_a_log_of_an_earlier_release_gets_its_mark_by_its_first_change() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await live(logs)
        mark = f"{HEAD}/id/{(await logs.head('l')).log_id}"
        assert mark in nodes(stage)
        await logs.store.tree.multi([DeleteNode(mark), DeleteNode(f"{HEAD}/id")])
        lost = lose_connection(stage, applied=True, times=1, only=lambda operation, path: operation == "multi")
        later = stage.logs()
        await later.alter("l", {"roll_age_s": 9.0})
        assert lost
        assert mark in nodes(stage)
        assert (await later.head("l")).settings == replace(SETTINGS, roll_age_s=9.0)
        await later.delete("l")
        assert nodes(stage) == {}

    play(scene)


def test_a_save_of_a_consumer_of_the_first_log_is_refused() -> None:
    async def scene(stage: Stage) -> None:
        logs, user = stage.logs(), stage.logs()
        await live(user)
        async with await logs.consumer("l", "c", take_over=True) as consumer:
            await consumer.next_records(1)
            await user.delete("l", force=True)
            await live(user)
            with pytest.raises(ConsumerFenced):
                await consumer.save()
        assert (await user.consumers("l"))[0].position == 1

    play(scene)


def test_a_request_for_the_first_log_is_not_served_in_the_next() -> None:
    async def scene(stage: Stage) -> None:
        logs, user = stage.logs(), stage.logs()
        await live(user)
        former = (await user.head("l")).log_id
        await user.delete("l")
        await live(user)
        ledger = await staged(user, [b"for the first"], batch=2)
        segment = LogSegment(ledger.ledger_id, 0, ledger.records, ledger.size_bytes, ledger.last_entry, 1, 1, SegmentState.CLOSED)
        queue = RequestQueue(logs.store, "l")
        async with await user.writer("l") as writer:
            path = await queue.queue(PublishRequest(logs.store.token(), "late", None, None, (segment,), former))
            assert path is not None
            while await queue.is_queued(path):
                await asyncio.sleep(0)
            assert writer.rolls == 0
        assert not await user.is_published("l", [ledger.ledger_id])

    play(scene)


def test_the_snapshots_of_a_log_are_not_listed_in_the_next() -> None:
    async def scene(stage: Stage) -> None:
        logs, user = stage.logs(), stage.logs()
        await live(user)
        snapshots = logs.snapshots("l")
        await snapshots.want(4)
        await user.delete("l")
        await live(user)
        before = nodes(stage)
        with pytest.raises(NoSuchLog, match="deleted and created again"):
            await snapshots.want(9)
        assert nodes(stage) == before
        assert not [item for item in (await user.snapshots("l").read()).snapshots if isinstance(item, Snapshot)]

    play(scene)
