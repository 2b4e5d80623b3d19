"""Reading record by record: to the end, without end, from any position, and loops that are left."""

from __future__ import annotations

import asyncio
import datetime

import pytest

from tests.unit.log.fake import FakeView, Stage, play
from tests.waiting import eventually
from triplicate.errors import ArgumentError, HandleClosed, NoSuchLog, OffsetTruncated
from triplicate.log import LogRecord, LogRecords, Logs, LogSettings, Position, TransactionId

FIRST_US = 1_700_000_000_000_000
SMALL_PLAIN = LogSettings(roll_size_bytes=2048, compression="none")


async def filled(stage: Stage, count: int = 60, *, settings: LogSettings = SMALL_PLAIN) -> Logs:
    """A log of `count` records, one a second and an entry each, over several segments."""
    logs = stage.logs()
    stage.wall_us = FIRST_US
    await logs.create("l", settings)
    async with await logs.writer("l") as writer:
        for number in range(count):
            stage.wall_us = FIRST_US + number * 1_000_000
            await writer.append_entry([b"%d" % number + b"." * 200], keys=[b"k"], transaction_ids=[number // 2 * 10])
    return logs


def test_a_loop_over_a_log_delivers_every_record_with_its_parts() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l") as writer:
            await writer.append(b"one", key=b"k", headers=[("h", b"v")], timestamp_us=5)
            await writer.append(None)
        found: list[LogRecord] = []
        async for record in logs["l"]:
            found.append(record)
            if record.offset == 1:
                break
        assert found[0] == LogRecord(0, b"one", b"k", (("h", b"v"),), 5, None)
        assert found[0].time == datetime.datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=datetime.UTC)
        assert (found[1].offset, found[1].value, found[1].key, found[1].headers) == (1, None, None, ())

    play(scene)


def test_reading_to_a_position_ends_there_and_goes_on_behind_what_was_delivered() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        assert len({segment.ledger_id for segment in await logs.segments("l")}) > 3
        assert [record.offset async for record in logs.records("l", 7, to="latest")] == list(range(7, 60))
        records = logs.records("l", to=20)
        async for record in records:
            if record.offset == 4:
                break
        assert records.position == 5
        assert [record.offset async for record in records] == list(range(5, 20))
        async with logs.records("l", 50, to=55) as entered:
            some = [record.offset for record in await entered.next_records(3)]
            assert some + [record.offset async for record in entered] == [50, 51, 52, 53, 54]
            assert await entered.next_record() is None

    play(scene)


def test_a_loop_that_is_left_closes_its_reader() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage, 5)
        before = len(asyncio.all_tasks())
        writer = await logs.writer("l")
        records = logs.records("l")
        async for _ in records:
            break
        await eventually(lambda: records._reader is None)
        await writer.close()
        await eventually(lambda: len(asyncio.all_tasks()) == before)

    play(scene)


PLACES: list[tuple[Position, int]] = [
    ("earliest", 0),
    ("latest", 60),
    (33, 33),
    (datetime.datetime.fromtimestamp(FIRST_US / 1e6 + 33.5, datetime.UTC), 34),
    (datetime.datetime.fromtimestamp(FIRST_US / 1e6 + 33, datetime.UTC), 33),
    (datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC), 0),
    (datetime.datetime(2101, 1, 1, tzinfo=datetime.UTC), 60),
    (TransactionId(-1), 0),
    (TransactionId(0), 0),
    (TransactionId(1), 2),
    (TransactionId(200), 40),
    (TransactionId(205), 42),
    (TransactionId(291), 60),
]


def test_a_position_is_found_by_offset_time_and_transaction_id() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        assert [(position, await logs.offset_at("l", position)) for position, _ in PLACES] == PLACES

    play(scene)


