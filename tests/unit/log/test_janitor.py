"""The janitor: what it clears away, that one of many does each round, and that one log's trouble is not another's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.unit.log.fake import Stage, play
from tests.unit.log.head_rig import count_reads, lengthen
from tests.unit.log.publish_rig import staged
from tests.unit.log.snapshot_rig import write_snapshot
from triplicate.errors import CorruptionError
from triplicate.log import Janitor, LogClientSettings, Logs, LogSettings, Purpose, PurposeKind
from triplicate.log.core.head import Page, encode_page
from triplicate.log.store.head_store import HeadStore
from triplicate.log.upkeep import orphans
from triplicate.metadata import CheckVersion, TreeOperation
from triplicate.runtime import Metrics

DAY_US = 86_400 * 1_000_000
SETTINGS = LogClientSettings(janitor_interval_s=600.0, janitor_pause_s=0.0, publishers_kept=0)


async def litter(stage: Stage, logs: Logs, name: str) -> list[int]:
    """A log with one listed ledger, an orphan, a page without reference and an idle publisher; returns the orphans."""
    await logs.create(name, LogSettings(retain_age_s=3600.0))
    listed, orphan = await staged(logs, [b"a"], log=name), await staged(logs, [b"b"], log=name)
    await logs.publish(name, [listed], application="app", batch=1)
    page = Page(0, segments=tuple(await logs.segments(name)))
    await logs.store.tree.create(f"/triplicate/test/logs/{name}/pages/", encode_page(page), sequential=True)
    return [orphan.ledger_id]


def listing_unreadable(stage: Stage, logs: Logs) -> None:
    """Let the listing of ledgers name one whose metadata nobody here understands."""
    client = stage.client_of(logs)
    ids = client._ids

    async def with_one_more() -> AsyncIterator[int]:
        yield 7
        async for ledger_id in ids():
            yield ledger_id

    client._ids = with_one_more  # type: ignore[method-assign]


def test_a_round_clears_away_what_nothing_refers_to() -> None:
    async def scene(stage: Stage) -> None:
        logs, metrics = stage.logs(SETTINGS), Metrics()
        janitor = Janitor(logs, metrics)
        listing_unreadable(stage, logs)
        for name in ("a", "b"):
            await litter(stage, logs, name)
        foreign = await stage.client_of(logs).create(custom={"application": b"somebody else"})
        await logs.store.tree.create("/ledgers/00/0000/L0007", b"of a later release", parents=True)
        assert await janitor.round() == {"segments": 0, "pages": 0, "publishers": 0, "ledgers": 0}
        stage.wall_us = stage.host.clock.wall_us() + 32 * DAY_US
        assert await janitor.round() == {"segments": 2, "pages": 2, "publishers": 2, "ledgers": 2}
        assert sorted(stage.bookies.ledgers) == [foreign.ledger_id]
        assert await logs.store.tree.exists("/ledgers/00/0000/L0007") is not None
        text = metrics.expose().decode()
        assert 'triplicate_log_swept_total{kind="ledgers"} 2.0' in text
        assert "triplicate_log_janitor_rounds_total 2.0" in text
        assert await janitor.round() == {"segments": 0, "pages": 0, "publishers": 0, "ledgers": 0}

    play(scene)


def test_retention_reaches_a_log_that_only_publishers_wrote_and_nobody_writes_any_more() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(SETTINGS)
        await logs.create("l", LogSettings(retain_age_s=3600.0))
        for batch in range(3):
            await logs.publish("l", [await staged(logs, [b"a"])], application="app", batch=batch)
        janitor = Janitor(logs)
        await janitor.round()
        assert (await logs.head("l")).first_offset == 0
        stage.wall_us = stage.host.clock.wall_us() + 2 * 3600 * 1_000_000
        await janitor.round()
        head = await logs.head("l")
        assert (head.first_offset, head.closed_end) == (3, 3)
        assert stage.bookies.ledgers == {}

    play(scene)


def test_a_staging_ledger_of_a_long_job_is_kept_for_a_day() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(SETTINGS)
        await logs.create("l")
        stage.wall_us = stage.host.clock.wall_us()
        part = await staged(logs, [b"a"])
        stage.wall_us += DAY_US - 1_000_000
        assert (await Janitor(logs).round())["ledgers"] == 0
        stage.wall_us += 2_000_000
        assert (await Janitor(logs).round())["ledgers"] == 1
        assert part.ledger_id not in stage.bookies.ledgers

    play(scene)


def test_ledgers_of_any_kind_go_with_their_log() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(SETTINGS)
        await logs.create("l")
        facts = {"application": b"triplicate", "component": b"another", "log": b"l"}
        snapshot = await stage.client_of(logs).create(custom=facts)
        stage.wall_us = stage.host.clock.wall_us() + 2 * DAY_US
        assert (await Janitor(logs).round())["ledgers"] == 0
        await logs.delete("l")
        assert (await Janitor(logs).round())["ledgers"] == 1
        assert snapshot.ledger_id not in stage.bookies.ledgers

    play(scene)


def test_ledgers_that_a_list_beside_the_head_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(SETTINGS)
        await logs.create("l")
        facts = {"application": b"triplicate", "component": b"beside", "log": b"l"}
        listed, orphan = [await stage.client_of(logs).create(custom=facts) for _ in range(2)]
        path = "/triplicate/test/logs/l/beside"
        await logs.store.tree.create(path, b"%d" % listed.ledger_id)
        late: list[int] = []

        async def read(store: HeadStore, name: str) -> tuple[frozenset[int], list[TreeOperation]]:
            data, stat = await store.tree.get(path)
            if late:
                # The list changes between this look and the deletion.
                await store.tree.set(path, b"%d" % late.pop())
            return frozenset([int(data)]), [CheckVersion(path, stat.version)]

        monkeypatch.setattr(orphans, "LISTS_BESIDE", {"beside": read})
        stage.wall_us = stage.host.clock.wall_us() + 2 * DAY_US
        late.append(orphan.ledger_id)
        assert (await Janitor(logs).round())["ledgers"] == 1
        assert sorted(stage.bookies.ledgers) == [orphan.ledger_id]

    play(scene)


def test_a_second_round_reads_no_page_again() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(janitor_pause_s=0.0, page_cache_entries=1))
        await logs.create("l")
        await lengthen(logs, 2000)
        janitor, paths = Janitor(logs), count_reads(logs)
        await janitor.round()
        first = len([path for path in paths if "/pages/" in path])
        paths.clear()
        await janitor.round()
        assert 0 < len([path for path in paths if "/pages/" in path]) <= first * 0.6

    play(scene)


def test_of_many_janitors_one_does_the_round() -> None:
    async def scene(stage: Stage) -> None:
        stage.wall_us = stage.host.clock.wall_us()
        janitors = [Janitor(stage.logs(SETTINGS, ahead_s=100.0 * number)) for number in range(5)]
        assert sum([await janitor.claim_round() for janitor in janitors]) == 1
        stage.wall_us += 500 * 1_000_000
        assert sum([await janitor.claim_round() for janitor in janitors]) == 0
        stage.wall_us += 100 * 1_000_000
        claims = [asyncio.ensure_future(janitor.claim_round()) for janitor in janitors]
        assert sum([await claim for claim in claims]) == 1

    play(scene)


def test_janitors_at_once_do_no_harm() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(SETTINGS)
        await logs.create("l")
        kept = [await staged(logs, [b"%d" % number]) for number in range(5)]
        orphans = [await staged(logs, [b"x"]) for _ in range(5)]
        await logs.publish("l", kept)
        stage.wall_us = stage.host.clock.wall_us() + 2 * DAY_US
        rounds = [asyncio.ensure_future(Janitor(stage.logs(SETTINGS)).round()) for _ in range(3)]
        for swept in rounds:
            await swept
        assert sorted(stage.bookies.ledgers) == sorted(part.ledger_id for part in kept)
        assert sorted(stage.bookies.deleted) == sorted(part.ledger_id for part in orphans)

    play(scene)


def test_a_log_that_cannot_be_read_does_not_keep_the_janitor_from_the_others() -> None:
    async def scene(stage: Stage) -> None:
        logs, metrics = stage.logs(SETTINGS), Metrics()
        await litter(stage, logs, "b")
        await litter(stage, logs, "a")
        kept = [ledger_id for ledger_id, ledger in stage.bookies.ledgers.items() if ledger.metadata.custom["log"] == b"a"]
        head, _ = await logs.store.tree.get(logs.store.path("a"))
        await logs.store.tree.set(logs.store.path("a"), head.replace(b'"v":2', b'"v":3'))
        stage.wall_us = stage.host.clock.wall_us() + 32 * DAY_US
        swept = await Janitor(logs, metrics).round()
        assert swept == {"segments": 1, "pages": 1, "publishers": 1, "ledgers": 1}
        assert sorted(stage.bookies.ledgers) == sorted(kept)
        assert "triplicate_log_janitor_failures_total 1.0" in metrics.expose().decode()

    play(scene)


def test_chores_are_done_for_each_log_as_its_owner() -> None:
    async def scene(stage: Stage) -> None:
        logs, metrics = stage.logs(SETTINGS), Metrics()
        await logs.create("mine")
        await logs.create("theirs", purpose=Purpose(PurposeKind.DATABASE, "shop"))
        done: list[str] = []

        async def chore(acting: Logs, name: str) -> None:
            await acting.retain(name)
            done.append(name)
            raise CorruptionError("of this log only")

        await Janitor(logs, metrics, [chore]).round()
        assert done == ["mine", "theirs"]
        assert "triplicate_log_janitor_failures_total 2.0" in metrics.expose().decode()

    play(scene)


def test_the_janitor_goes_on_after_an_error() -> None:
    async def scene(stage: Stage) -> None:
        logs, metrics = stage.logs(LogClientSettings(janitor_interval_s=0.02, janitor_pause_s=0.0)), Metrics()
        await logs.create("l")
        now_ms, asked = logs.store.now_ms, list[int]()

        async def failing() -> int:
            asked.append(1)
            if len(asked) < 3:
                raise CorruptionError("not now")
            return await now_ms()

        logs.store.now_ms = failing  # type: ignore[method-assign]
        running = asyncio.ensure_future(Janitor(logs, metrics).run())
        async with asyncio.timeout(15):
            while "triplicate_log_janitor_rounds_total 0.0" in metrics.expose().decode() or len(asked) < 3:
                await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    play(scene)


def test_a_snapshot_that_takes_hours_is_not_swept_before_it_is_listed() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(SETTINGS)
        await logs.create("l")
        stage.wall_us = stage.host.clock.wall_us()
        snapshot = await write_snapshot(logs, b"content", position=0)
        stage.wall_us += DAY_US - 1_000_000
        assert (await Janitor(logs).round())["ledgers"] == 0
        stage.wall_us += 2_000_000
        assert (await Janitor(logs).round())["ledgers"] == 1
        assert snapshot.ledger_id not in stage.bookies.ledgers

    play(scene)


def test_a_defect_met_with_one_log_ends_neither_the_round_nor_the_janitor() -> None:
    async def scene(stage: Stage) -> None:
        logs, metrics = stage.logs(LogClientSettings(janitor_interval_s=0.02, janitor_pause_s=0.0)), Metrics()
        for name in ("a", "b"):
            await logs.create(name)
        done: list[str] = []

        async def chore(_: Logs, name: str) -> None:
            done.append(name)
            if name == "a":
                raise KeyError("a defect")

        running = asyncio.ensure_future(Janitor(logs, metrics, [chore]).run())
        async with asyncio.timeout(15):
            while len(done) < 4 and not running.done():
                await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert done[:4] == ["a", "b", "a", "b"]

    play(scene)
