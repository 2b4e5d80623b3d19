"""Segments are rewritten: reduced ones into full copies, small neighbours into one; nothing that a reader sees changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.log.fake import FakeBookies, FakeView, Stage, play, read_values
from tests.unit.log.publish_rig import staged
from tests.waiting import eventually
from triplicate.errors import CorruptionError, NoSuchLedger, OffsetTruncated, ReadFailed
from triplicate.ledger import Entry
from triplicate.log import (
    LogClientSettings,
    LogEntry,
    Logs,
    LogSettings,
    Quorums,
    RewriteResult,
    SegmentState,
    StagingOrigin,
    maintain,
)
from triplicate.log.core.head import Head
from triplicate.log.core.rewrite_plan import Run
from triplicate.log.publishing import publication
from triplicate.log.upkeep import rewriter
from triplicate.log.upkeep.rewriter import Rewriter
from triplicate.metadata import MemoryStore

AT_ONCE = LogClientSettings(merge_after_s=0.0)
QUICK = LogSettings(roll_size_bytes=1024, compression="none")


def seen(entry: LogEntry) -> tuple[Any, ...]:
    """Everything of an entry that a reader may rely on."""
    return (
        entry.first_offset,
        entry.values,
        entry.keys,
        entry.headers,
        entry.timestamps_us,
        entry.transaction_ids,
        entry.preamble,
        entry.producer,
        entry.wall_time_us,
        entry.epoch,
        entry.control if entry.control is not None and entry.control["kind"] == "abort" else None,
    )


async def all_seen(logs: Logs, name: str, end: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    async with await logs.reader(name, include_control=True) as reader:
        while reader.position < end:
            entry = await reader.next_entry(5)
            assert entry is not None
            if not entry.is_control or (entry.control or {})["kind"] == "abort":
                found.append(seen(entry))
    return found


async def write_rich(logs: Logs, name: str, owner: str, count: int) -> None:
    """Entries with everything that an entry can have."""
    async with await logs.writer(name, owner=owner) as writer:
        producer = await writer.producer(owner, epoch=3)
        for number in range(count):
            await writer.append_entry(
                [b"value %d" % number + b"." * 300, None],
                keys=[b"k%d" % number, None],
                headers=[[("name", b"v"), ("none", None)], []],
                timestamps_us=[number, -number],
                transaction_ids=[number, number + 1],
                preamble=b"preamble %d" % number,
            )
            await producer.append(b"numbered %d" % number, sequence=number)
            await writer.control("abort", {"number": number})
        await writer.append_entry([b"last"])


async def publish_some(logs: Logs, count: int, first: int = 0) -> None:
    for batch in range(first, first + count):
        async with await logs.staging(StagingOrigin("l", "app")) as writer:
            await writer.append_many([b"%d-%d" % (batch, number) for number in range(3)])
            sealed = await writer.seal()
        await logs.publish("l", [sealed], application="app", batch=batch)


def test_reduced_segments_get_all_their_copies_and_nothing_that_is_read_changes() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(compression="zlib"))
        stage.bookies.writable = ["bookie-0", "bookie-1"]
        await write_rich(logs, "l", "w", 5)
        stage.bookies.writable = ["bookie-0", "bookie-1", "bookie-2"]
        (old,) = await logs.segments("l")
        assert old.reduced == Quorums(2, 2)
        before = await all_seen(logs, "l", 16)
        payloads = [entry.payload for entry in stage.bookies.ledger(old.ledger_id).entries]
        done = await logs.raise_copies("l")
        assert done == RewriteResult(1, 1, 16, old.size_bytes)
        (new,) = await logs.segments("l")
        assert (new.reduced, new.state) == (None, SegmentState.CLOSED)
        assert new == replace(old, ledger_id=new.ledger_id, reduced=None)
        metadata = stage.bookies.ledger(new.ledger_id).metadata
        assert (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum) == (3, 3, 2)
        assert [entry.payload for entry in stage.bookies.ledger(new.ledger_id).entries] == payloads
        assert await all_seen(logs, "l", 16) == before
        assert list(stage.bookies.ledgers) == [new.ledger_id], "the old ledger is gone"
        assert await logs.raise_copies("l") == RewriteResult()

    play(scene)


def test_reduced_segments_stay_as_they_are_while_bookies_are_short() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        stage.bookies.writable.pop()
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
        before = await logs.segments("l")
        assert (await logs.raise_copies("l")).postponed == 1
        assert await logs.segments("l") == before
        assert len(stage.bookies.ledgers) == 1

    play(scene)


def test_small_neighbours_become_one_segment_and_nothing_that_is_read_changes() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(AT_ONCE)
        await logs.create("l", QUICK)
        await write_rich(logs, "l", "w", 12)
        before = await all_seen(logs, "l", 37)
        old = await logs.segments("l")
        assert len(old) > 3
        done = await logs.merge_small("l")
        assert (done.segments, done.ledgers, done.records) == (len(old), 1, 37)
        (new,) = await logs.segments("l")
        assert (new.first_offset, new.end_offset) == (0, 37)
        assert (new.min_time_us, new.max_time_us) == (old[0].min_time_us, old[-1].max_time_us)
        ledger = stage.bookies.ledger(new.ledger_id)
        assert (new.size_bytes, new.last_entry) == (ledger.metadata.length, ledger.metadata.last_entry_id)
        assert await all_seen(logs, "l", 37) == before
        for offset in range(37):
            async with await logs.reader("l", offset) as reader:
                entry = await reader.next_entry(5)
                assert entry is not None
                assert entry.first_offset == offset
        assert list(stage.bookies.ledgers) == [new.ledger_id]

    play(scene)


def test_segments_of_different_epochs_are_not_merged() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(AT_ONCE)
        await logs.create("l")
        await publish_some(logs, 3)
        for owner in ("v", "w"):
            async with await logs.writer("l", owner=owner) as writer:
                await writer.append_many([b"a", b"b"])
        before = await all_seen(logs, "l", 13)
        assert [row[9] for row in before] == [0, 0, 0, 1, 2]
        done = await logs.merge_small("l")
        assert (done.segments, done.ledgers) == (3, 1)
        assert [segment.records for segment in await logs.segments("l")] == [9, 2, 2]
        assert await all_seen(logs, "l", 13) == before

    play(scene)


def test_announced_ledgers_that_were_merged_are_not_published_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(stage: Stage) -> None:
        monkeypatch.setattr(publication, "MARKS_BYTES_MAXIMUM", 100)
        logs = stage.logs(AT_ONCE)
        await logs.create("l")
        parts = [await staged(logs, [b"%d" % number]) for number in range(5)]
        published = await logs.publish("l", parts)

        async def killed_before(*_: object) -> list[int]:
            return []

        monkeypatch.setattr(rewriter, "discard_unpublished", killed_before)
        assert (await logs.merge_small("l")).segments == 5
        again = await stage.logs().publish("l", parts)
        assert (again.already, again.first_offset, again.end_offset) == (True, 0, 5)
        assert (await logs.head("l")).closed_end == published.end_offset == 5

    play(scene)


def test_young_and_large_segments_and_the_open_one_are_not_merged() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(merge_after_s=3600))
        await logs.create("l")
        await publish_some(logs, 3)
        assert await logs.merge_small("l") == RewriteResult()
        strict = stage.logs(LogClientSettings(merge_after_s=0, merge_below_bytes=10))
        assert await strict.merge_small("l") == RewriteResult()
        now = stage.logs(AT_ONCE)
        async with await now.writer("l", owner="w") as writer:
            await writer.append(b"x")
            assert (await now.merge_small("l")).segments == 3
            assert await writer.append(b"y") == 10
            assert [segment.records for segment in await now.segments("l")] == [9, 0]
        assert len(await read_values(now, "l", 0, 11)) == 11

    play(scene)


def test_a_row_over_pages_becomes_one_segment() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(AT_ONCE)
        await logs.create("l")
        await publish_some(logs, 130)
        head = await logs.head("l")
        assert head.pages
        before = await read_values(logs, "l", 0, 390)
        done = await logs.merge_small("l")
        assert (done.segments, done.ledgers) == (130, 1)
        assert [segment.records for segment in await logs.segments("l")] == [390]
        assert await read_values(logs, "l", 0, 390) == before
        await publish_some(logs, 1, first=130)
        assert (await logs.head("l")).closed_end == 393

    play(scene)


class Spoiled(FakeBookies):
    """Gives back other bytes than it was given, for ledgers of rewritings."""

    def __init__(self, store: MemoryStore, spoil: str) -> None:
        super().__init__(store)
        self.spoil = spoil

    def ledger(self, ledger_id: int) -> Any:
        ledger = super().ledger(ledger_id)
        if "rewritten" in ledger.metadata.custom and ledger.metadata.is_closed and ledger.entries:
            ledger.entries = list(spoiled(ledger.entries, self.spoil))
            self.spoil = ""
        return ledger


def spoiled(entries: Sequence[Entry], how: str) -> list[Entry]:
    changed = list(entries)
    if how == "byte":
        changed[2] = replace(changed[2], payload=changed[2].payload[:-1] + bytes([changed[2].payload[-1] ^ 1]))
    if how == "order":
        changed[1:3] = [replace(changed[1], payload=changed[2].payload), replace(changed[2], payload=changed[1].payload)]
    if how == "wall time":
        changed[2] = replace(changed[2], payload=changed[2].payload[:24] + bytes(8) + changed[2].payload[32:])
    return changed


@pytest.mark.parametrize("spoil", ["byte", "order", "wall time"])
def test_a_new_ledger_that_does_not_read_as_the_old_ones_is_thrown_away(spoil: str) -> None:
    async def scene(stage: Stage) -> None:
        stage.bookies = Spoiled(stage.store, spoil)
        logs = stage.logs(AT_ONCE)
        await logs.create("l")
        await publish_some(logs, 4)
        before = await logs.segments("l")
        with pytest.raises(CorruptionError):
            await logs.merge_small("l")
        assert await logs.segments("l") == before
        assert set(stage.bookies.ledgers) == {segment.ledger_id for segment in before}
        assert (await logs.merge_small("l")).ledgers == 1

    play(scene)


def test_an_old_ledger_that_holds_less_than_the_list_says_is_not_replaced() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(AT_ONCE)
        await logs.create("l")
        await publish_some(logs, 2)
        before = await logs.segments("l")
        short = stage.bookies.ledger(before[0].ledger_id)
        short.entries[0] = replace(short.entries[0], payload=stage.bookies.ledger(before[1].ledger_id).entries[0].payload[:12] + bytes(100))
        with pytest.raises(CorruptionError):
            await logs.merge_small("l")
        assert await logs.segments("l") == before

    play(scene)


def test_a_list_that_changed_meanwhile_keeps_its_segments() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(AT_ONCE), stage.logs(AT_ONCE)
        await logs.create("l")
        await publish_some(logs, 4)

        async def truncate() -> None:
            stage.client_of(logs).hooks.create = None
            await others.truncate("l", 4)

        stage.client_of(logs).hooks.create = truncate
        assert (await logs.merge_small("l")).postponed == 4
        segments = await logs.segments("l")
        assert [segment.first_offset for segment in segments] == [3, 6, 9]
        assert set(stage.bookies.ledgers) == {segment.ledger_id for segment in segments}
        assert (await logs.merge_small("l")).segments == 3
        assert len(await read_values(logs, "l", 4, 12)) == 8

    play(scene)


def test_a_list_that_changed_after_the_copying_keeps_its_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(AT_ONCE), stage.logs(AT_ONCE)
        await logs.create("l")
        await publish_some(logs, 4)

        async def mark_slowly(self: Rewriter, run: Run, head: Head) -> None:
            await mark(self, run, head)
            await others.truncate("l", 4)

        mark = Rewriter._mark_listed
        monkeypatch.setattr(Rewriter, "_mark_listed", mark_slowly)
        assert (await logs.merge_small("l")).postponed == 4
        segments = await logs.segments("l")
        assert [segment.first_offset for segment in segments] == [3, 6, 9]
        assert set(stage.bookies.ledgers) == {segment.ledger_id for segment in segments}

    play(scene)


def test_more_small_entries_than_the_windows_take_are_rewritten() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(AT_ONCE)
        await logs.create("l", LogSettings(roll_size_bytes=16 * 1024, compression="none"))
        async with await logs.writer("l", owner="w") as writer:
            for number in range(500):
                await writer.append_entry([b"%d" % number])
        assert len(await logs.segments("l")) > 1
        assert (await logs.merge_small("l")).ledgers == 1
        assert await read_values(logs, "l", 0, 500) == [b"%d" % number for number in range(500)]

    play(scene)


def test_two_rewritings_at_once_leave_one_ledger_and_every_record() -> None:
    async def scene(stage: Stage) -> None:
        first, second = stage.logs(AT_ONCE), stage.logs(AT_ONCE)
        await first.create("l")
        await publish_some(first, 6)
        before = await read_values(first, "l", 0, 18)
        await asyncio.gather(first.merge_small("l"), second.merge_small("l"))
        (segment,) = await first.segments("l")
        assert list(stage.bookies.ledgers) == [segment.ledger_id]
        assert await read_values(first, "l", 0, 18) == before

    play(scene)


def test_readers_that_hold_the_old_list_go_on_in_the_new_ledger() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(replace(AT_ONCE, read_ahead_entries=1))
        await logs.create("l")
        await publish_some(logs, 6)
        expected = await read_values(logs, "l", 0, 18)
        planned = await logs.plan("l", 4, 17, 5)
        readers = [await logs.reader("l", start) for start in (0, 3, 5)]
        values = [[*(await reader.next_entry(5)).values] for reader in readers]  # type: ignore[union-attr]
        ranges = [logs.read_range(item) for item in planned]
        read = [[*(await reading.next_entry()).values] for reading in ranges]  # type: ignore[union-attr]
        await logs.merge_small("l")
        for start, reader, found in zip((0, 3, 5), readers, values, strict=True):
            while reader.position < 18:
                entry = await reader.next_entry(5)
                assert entry is not None
                found += entry.values
            assert found == expected[start:]
            await reader.aclose()
        for item, reading, found in zip(planned, ranges, read, strict=True):
            async for entry in reading:
                found += entry.values
            assert found == expected[item.first_offset : item.end_offset]
            await reading.aclose()
        # And ranges that nobody had begun to read.
        for item in planned:
            async with logs.read_range(item) as reading:
                assert [value async for entry in reading for value in entry.values] == expected[item.first_offset : item.end_offset]

    play(scene)


def test_a_planned_range_says_what_became_of_records_that_are_gone() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        await publish_some(logs, 2)
        first, second = await logs.plan("l", 0, 6, 3)
        await logs.truncate("l", 3)
        with pytest.raises(OffsetTruncated, match="begins at 3"):
            await logs.read_range(first).next_entry()
        del stage.bookies.ledgers[second.ledger_id]
        with pytest.raises(NoSuchLedger):
            await logs.read_range(second).next_entry()
        await logs.delete("l")
        await logs.create("l")
        await publish_some(logs, 2)
        with pytest.raises(NoSuchLedger):
            await logs.read_range(second).next_entry()

    play(scene)


def test_a_janitor_merges_only_what_is_worth_it_and_raises_copies_first() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(AT_ONCE)
        await logs.create("l")
        await publish_some(logs, 4)
        before = await logs.segments("l")
        await maintain(logs, "l")
        assert await logs.segments("l") == before, "four segments are not worth it"
        stage.bookies.writable.pop()
        await publish_some(logs, 6, first=4)
        stage.bookies.writable.append("bookie-2")
        assert [segment.reduced for segment in await logs.segments("l")] == [None] * 4 + [Quorums(2, 2)] * 6
        await maintain(logs, "l")
        assert 'triplicate_log_segments_rewritten_total{log="l"} 16.0' in stage.client_of(logs).metrics.expose().decode()
        (segment,) = await logs.segments("l")
        assert (segment.records, segment.reduced) == (30, None)
        assert list(stage.bookies.ledgers) == [segment.ledger_id]

    play(scene)


def test_rewriting_is_paced() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(replace(AT_ONCE, rewrite_bytes_per_s=20 * 1024))
        await logs.create("l", LogSettings(compression="none"))
        for batch in range(2):
            async with await logs.staging(StagingOrigin("l", "app")) as writer:
                await writer.append_many([b"." * 1000] * 2)
                sealed = await writer.seal()
            await logs.publish("l", [sealed], application="app", batch=batch)
        began = stage.host.clock.monotonic()
        await logs.merge_small("l")
        assert stage.host.clock.monotonic() - began >= 2 * 4000 / (20 * 1024)

    play(scene)


def test_a_rewriting_that_ended_half_way_is_begun_again_and_its_ledger_swept() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(replace(AT_ONCE, rewrite_bytes_per_s=1024, orphan_grace_s=0.0))
        await logs.create("l", LogSettings(compression="none"))
        await publish_some(logs, 6)
        merging = asyncio.ensure_future(logs.merge_small("l"))
        await eventually(lambda: len(stage.bookies.ledgers) >= 7)
        await asyncio.sleep(0.05)
        merging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await merging
        assert len(await logs.segments("l")) == 6
        await asyncio.sleep(0.002)
        assert (await logs.sweep("l"))["ledgers"] == 1
        again = stage.logs(AT_ONCE)
        assert (await again.merge_small("l")).ledgers == 1
        assert len(stage.bookies.ledgers) == 1

    play(scene)


def test_a_segment_that_cannot_be_read_does_not_keep_the_others_from_getting_their_copies() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        stage.bookies.writable.pop()
        for value in (b"a", b"b", b"c"):
            async with await logs.writer("l", owner="w") as writer:
                await writer.append(value)
        stage.bookies.writable.append("bookie-2")
        client, broken = stage.client_of(logs), (await logs.segments("l"))[0].ledger_id
        open_ledger = client.open

        async def open_some(ledger_id: int, *, password: bytes = b"") -> FakeView:
            if ledger_id == broken:
                raise ReadFailed(f"entry 0 of ledger {ledger_id}: no bookie that answers has it")
            return await open_ledger(ledger_id, password=password)

        client.open = open_some  # type: ignore[method-assign]
        with pytest.raises(ReadFailed):
            await logs.raise_copies("l", limit=2)
        assert [segment.reduced for segment in await logs.segments("l")] == [Quorums(2, 2), None, None]

    play(scene)
