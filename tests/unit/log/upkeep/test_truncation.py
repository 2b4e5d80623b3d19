"""Truncation, retention and sweeping."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.head_rig import ROLLING, fill
from triplicate.errors import ArgumentError, NotEmpty, NotEnoughBookies, OffsetTruncated
from triplicate.log import LogClientSettings, LogSettings, StagingOrigin
from triplicate.log.core import head_changes
from triplicate.log.core.head import LogSegment, Page, SegmentState, encode_head, encode_page, size_beneath
from triplicate.log.core.head_changes import RECENT_LIMIT
from triplicate.log.store.head_store import HeadDecision, StoredHead
from triplicate.metadata import CheckVersion, DeleteNode, TreeOperation


def test_truncation_is_exact_and_deletes_whole_segments() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", ROLLING)
        async with await logs.writer("l", owner="w") as writer:
            for number in range(60):
                await writer.append(b"%02d" % number + b"." * 100)
        segments = await logs.segments("l")
        middle = segments[2].first_offset + 1
        assert await logs.truncate("l", middle) == middle
        assert await logs.segments("l") == segments[2:]
        assert sorted(stage.bookies.ledgers) == sorted(segment.ledger_id for segment in segments[2:])
        assert len(await read_values(logs, "l", middle, 60)) == 60 - middle
        with pytest.raises(OffsetTruncated):
            await logs.reader("l", middle - 1)
        with pytest.raises(OffsetTruncated):
            await logs.plan("l", middle - 1, 60, 10)
        assert await logs.truncate("l", 3) == middle
        with pytest.raises(ArgumentError, match="ends at 60"):
            await logs.truncate("l", 61)

    play(scene)


def test_a_log_that_lost_all_its_segments_goes_on_where_it_was() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 5)
        assert await logs.truncate("l", 5) == 5
        assert stage.bookies.ledgers == {}
        assert await logs.end_offset("l") == 5
        async with await logs.writer("l", owner="w") as writer:
            assert writer.start_offset == 5
            assert await writer.append(b"x") == 5
        assert await read_values(logs, "l", 5, 6) == [b"x"]

    play(scene)


def test_the_open_segment_may_be_truncated_within_but_stays() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_many([b"a", b"b", b"c"])
            await writer.noop()
            await writer.noop()
            assert await logs.truncate("l", 2) == 2
            assert await writer.append(b"d") == 3
        assert await read_values(logs, "l", 2, 4) == [b"c", b"d"]

    play(scene)


@pytest.mark.parametrize("offset", [1, 70, 149, 150])
def test_truncation_reaches_into_pages(offset: int) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 150)
        assert len((await logs.head("l")).pages) > 1
        await logs.truncate("l", offset)
        assert len(stage.bookies.ledgers) == 150 - offset
        assert [segment.first_offset for segment in await logs.segments("l")] == list(range(offset, 150))
        assert len(await read_values(logs, "l", offset, 150)) == 150 - offset
        stage.wall_us = stage.host.clock.wall_us() + 3601 * 1_000_000
        swept = await logs.sweep("l")
        names, _ = await stage.client_of(logs).metadata.tree.children("/triplicate/test/logs/l/pages")
        assert len(names) == len((await logs.head("l")).pages)
        assert swept["ledgers"] == 0
        assert [segment.first_offset for segment in await stage.logs().segments("l")] == list(range(offset, 150))

    play(scene)


def test_what_could_not_be_deleted_is_deleted_the_next_time() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 5)
        client = stage.client_of(logs)
        delete = client.delete

        async def refuse(ledger_id: int, **_: object) -> None:
            raise NotEnoughBookies("not now")

        client.delete = refuse  # type: ignore[method-assign]
        with pytest.raises(NotEnoughBookies):
            await logs.truncate("l", 3)
        with pytest.raises(OffsetTruncated):
            await logs.reader("l", 0)
        client.delete = delete  # type: ignore[method-assign]
        await logs.retain("l")
        assert len(stage.bookies.ledgers) == 2

    play(scene)


def test_retention_by_size_lets_the_oldest_go_when_the_log_rolls() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 30, LogSettings(roll_size_bytes=1024, compression="none", retain_size_bytes=5000))
        segments = await logs.segments("l")
        assert 3 <= len(segments) <= 5
        assert (await logs.head("l")).first_offset == segments[0].first_offset == 30 - len(segments)

    play(scene)


def test_retention_by_age_lets_the_old_go() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        stage.wall_us = 1_000_000_000
        await fill(logs, 5, LogSettings(roll_size_bytes=1024, compression="none", retain_age_s=60))
        assert len(await logs.segments("l")) == 5
        stage.wall_us += 61_000_000
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"new")
        assert (await logs.head("l")).first_offset == 5
        assert await read_values(logs, "l", 5, 6) == [b"new"]

    play(scene)


def test_sweeping_spares_pages_that_are_young_or_referred_to() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, RECENT_LIMIT + 2)
        tree = stage.client_of(logs).metadata.tree
        stray = Page(0, segments=tuple((await logs.segments("l"))[:1]))
        await tree.create("/triplicate/test/logs/l/pages/", encode_page(stray), sequential=True)
        assert (await logs.sweep("l"))["pages"] == 0
        stage.wall_us = stage.host.clock.wall_us() + 3601 * 1_000_000
        assert (await logs.sweep("l"))["pages"] == 1
        assert len(await stage.logs().segments("l")) == RECENT_LIMIT + 2

    play(scene)


def test_sweeping_spares_a_page_that_a_change_refers_to_meanwhile() -> None:
    """The sweeper's clock is an hour ahead; it looks at the head before a change and deletes after it."""

    async def scene(stage: Stage) -> None:
        logs, sweeper = stage.logs(), stage.logs()
        await logs.create("l", ROLLING)
        writing, sweeping = stage.client_of(logs).metadata.tree, stage.client_of(sweeper).metadata.tree
        change, delete = writing.multi, sweeping.multi
        about_to_delete, may_delete = asyncio.Event(), asyncio.Event()
        sweeps: list[asyncio.Task[dict[str, int]]] = []

        async def hold_deletion(operations: Sequence[TreeOperation]) -> None:
            if any(isinstance(operation, DeleteNode) for operation in operations):
                about_to_delete.set()
                await may_delete.wait()
            await delete(operations)

        async def sweep_before_change(operations: Sequence[TreeOperation]) -> None:
            if not sweeps and any(isinstance(operation, CheckVersion) and "/pages/" in operation.path for operation in operations):
                stage.wall_us = stage.host.clock.wall_us() + 3601 * 1_000_000
                sweeps.append(asyncio.create_task(sweeper.sweep("l")))
                await about_to_delete.wait()
            await change(operations)

        writing.multi, sweeping.multi = sweep_before_change, hold_deletion  # type: ignore[method-assign]
        async with await logs.writer("l", owner="w") as writer:
            for number in range(RECENT_LIMIT + 2):
                await writer.append_entry([b"%04d" % number + b"." * 1000])
        may_delete.set()
        assert (await sweeps[0])["pages"] == 0
        assert len(await stage.logs().segments("l")) == RECENT_LIMIT + 2

    play(scene)


