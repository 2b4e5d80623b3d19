"""Reading backwards: every record once, over segments, holes and truncation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.log.fake import Stage, play
from triplicate.errors import ArgumentError, OffsetGap, OffsetTruncated
from triplicate.log import BackwardReader, Logs, LogSettings, SegmentState, decode_header
from triplicate.log.reading.log_reader import STALE_ATTEMPTS

SMALL_PLAIN = LogSettings(roll_size_bytes=2048, compression="none")


async def filled(stage: Stage, count: int = 60) -> Logs:
    """A log of `count` records in entries of three, over several segments."""
    logs = stage.logs()
    await logs.create("l", SMALL_PLAIN)
    async with await logs.writer("l") as writer:
        for number in range(0, count, 3):
            await writer.append_entry([b"%d" % (number + place) + b"." * 200 for place in range(3)])
            await writer.noop()
    return logs


async def rest_of(reader: BackwardReader) -> list[int]:
    return [record.offset async for record in reader]


async def backwards(logs: Logs, position: int | str = "latest", **options: bool) -> list[int]:
    return [record.offset async for record in logs.backwards("l", position, **options)]


def test_every_record_is_delivered_once_the_last_first() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        assert len(await logs.segments("l")) > 3
        found = [(record.offset, record.value) async for record in logs.backwards("l")]
        assert found == [(number, b"%d" % number + b"." * 200) for number in reversed(range(60))]

    play(scene)


@pytest.mark.parametrize("position", [0, 1, 29, 30, 31, 59, 60])
def test_it_begins_before_any_position(position: int) -> None:
    async def scene(stage: Stage) -> None:
        assert await backwards(await filled(stage), position) == list(reversed(range(position)))

    play(scene)


def test_it_reads_an_open_segment_and_what_comes_later_is_not_delivered() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l") as writer:
            await writer.append_many([b"a", b"b", b"c"])
            await writer.noop()
            async with logs.backwards("l") as reader:
                assert (await reader.next_record()).value == b"c"  # type: ignore[union-attr]
                await writer.append(b"d")
                assert [record.value async for record in reader] == [b"b", b"a"]
                assert await reader.next_record() is None
            await writer.noop()
            last = await logs.last_record("l")
            assert last is not None
            assert (last.offset, last.value) == (3, b"d")

    play(scene)


def test_an_empty_log_has_no_last_record() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings())
        assert await logs.last_record("l") is None
        async with await logs.writer("l"):
            assert await logs.last_record("l") is None

    play(scene)


def test_it_ends_at_the_first_offset_of_a_truncated_log() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        await logs.truncate("l", 31)
        assert await backwards(logs) == list(reversed(range(31, 60)))
        with pytest.raises(OffsetTruncated, match="begins at 31"):
            await backwards(logs, 30)
        with pytest.raises(ArgumentError, match="ends at 60"):
            await backwards(logs, 61)

    play(scene)


def test_a_truncation_of_what_comes_next_is_told() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with logs.backwards("l") as reader:
            while reader.position != 50:
                await reader.next_record()
            await logs.truncate("l", 57)
            with pytest.raises(OffsetTruncated, match="begins at 57"):
                await rest_of(reader)

    play(scene)


def test_a_lost_segment_is_told_or_passed_over() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        segments = [segment for segment in await logs.segments("l") if segment.state is SegmentState.CLOSED]
        lost = segments[1]
        stage.bookies.ledgers.pop(lost.ledger_id)
        await logs.client.metadata.ledgers.delete(lost.ledger_id)  # type: ignore[attr-defined]
        await logs.repair("l")
        async with logs.backwards("l") as reader:
            while reader.position != lost.end_offset:
                await reader.next_record()
            with pytest.raises(OffsetGap, match=rf"offsets {lost.first_offset} to {lost.end_offset - 1} are lost"):
                await reader.next_record()
            assert reader.position == lost.end_offset
        passing = logs.backwards("l", skip_lost=True)
        found = [record.offset async for record in passing]
        assert found == [*reversed(range(lost.end_offset, 60)), *reversed(range(lost.first_offset))]
        assert passing.lost == [(lost.first_offset, lost.end_offset - 1)]

    play(scene)


def test_any_number_of_lost_segments_in_a_row_is_passed_over() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage, 240)
        segments = [segment for segment in await logs.segments("l") if segment.state is SegmentState.CLOSED]
        lost = segments[1:-1]
        assert len(lost) > STALE_ATTEMPTS
        for segment in lost:
            stage.bookies.ledgers.pop(segment.ledger_id)
            await logs.client.metadata.ledgers.delete(segment.ledger_id)  # type: ignore[attr-defined]
        await logs.repair("l")
        passing = logs.backwards("l", skip_lost=True)
        found = [record.offset async for record in passing]
        assert found == [*reversed(range(lost[-1].end_offset, 240)), *reversed(range(lost[0].first_offset))]
        assert len(passing.lost) == len(lost)

    play(scene)


def test_an_entry_that_is_missing_is_an_error() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        segment = (await logs.segments("l"))[1]
        entries = stage.bookies.ledger(segment.ledger_id).entries
        place = next(number for number in range(2, len(entries)) if decode_header(entries[number].payload).count)
        entries[place] = replace(entries[place - 1], entry_id=place)
        with pytest.raises(OffsetGap):
            await backwards(logs)

    play(scene)


def test_it_goes_on_when_segments_were_merged_meanwhile() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        async with logs.backwards("l") as reader:
            for _ in range(5):
                await reader.next_record()
            logs.settings = replace(logs.settings, merge_after_s=0.0)
            assert (await logs.merge_small("l")).segments
            assert [record.offset async for record in reader] == list(reversed(range(55)))

    play(scene)