def test_every_time_and_transaction_id_is_found_in_a_log_with_pages_gaps_and_an_open_segment() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        ids: list[int | None] = []
        stage.wall_us = FIRST_US
        writer = await logs.writer("l")
        for number in range(90):
            stage.wall_us = FIRST_US + number // 3 * 1_000_000
            has_id = number // 20 % 2 == 0
            ids.append(number // 3 if has_id else None)
            await writer.append_entry([b"." * 300], transaction_ids=[number // 3] if has_id else None)
        await writer.noop()
        await logs.truncate("l", 13)
        for second in range(-1, 32):
            time = datetime.datetime.fromtimestamp(FIRST_US / 1e6 + second, datetime.UTC)
            assert await logs.offset_at("l", time) == min(90, max(13, 3 * second))
            wanted = [offset for offset, item in enumerate(ids) if offset >= 13 and item is not None and item >= second]
            assert await logs.offset_at("l", TransactionId(second)) == (wanted[0] if wanted else 90), second
        await writer.close()

    play(scene)


@pytest.mark.parametrize("position", ["middle", -1, True, datetime.datetime(2026, 1, 1)])  # noqa: DTZ001
def test_what_is_no_position_is_refused(position: object) -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage, 1)
        with pytest.raises(ArgumentError):
            await logs.offset_at("l", position)  # type: ignore[arg-type]

    play(scene)


def test_reading_from_a_truncated_offset_is_an_error() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        await logs.truncate("l", 30)
        with pytest.raises(OffsetTruncated, match="first that may be read is 30"):
            await logs.records("l", 3).next_record()
        assert [record.offset async for record in logs.records("l", to=32)] == [30, 31]

    play(scene)


@pytest.mark.parametrize("timeout_s", [0, 0.002])
def test_calls_with_a_short_time_limit_get_all_records_in_the_end(timeout_s: float) -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage, 10)
        client = stage.client_of(logs)
        opened = client.open

        async def open_slowly(ledger_id: int, *, password: bytes = b"") -> FakeView:
            await asyncio.sleep(0.02)
            return await opened(ledger_id, password=password)

        client.open = open_slowly  # type: ignore[method-assign]
        records, found = logs.records("l", to=10), list[int]()
        async with await logs.consumer("l", "c") as consumer:
            for reader in (records, consumer):
                found.clear()
                limit_s = asyncio.get_running_loop().time() + 10.0
                while len(found) < 10:
                    assert asyncio.get_running_loop().time() < limit_s, found
                    record = await reader.next_record(timeout_s)
                    if record is not None:
                        found.append(record.offset)
                assert found == list(range(10))
            assert await records.next_record(timeout_s) is None
            assert await consumer.next_record(timeout_s) is None
        await records.aclose()

    play(scene)


def test_a_reader_serves_one_caller_also_while_a_call_with_a_time_limit_waits() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage, 3)
        async with logs.records("l", 3) as records:
            assert await records.next_record(0.001) is None
            first = asyncio.ensure_future(records.next_record(5))
            await asyncio.sleep(0)
            with pytest.raises(HandleClosed, match="one caller"):
                await records.next_record(5)
            async with await logs.writer("l") as writer:
                await writer.append(b"new")
                record = await first
                assert record is not None
                assert record.offset == 3
            first = asyncio.ensure_future(records.next_record())
            await asyncio.sleep(0)
            first.cancel()
        async with await logs.writer("l") as writer:
            await writer.append(b"newer")
        record = await records.next_record(5)
        assert record is not None
        assert record.offset == 4
        await records.aclose()

    play(scene)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_call_for_no_records_is_refused(limit: int) -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage, 3)
        async with logs.records("l") as records, logs.backwards("l") as backwards, await logs.consumer("l", "c") as consumer:
            for reader in (records, backwards, consumer):
                with pytest.raises(ArgumentError, match=f"at least 1 record, not {limit}"):
                    await reader.next_records(limit)

    play(scene)


def test_a_second_loop_does_not_go_on_in_another_log_of_the_name() -> None:
    async def scene(stage: Stage) -> None:
        logs = await filled(stage)
        records, unread, named = logs.records("l"), logs.records("l", 5), logs.records("l", "latest")
        async for record in records:
            if record.offset == 2:
                break
        await logs.delete("l", force=True)
        await filled(stage, 70)
        with pytest.raises(NoSuchLog, match="deleted and created again"):
            await records.next_record()
        assert await offset_of_next(unread) == 5, "nothing was read before: it is the log of that name"
        assert await named.open() == 70
        await unread.aclose()
        await named.aclose()

    async def offset_of_next(records: LogRecords) -> int | None:
        record = await records.next_record()
        return None if record is None else record.offset

    play(scene)