def test_pages_that_a_change_replaces_are_deleted_with_it() -> None:
    """With retention and no sweep, the nodes of pages do not outgrow the list."""

    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none", retain_size_bytes=100 * 1100))
        async with await logs.writer("l", owner="w") as writer:
            for number in range(180):
                await writer.append_entry([b"%04d" % number + b"." * 1100])
        stored = await logs.store.read("l")
        referred = await logs.store.pages("l", stored.head)
        assert referred
        tree = stage.client_of(logs).metadata.tree
        names, _ = await tree.children("/triplicate/test/logs/l/pages")
        # A writer that closes may cut short what its last rolls tidy up: that is left to the sweep.
        assert len(names) <= len(referred) + 5
        stage.wall_us = stage.host.clock.wall_us() + 3601 * 1_000_000
        await logs.sweep("l")
        names, _ = await tree.children("/triplicate/test/logs/l/pages")
        assert sorted(map(int, names)) == sorted(await logs.store.pages("l", await logs.head("l")))
        assert 80 <= len(await stage.logs().segments("l")) <= 102

    play(scene)


def test_pages_of_a_change_that_lost_its_race_are_deleted() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, RECENT_LIMIT)
        rival, done = stage.logs(), list[bool]()
        swap = logs.store._swap

        async def overtaken(*args: Any) -> Any:
            if not done:
                done.append(True)
                await rival.publish("l", [], application="rival", batch=1)
            return await swap(*args)

        logs.store._swap = overtaken  # type: ignore[assignment,method-assign]
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_entry([b"x" * 1100])
        referred = await logs.store.pages("l", await logs.head("l"))
        names, _ = await stage.client_of(logs).metadata.tree.children("/triplicate/test/logs/l/pages")
        assert done
        assert referred
        assert sorted(map(int, names)) == sorted(referred)

    play(scene)


