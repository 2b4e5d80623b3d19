"""The reader: continuity over segments, tailing, seeking, truncation, control records; planning and reading ranges."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.log.fake import FakeView, Stage, play, read_values
from triplicate.errors import ArgumentError, HandleClosed, NoSuchLedger, NoSuchLog, OffsetGap, OffsetTruncated, ReadFailed
from triplicate.ledger import Entry
from triplicate.log import LogEntry, LogReader, Logs, LogSettings, OffsetRange, RangeReader
from triplicate.log.core import head_changes
from triplicate.log.core.head import encode_head

ROLLING = LogSettings(roll_size_bytes=1024, compression="none")


async def fill(logs: Logs, name: str, count: int, *, group: int = 3, settings: LogSettings = ROLLING) -> list[bytes]:
    """A log of several segments, closed, with entries of `group` records; returns the values."""
    await logs.create(name, settings)
    values = [b"%04d" % number + b"." * 60 for number in range(count)]
    async with await logs.writer(name, owner="filler") as writer:
        for start in range(0, count, group):
            await writer.append_entry(values[start : start + group], preamble=b"group %d" % start)
    return values


async def drain(reader: LogReader | RangeReader) -> None:
    """Read until an error."""
    while True:
        await anext(reader)


def test_reading_may_begin_at_any_offset() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        values = await fill(logs, "l", 50)
        assert len(await logs.segments("l")) > 3
        for start in range(50):
            assert await read_values(logs, "l", start, 50) == values[start:]

    play(scene)


def test_an_entry_entered_in_its_middle_is_cut() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_entry(
                [b"a", None, b"c"], keys=[b"k", b"l", None], timestamps_us=[1, 2, 3], transaction_ids=[7, 8, 9],
                headers=[[("h", b"1")], [], [("n", None)]], preamble=b"p",
            )  # fmt: skip
        async with await logs.reader("l", 1) as reader:
            entry = await anext(reader)
            assert (entry.first_offset, entry.slot, entry.count, entry.end_offset) == (1, 1, 2, 3)
            assert (entry.values, entry.keys, entry.timestamps_us) == ([None, b"c"], [b"l", None], [2, 3])
            assert (entry.transaction_ids, entry.headers) == ([8, 9], [(), (("n", None),)])
            assert (entry.preamble, entry.epoch, list(entry.offsets)) == (b"p", 1, [1, 2])
            assert bytes(entry.view.value_data) == b"ac"

    play(scene)


def test_a_reader_follows_the_writer_over_segments_and_take_overs() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l", ROLLING)
        values = [b"%04d" % number + b"." * 100 for number in range(60)]
        read: list[bytes | None] = []

        async def follow() -> None:
            async with await others.reader("l") as reader:
                async for entry in reader:
                    assert entry.first_offset == len(read)
                    read.extend(entry.values)
                    if len(read) == len(values):
                        return

        following = asyncio.ensure_future(follow())
        writer = await logs.writer("l", owner="w")
        for number, value in enumerate(values):
            if number == 30:
                writer = await others.writer("l", owner="v")
            assert await writer.append(value) == number
            await asyncio.sleep(0)
        await following
        await writer.close()
        assert read == values

    play(scene)


def test_the_end_is_waited_for_and_nothing_is_lost_by_waiting() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.reader("l") as reader:
            assert await reader.next_entry(0.01) is None
            async with await logs.writer("l", owner="w") as writer:
                assert await reader.next_entry(0.01) is None
                await writer.append(b"a")
                entry = await reader.next_entry(5)
                assert entry is not None
                assert entry.values == [b"a"]
                assert await reader.next_entry(0.01) is None
                await writer.append(b"b")
            entry = await reader.next_entry(5)
            assert entry is not None
            assert (entry.values, reader.position) == ([b"b"], 2)
            assert await reader.next_entry(0.01) is None

    play(scene)


def test_control_records_are_delivered_when_asked_for() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="me") as writer:
            await writer.append(b"a")
            await writer.control("abort", {"part": 1})
            await writer.append(b"b")
        seen: list[tuple[str | None, int]] = []
        async with await logs.reader("l", include_control=True) as reader:
            while reader.position < 2:
                entry = await anext(reader)
                seen.append((entry.control["kind"] if entry.control else None, entry.first_offset))
                if entry.control and entry.control["kind"] == "segment":
                    assert (entry.control["writer"], entry.control["epoch"], entry.control["first_offset"]) == ("me", 1, 0)
        assert [item for item in seen if item[0] != "noop"] == [("segment", 0), (None, 0), ("abort", 1), (None, 1)]

    play(scene)


def test_a_truncated_offset_is_an_error_that_says_where_the_log_begins() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        values = await fill(logs, "l", 30)
        waiting = await logs.reader("l")
        assert await logs.truncate("l", 20) == 20
        with pytest.raises(OffsetTruncated, match="20"):
            await logs.reader("l", 19)
        with pytest.raises(OffsetTruncated, match="20"):
            await anext(waiting)
        await waiting.aclose()
        assert await read_values(logs, "l", 20, 30) == values[20:]
        with pytest.raises(ArgumentError):
            await logs.reader("l", 31)

    play(scene)


def test_a_reader_that_is_overtaken_by_truncation_says_so() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, "l", 60)
        async with await logs.reader("l") as reader:
            assert (await anext(reader)).first_offset == 0
            await logs.truncate("l", 60)
            assert stage.bookies.ledgers == {}
            with pytest.raises(OffsetTruncated):
                await drain(reader)

    play(scene)


async def _without_segment(stage: Stage, logs: Logs, place: int) -> None:
    """Cut one segment out of the list, as a wrong compare-and-set would."""
    path = "/triplicate/test/logs/l"
    tree = stage.client_of(logs).metadata.tree
    head = await logs.head("l")
    await tree.set(path, encode_head(replace(head, recent=head.recent[:place] + head.recent[place + 1 :])))


def test_a_missing_segment_is_an_error_and_not_a_gap() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, "l", 60)
        end = (await logs.segments("l"))[0].end_offset
        await _without_segment(stage, logs, 1)
        async with await logs.reader("l") as reader:
            with pytest.raises(OffsetGap, match=str(end)):
                await drain(reader)
            assert reader.position == end
        with pytest.raises(OffsetGap):
            await logs.plan("l", 0, 60, 1000)

    play(scene)


def test_a_missing_entry_is_an_error_and_not_a_gap() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, "l", 30, settings=LogSettings())
        (segment,) = await logs.segments("l")
        ledger = stage.bookies.ledger(segment.ledger_id)
        lost = next(place for place, entry in enumerate(ledger.entries) if b"0009" in entry.payload)
        following = ledger.entries[lost + 1 :]
        ledger.entries[lost:] = [*following, following[-1]]
        async with await logs.reader("l") as reader:
            with pytest.raises(OffsetGap, match="offset 9 was expected"):
                await drain(reader)
        async with logs.read_range(OffsetRange(segment.ledger_id, 0, 0, 30, segment.last_entry)) as reading:
            with pytest.raises(OffsetGap, match="offset 9 was expected"):
                await drain(reading)

    play(scene)


def test_a_segment_with_fewer_records_than_the_list_says_is_an_error() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, "l", 60)
        first = (await logs.segments("l"))[0]
        ledger = stage.bookies.ledger(first.ledger_id)
        places = [place for place, entry in enumerate(ledger.entries) if b"...." in entry.payload]
        noop = ledger.entries[-1] if places[-1] != len(ledger.entries) - 1 else ledger.entries[0]
        ledger.entries[places[-1]] = noop
        async with await logs.reader("l") as reader:
            with pytest.raises(OffsetGap):
                await drain(reader)

    play(scene)


def test_a_lost_ledger_is_named() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, "l", 60)
        second = (await logs.segments("l"))[1]
        del stage.bookies.ledgers[second.ledger_id]
        async with await logs.reader("l") as reader:
            with pytest.raises(NoSuchLedger, match=f"ledger {second.ledger_id} from offset {second.first_offset}"):
                await drain(reader)

    play(scene)


def test_one_reader_serves_one_caller() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.reader("l") as reader:
            waiting = asyncio.ensure_future(reader.next_entry(0.5))
            await asyncio.sleep(0.01)
            with pytest.raises(HandleClosed, match="one caller"):
                await reader.next_entry(0.01)
            assert await waiting is None

    play(scene)


def test_a_log_created_again_is_not_taken_for_the_old_one() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.reader("l") as reader:
            await logs.delete("l")
            await logs.create("l")
            with pytest.raises(NoSuchLog, match="created again"):
                await anext(reader)

    play(scene)


async def read_planned(logs: Logs, ranges: list[OffsetRange]) -> list[bytes | None]:
    values: list[bytes | None] = []
    for planned in ranges:
        offset = planned.first_offset
        async with logs.read_range(planned) as reading:
            entry: LogEntry
            async for entry in reading:
                assert entry.first_offset == offset
                offset = entry.end_offset
                values += entry.values
        assert offset == planned.end_offset
    return values


@pytest.mark.parametrize("max_records", [1, 7, 1000])
def test_planned_ranges_hold_exactly_what_was_asked_for(max_records: int) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        values = await fill(logs, "l", 50)
        for start, end in ((0, 50), (1, 49), (13, 14), (20, 20)):
            ranges = await logs.plan("l", start, end, max_records)
            assert all(planned.records <= max_records for planned in ranges)
            assert await read_planned(logs, ranges) == values[start:end]
        with pytest.raises(ArgumentError):
            await logs.plan("l", 3, 2, 10)
        with pytest.raises(OffsetGap):
            await logs.plan("l", 0, 51, 10)

    play(scene)


def test_a_plan_is_the_same_before_and_after_its_open_segment_was_closed() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        values = await fill(logs, "l", 40)
        writer = await logs.writer("l", owner="w")
        for number in range(5):
            await writer.append(b"%d" % number)
        await writer.noop()
        await writer.noop()
        assert await logs.end_offset("l") == 45
        before = await logs.plan("l", 3, 44, 2)
        assert await read_planned(logs, before) == [*values[3:], b"0", b"1", b"2", b"3"]
        await writer.append_many([b"x" * 600] * 5)
        await writer.close()
        await fill(logs, "other", 10)
        after = await logs.plan("l", 3, 44, 2)
        assert after == before
        assert await read_planned(logs, after) == [*values[3:], b"0", b"1", b"2", b"3"]

    play(scene)


def test_planned_records_are_waited_for_where_bookies_know_less_than_the_planner() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_entry([b"a", b"b"])
            await writer.noop()
            await writer.noop()
            planned = OffsetRange(writer.ledger_id, 0, 1, 4)
            reading = asyncio.ensure_future(read_planned(logs, [planned]))
            await asyncio.sleep(0.05)
            assert not reading.done()
            await writer.append_entry([b"c", b"d", b"e"])
            assert await reading == [b"b", b"c", b"d"]
        with pytest.raises(OffsetGap):
            await read_planned(logs, [OffsetRange(writer.ledger_id, 0, 1, 6)])

    play(scene)


def test_without_time_to_wait_only_what_was_fetched_is_given() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer, await logs.reader("l") as reader:
            assert await reader.next_entry(0) is None
            for value in (b"a", b"b", b"c"):
                await writer.append_entry([value])
            await writer.noop()
            await writer.noop()
            entry = await reader.next_entry(5)
            values = [entry.values if entry else None]
            while (entry := await reader.next_entry(0)) is not None:
                values.append(entry.values)
            assert values == [[b"a"], [b"b"], [b"c"]]

    play(scene)


def test_many_segments_are_found_through_pages() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        values = await fill(logs, "l", 400, group=1, settings=LogSettings(roll_size_bytes=1024, compression="none"))
        head = await logs.head("l")
        count = len(await logs.segments("l"))
        assert count < head_changes.RECENT_LIMIT or head.pages
        async with await logs.writer("l", owner="w", take_over=True) as writer:
            for number in range(3 * head_changes.RECENT_LIMIT):
                await writer.append_entry([b"y" * 1000])
                assert writer.next_offset == 401 + number
        assert (await logs.head("l")).pages
        assert await read_values(logs, "l", 5, 400) == values[5:]
        assert len(await read_values(logs, "l", 400, 540)) == 140
        assert (await read_planned(logs, await logs.plan("l", 0, 400, 50))) == values

    play(scene)


@pytest.mark.parametrize("every", [1, 2, 3, 5, 8, 13])
def test_cancelling_at_any_moment_loses_nothing(every: int) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", ROLLING)
        values = [b"%04d" % number + b"." * 300 for number in range(40)]
        writer = await logs.writer("l", owner="w")
        for value in values[:30]:
            await writer.append(value)
        read: list[bytes | None] = []
        async with await logs.reader("l") as reader:
            turns = every
            while len(read) < len(values):
                if len(read) == 25 and writer.next_offset == 30:
                    for value in values[30:]:
                        await writer.append(value)
                    await writer.close()
                reading = asyncio.ensure_future(reader.next_entry(5))
                for _ in range(turns):
                    await asyncio.sleep(0)
                if not reading.done():
                    reading.cancel()
                    turns += every
                try:
                    entry = await reading
                except asyncio.CancelledError:
                    continue
                assert entry is not None
                assert entry.first_offset == len(read)
                read += entry.values
                turns = every
        assert read == values

    play(scene)


HEAD = "/triplicate/test/logs/l"


def test_reading_begins_beyond_the_end_that_a_stale_head_tells() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, "l", 3)
        mine, tree = stage.lagging_logs()
        tree.behind[HEAD] = (await tree.get(HEAD))[0]
        async with await logs.writer("l", owner="next") as writer:
            await writer.append_entry([b"3", b"4"])
        async with await mine.reader("l", 5) as reader:
            assert reader.position == 5
        with pytest.raises(ArgumentError, match="ends at 5"):
            await mine.reader("l", 6)

    play(scene)


def test_a_stale_head_is_read_again_before_a_segment_counts_as_missing() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", ROLLING)
        mine, tree = stage.lagging_logs()
        async with await logs.writer("l", owner="w") as writer:
            first = (await tree.get(HEAD))[0]
            values = [b"%04d" % number + b"." * 600 for number in range(6)]
            async with await mine.reader("l", 0) as reader:
                for value in values[:3]:
                    await writer.append_entry([value])
                read = [(await anext(reader)).values for _ in range(3)]
                tree.behind[HEAD] = first
                for value in values[3:]:
                    await writer.append_entry([value])
                assert writer.rolls >= 2
                read += [(await anext(reader)).values for _ in range(3)]
                assert read == [[value] for value in values]

    play(scene)


def test_a_stale_head_of_a_log_that_was_made_again_is_read_again() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, "l", 3)
        mine, tree = stage.lagging_logs()
        former = (await tree.get(HEAD))[0]
        await logs.delete("l")
        await fill(logs, "l", 6)
        async with await mine.reader("l", 0) as reader:
            tree.behind[HEAD] = former
            assert (await anext(reader)).count == 3

    play(scene)


def test_a_reader_goes_on_where_it_is_after_a_read_that_failed() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            for number in range(20):
                await writer.append_entry([b"%d" % number])
        client, failing = stage.client_of(logs), [True]
        open_ledger = client.open

        async def open_failing(ledger_id: int, *, password: bytes = b"") -> FakeView:
            view = await open_ledger(ledger_id, password=password)
            read = view.read

            async def read_some(first: int, last: int) -> list[Entry]:
                if last > 10 and failing:
                    failing.pop()
                    raise ReadFailed("no bookie answers")
                return await read(first, last)

            view.read = read_some  # type: ignore[method-assign]
            return view

        client.open = open_failing  # type: ignore[method-assign]
        values: list[bytes | None] = []

        async def take(reader: LogReader) -> None:
            while len(values) < 20:
                values.extend((await anext(reader)).values)

        async with await logs.reader("l") as reader:
            with pytest.raises(ReadFailed):
                await take(reader)
            await take(reader)
        assert values == [b"%d" % number for number in range(20)]

    play(scene)
