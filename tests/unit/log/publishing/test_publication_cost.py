"""The metadata that a publish reads does not grow with the log, and still shows whether a ledger is listed already."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.head_rig import count_reads, lengthen
from tests.unit.log.publish_rig import staged
from triplicate.errors import ArgumentError
from triplicate.log import LogSettings
from triplicate.log.core import head_changes
from triplicate.log.core.head import NODE_LIMIT_BYTES
from triplicate.log.logs import TIDIED_LEAST
from triplicate.log.publishing import publication
from triplicate.metadata import CheckVersion, LongHierarchicalPaths, SetData, TreeOperation
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
from triplicate.runtime import real_host


@pytest.mark.parametrize("application", ["app", None])
@pytest.mark.parametrize("settings", [LogSettings(), LogSettings(retain_size_bytes=10**12, retain_age_s=10**6)])
def test_a_publish_reads_as_much_of_a_long_log_as_of_a_short_one(application: str | None, settings: LogSettings) -> None:
    async def scene(stage: Stage) -> None:
        reads: list[int] = []
        logs = stage.logs()
        await logs.create("l", settings)
        for batch, count in enumerate((100, 30_000)):
            await lengthen(logs, count)
            fresh = stage.logs()
            part = await staged(fresh, [b"x"])
            paths = count_reads(fresh)
            published = await fresh.publish("l", [part], application=application, batch=batch if application else None)
            assert not published.already
            reads.append(len(paths))
        assert reads[1] <= 20
        assert abs(reads[1] - reads[0]) <= 2, paths

    play(scene)


def test_a_publish_takes_a_bounded_share_of_what_retention_lets_go() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(retain_age_s=60.0))
        await lengthen(logs, 5000)
        part = await staged(logs, [b"x"])
        stage.wall_us = logs.client.host.clock.wall_us() + 3600 * 1_000_000
        fresh = stage.logs()
        paths = count_reads(fresh)
        await fresh.publish("l", [part])
        assert (await logs.head("l")).first_offset == TIDIED_LEAST * 10
        assert len([path for path in paths if "/logs/" in path]) <= 20
        await logs.retain("l")
        assert (await logs.head("l")).first_offset == 50_001

    play(scene)


def test_questions_about_a_ledger_read_no_pages() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        listed = await staged(logs, [b"x"])
        await logs.publish("l", [listed])
        await lengthen(logs, 5000)
        dropped = await staged(logs, [b"y"])
        fresh = stage.logs()
        paths = count_reads(fresh)
        assert await fresh.is_published("l", [listed.ledger_id])
        assert not await fresh.is_published("l", [dropped.ledger_id])
        again = await fresh.publish("l", [listed])
        assert (again.already, again.first_offset, again.end_offset) == (True, 0, 1)
        with pytest.raises(ArgumentError, match="already"):
            await fresh.publish("l", [listed], application="app", batch=1)
        assert await fresh.discard("l", [dropped.ledger_id]) == [dropped.ledger_id]
        assert not [path for path in paths if "/pages/" in path]

    play(scene)


def test_a_ledger_that_is_published_elsewhere_meanwhile_is_published_once() -> None:
    async def scene(stage: Stage) -> None:
        logs, rival = stage.logs(), stage.logs()
        await logs.create("l")
        parts = [await staged(logs, [b"a"]), await staged(logs, [b"b"])]
        swap, done = logs.store._swap, list[bool]()

        async def overtaken(*args: Any) -> Any:
            if not done:
                done.append(True)
                await rival.publish("l", [parts[1]])
            return await swap(*args)

        logs.store._swap = overtaken  # type: ignore[assignment,method-assign]
        with pytest.raises(ArgumentError, match=f"ledger {parts[1].ledger_id} is a segment of log 'l' already"):
            await logs.publish("l", parts)
        assert await read_values(logs, "l", 0, 1) == [b"b"]
        assert await logs.end_offset("l") == 1

    play(scene)


@pytest.mark.parametrize("large", [False, True])
def test_a_batch_too_large_to_be_marked_at_once_is_published_once(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if large:
        monkeypatch.setattr(publication, "MARKS_BYTES_MAXIMUM", 100)
        monkeypatch.setattr(publication, "ANNOUNCED_AT_ONCE", 3)

    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        await lengthen(logs, 200)
        parts = [await staged(logs, [b"%d" % number]) for number in range(10)]
        first = await logs.publish("l", parts)
        assert (first.first_offset, first.end_offset, first.already) == (2000, 2010, False)
        await lengthen(logs, 200)
        paths = count_reads(again := stage.logs())
        second = await again.publish("l", parts)
        assert (second.first_offset, second.end_offset, second.already) == (2000, 2010, True)
        # Only what was listed after the announcement is searched.
        assert len([path for path in paths if "/pages/" in path]) <= (5 if large else 0)
        assert await again.is_published("l", [part.ledger_id for part in parts])
        assert await again.discard("l", [part.ledger_id for part in parts]) == []
        with pytest.raises(ArgumentError, match="already"):
            await again.publish("l", [parts[3], await staged(logs, [b"x"])])

    play(scene)


def test_a_ledger_of_an_earlier_release_is_looked_for_in_the_whole_list() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        part = await staged(logs, [b"a"])
        ledger = stage.bookies.ledger(part.ledger_id)
        ledger.metadata.custom.pop("staging")  # type: ignore[attr-defined]
        stage.bookies.write_node(part.ledger_id)
        await logs.publish("l", [part])
        # As that release left it: listed, and not marked.
        stage.bookies.write_node(part.ledger_id)
        await lengthen(logs, 200)
        again = await logs.publish("l", [part])
        assert (again.already, again.first_offset) == (True, 0)
        assert await logs.is_published("l", [part.ledger_id])
        assert await logs.discard("l", [part.ledger_id]) == []
        assert await read_values(logs, "l", 0, 1) == [b"a"]

    play(scene)


def test_the_largest_publishes_fit_into_one_transaction_of_zookeeper() -> None:
    """Nodes as large as they get, and the longest paths of ledgers."""
    head: list[TreeOperation] = [SetData("/triplicate/" + "i" * 36 + "/logs/" + "l" * 255, b"." * NODE_LIMIT_BYTES)]
    pages = publication.LEDGERS_MAXIMUM // head_changes.PAGE_SEGMENTS + 10
    head += [CheckVersion(head[0].path + f"/pages/{number:010d}") for number in range(pages)]
    ledger = "/ledgers" + LongHierarchicalPaths().path(2**63 - 1)
    for size in (100, 500, 2000):
        marks = publication.MARKS_BYTES_MAXIMUM // (size + publication.MARK_OVERHEAD_BYTES)
        with pytest.raises(ReachedTheSending):
            asyncio.run(_multi([*head, *[SetData(ledger, b"." * size, 3)] * marks]))
    with pytest.raises(ReachedTheSending):
        asyncio.run(_multi([*head, *[CheckVersion(ledger, 4)] * publication.LEDGERS_MAXIMUM]))
    with pytest.raises(ArgumentError, match="more than ZooKeeper accepts at once"):
        asyncio.run(_multi([*head, *[CheckVersion(ledger, 4)] * (2 * publication.LEDGERS_MAXIMUM)]))


class ReachedTheSending(Exception):
    """Instead of a server's answer."""


async def _multi(operations: list[TreeOperation]) -> None:
    tree = ZooKeeperTree("127.0.0.1:1", real_host("test"), 10.0)

    async def run(path: str, request: object) -> object:
        raise ReachedTheSending

    tree._run = run  # type: ignore[method-assign]
    await tree.multi(operations)


def test_a_publish_of_too_many_ledgers_is_refused() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        with pytest.raises(ArgumentError, match="10001 ledgers are more than one publish takes"):
            await logs.publish("l", range(publication.LEDGERS_MAXIMUM + 1))

    play(scene)