def test_a_reader_of_an_old_head_goes_on_when_its_pages_are_replaced() -> None:
    async def scene(stage: Stage) -> None:
        logs, other = stage.logs(), stage.logs()
        await fill(logs, 150)
        async with await logs.reader("l", 70) as reader:
            first = await reader.next_entry(5)
            assert first is not None
            assert await other.truncate("l", 60) == 60
            values = list(first.values)
            while reader.position < 150:
                entry = await reader.next_entry(5)
                assert entry is not None
                values += entry.values
        assert [int((value or b"")[:4]) for value in values] == list(range(70, 150))

    play(scene)


def test_a_log_that_only_publishers_write_is_retained() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(compression="none", retain_size_bytes=10_000))
        for batch in range(120):
            async with await logs.staging(StagingOrigin("l", "app")) as writer:
                await writer.append_many([b"." * 1000])
            await logs.publish("l", [writer.ledger_id], application="app", batch=batch)
        segments = await logs.segments("l")
        assert 8 <= len(segments) <= 10
        assert len(stage.bookies.ledgers) == len(segments)

    play(scene)


@pytest.mark.parametrize(
    ("ahead_s", "age_s", "goes"),
    [
        (0.0, 3500.0, True),
        (0.0, 3700.0, False),
        (2 * 86_400.0, 3700.0, False),
        (2 * 86_400.0, 3500.0, False),  # One of the two clocks is wrong, and it may be the store's.
        (-2 * 86_400.0, 3500.0, False),
        (250.0, 3700.0, False),
        (-250.0, 3500.0, False),
        (-250.0, 3300.0, True),
    ],
)
def test_retention_by_age_counts_by_the_earlier_of_two_clocks_that_agree(ahead_s: float, age_s: float, *, goes: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs, sweeper = stage.logs(), stage.logs(ahead_s=ahead_s)
        stage.wall_us = 1_700_000_000_000_000
        await fill(logs, 5, replace(ROLLING, retain_age_s=age_s))
        stage.wall_us += 3_600_000_000
        before = await logs.segments("l")
        await sweeper.retain("l")
        assert await logs.segments("l") == ([] if goes else before)

    play(scene)


def test_retention_by_size_measures_once_what_an_earlier_release_did_not_write() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 150, LogSettings(roll_size_bytes=1024, compression="none", retain_size_bytes=100 * 1100))
        await logs.create("old", LogSettings(compression="none", retain_size_bytes=100 * 1100))

        async def decide(stored: StoredHead) -> HeadDecision:
            segments = [LogSegment(10_000 + n, 0, 10, 1100, 1, 1, 2, SegmentState.CLOSED) for n in range(200)]
            return head_changes.publish(stored.head, segments, logs.store.token()), ()

        logs.store._ledger_checks = lambda change, extra: []  # type: ignore[method-assign]
        await logs.store.change("old", decide, log_id=(await logs.head("old")).log_id)
        stored = await logs.store.read("old")
        unmeasured = replace(stored.head, pages=tuple(replace(item, size_bytes=None) for item in stored.head.pages))
        await stage.client_of(logs).metadata.tree.set(logs.store.path("old"), encode_head(unmeasured))
        fresh = stage.logs()
        await fresh.retain("old")
        head = await fresh.head("old")
        assert head.first_offset == 1000
        assert size_beneath(head.pages) is not None
        assert len(await fresh.segments("old")) == 100

    play(scene)


def test_deleting_a_log_deletes_what_it_does_not_know_below_it() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 3)
        tree = stage.client_of(logs).metadata.tree
        await tree.create("/triplicate/test/logs/l/later/a/b", b"x", parents=True)
        await logs.delete("l")
        assert await tree.exists("/triplicate/test/logs/l") is None

    play(scene)


@pytest.mark.parametrize("times", [1, 100])
def test_a_publisher_that_asks_while_the_log_is_deleted_does_not_keep_its_nodes(times: int) -> None:
    async def scene(stage: Stage) -> None:
        logs, late = stage.logs(LogClientSettings(change_attempts=5)), stage.logs()
        await fill(logs, 3)
        tree, head = stage.client_of(logs).metadata.tree, "/triplicate/test/logs/l"
        multi, made = tree.multi, list[str]()

        async def overtaken(operations: Sequence[TreeOperation]) -> None:
            if DeleteNode(head) in operations and len(made) < times:
                # It has read the head before the deletion began.
                made.append(await stage.client_of(late).metadata.tree.create(f"{head}/requests"))
            await multi(operations)

        tree.multi = overtaken  # type: ignore[method-assign]
        if times > 1:
            with pytest.raises(NotEmpty):
                await logs.delete("l")
            assert 1 < len(made) < times, "it gives up in time"
            tree.multi = multi  # type: ignore[method-assign]
        await logs.delete("l")
        assert not [path for path in stage.store.dump() if path.startswith(head)]

    play(scene)
