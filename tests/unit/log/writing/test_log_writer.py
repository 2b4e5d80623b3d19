"""The writer: offsets, order, batching, rolling, repair, fencing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from tests.unit.log.fake import SMALL, Stage, play, read_values
from tests.waiting import eventually
from triplicate.errors import (
    ArgumentError,
    HandleClosed,
    LedgerFenced,
    LogFenced,
    LogOwned,
    NoSuchLog,
    OutcomeUnknown,
    RecordTooLarge,
    WindowFull,
)
from triplicate.log import LogClientSettings, LogSettings, LogWriter, SegmentState, decode_entry


def test_offsets_begin_at_zero_and_have_no_gaps() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            assert (writer.epoch, writer.start_offset, writer.next_offset) == (1, 0, 0)
            assert await writer.append_entry([b"a", b"b"]) == range(2)
            assert await writer.append_entry([b"c"]) == range(2, 3)
            await writer.noop()
            assert await writer.append(b"d") == 3
            assert await writer.append_many([b"e", b"f"]) == range(4, 6)
            assert writer.next_offset == writer.acknowledged_offset == 6
        assert await logs.end_offset("l") == 6
        assert await read_values(logs, "l", 0, 6) == [b"a", b"b", b"c", b"d", b"e", b"f"]

    play(scene)


def test_records_appended_together_share_an_entry_and_keep_their_order() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            appends = [asyncio.ensure_future(writer.append(b"%d" % number, key=b"k")) for number in range(500)]
            assert [await append for append in appends] == list(range(500))
            ledger = stage.bookies.ledger(writer.ledger_id)
            assert len([entry for entry in ledger.entries if decode_entry(entry.payload).count]) < 5
        assert await read_values(logs, "l", 0, 500) == [b"%d" % number for number in range(500)]

    play(scene)


def test_an_entry_is_closed_at_its_target_size() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(entry_target_bytes=1024))
        await logs.create("l", LogSettings(compression="none"))
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_many([b"x" * 100] * 50)
            sizes = [len(entry.payload) for entry in stage.bookies.ledger(writer.ledger_id).entries]
        assert len(sizes) > 5
        assert max(sizes) < 1200

    play(scene)


def test_a_record_over_the_limit_is_refused_without_writing() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            before = len(stage.bookies.ledger(writer.ledger_id).entries)
            big = b"x" * (4 * 1024 * 1024)
            with pytest.raises(RecordTooLarge, match="nothing was sent"):
                await writer.append(big)
            with pytest.raises(RecordTooLarge, match="nothing was sent"):
                await writer.append_many([b"a", big])
            with pytest.raises(RecordTooLarge, match="nothing was sent"):
                await writer.append_entry([b"a", big])
            with pytest.raises(RecordTooLarge, match="nothing was sent"):
                writer.append_entry_nowait([big])
            with pytest.raises(ArgumentError):
                await writer.append_entry([])
            assert len(stage.bookies.ledger(writer.ledger_id).entries) == before
            assert await writer.append(b"small") == 0

    play(scene)


def test_the_refusal_of_a_large_record_names_the_largest_that_can_be_written() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(compression="none"))
        async with await logs.writer("l", owner="w") as writer:
            big = bytes(4 * 1024 * 1024)
            with pytest.raises(RecordTooLarge) as alone:
                await writer.append(big)
            with pytest.raises(RecordTooLarge) as beside:
                await writer.append(big, key=b"key", headers=[("name", b"value")])
            limits = [int(str(refused.value).split("have at most ")[1].split(" ")[0]) for refused in (alone, beside)]
            assert await writer.append(bytes(limits[0])) == 0
            rest = limits[1] - len(b"key") - len(b"name") - len(b"value") - 6
            assert await writer.append_many([bytes(rest)], keys=[b"key"], headers=[[("name", b"value")]]) == range(1, 2)
            with pytest.raises(RecordTooLarge):
                await writer.append(bytes(rest + 1), key=b"key", headers=[("name", b"value")])

    play(scene)


def test_headers_are_appended_to_single_records_and_to_many() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            pair = [("a", b"1"), ("a", None)]
            await asyncio.gather(writer.append(b"0"), writer.append(b"1", headers=pair), writer.append(b"2", headers=[]))
            await writer.append(b"3")
            await writer.append_many([b"4", b"5"], keys=[None, b"k"], headers=[[], pair])
            with pytest.raises(ArgumentError, match="headers has 1 items for 2 records"):
                await writer.append_many([b"4", b"5"], headers=[[]])
        reader = await logs.reader("l")
        found: list[object] = []
        while len(found) < 6:
            entry = await reader.next_entry()
            assert entry is not None
            found += entry.headers or [None] * entry.count
        await reader.aclose()
        assert found == [(), tuple(pair), (), None, (), tuple(pair)]

    play(scene)


def test_many_headers_are_cut_into_entries_of_the_target_size() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(entry_target_bytes=1024))
        await logs.create("l", LogSettings(compression="none"))
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_many([b""] * 50, headers=[[("name", b"x" * 100)]] * 50)
            sizes = [len(entry.payload) for entry in stage.bookies.ledger(writer.ledger_id).entries]
        assert len(sizes) > 5
        assert max(sizes) < 1300

    play(scene)


def test_append_entry_nowait_refuses_when_the_window_is_full() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(window_entries=2))
        await logs.create("l")
        writer = await logs.writer("l", owner="w")
        held = stage.bookies.ledger(writer.ledger_id).held = []
        first, second = writer.append_entry_nowait([b"a"]), writer.append_entry_nowait([b"b"])
        with pytest.raises(WindowFull):
            writer.append_entry_nowait([b"c"])
        third = asyncio.ensure_future(writer.append_entry([b"c"]))
        await asyncio.sleep(0.01)
        stage.bookies.ledger(writer.ledger_id).held = None
        for future, entry_id in held:
            future.set_result(entry_id)
        assert [await first, await second, await third] == [range(1), range(1, 2), range(2, 3)]
        await writer.close()

    play(scene)


def test_cancelling_an_append_does_not_take_back_its_record() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            kept = asyncio.ensure_future(writer.append(b"a"))
            dropped = asyncio.ensure_future(writer.append(b"b"))
            await asyncio.sleep(0)
            dropped.cancel()
            assert await kept == 0
            assert await writer.append(b"c") == 2
        assert await read_values(logs, "l", 0, 3) == [b"a", b"b", b"c"]

    play(scene)


def test_an_idle_writer_makes_its_last_record_readable_with_one_noop() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer, await logs.reader("l") as reader:
            assert await writer.append(b"a") == 0
            entry = await reader.next_entry(5)
            assert entry is not None
            assert entry.values == [b"a"]
            await asyncio.sleep(0.02)
            kinds = [decode_entry(item.payload).control for item in stage.bookies.ledger(writer.ledger_id).entries]
            assert [control and control["kind"] for control in kinds] == ["segment", None, "noop"]

    play(scene)


def test_a_noop_sent_together_with_a_record_does_not_replace_the_idle_noop() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer, await logs.reader("l") as reader:
            appended = writer.append_entry_nowait([b"a"])
            await writer.noop()
            assert await appended == range(1)
            entry = await reader.next_entry(5)
            assert entry is not None
            assert entry.values == [b"a"]

    play(scene)


def test_a_noop_waits_for_the_next_entry_where_entries_are_frequent() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(idle_noop_delay_s=0.0))
        await logs.create("l")

        def noops_of(writer: LogWriter) -> int:
            kinds = [decode_entry(item.payload).control for item in stage.bookies.ledger(writer.ledger_id).entries]
            return sum(control is not None and control["kind"] == "noop" for control in kinds)

        async def appended(writer: LogWriter, index: int, waits: bool) -> None:
            await writer.append_entry([b"%d" % index])
            if waits:
                await asyncio.sleep(0.002)
            else:
                await eventually(lambda: noops_of(writer) > index)

        noops: list[int] = []
        for wait_s in (0.0, 1.0):
            async with await logs.writer("l", owner="w") as writer, await logs.reader("l", writer.start_offset) as reader:
                writer.idle_noop.wait_for_entries(wait_s)
                for index in range(50):
                    await appended(writer, index, wait_s > 0)
                delivered = [await reader.next_entry(5) for _ in range(50)]  # The last one needs a no-op.
                assert [entry.values for entry in delivered if entry is not None] == [[b"%d" % index] for index in range(50)]
                noops.append(noops_of(writer))
        assert noops[0] == 50
        assert 1 <= noops[1] <= 25

    play(scene)


def test_records_are_made_readable_before_the_noop_is_due() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(idle_noop_delay_s=3600.0))
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer, await logs.reader("l") as reader:
            writer.make_readable()  # Nothing waits for a no-op.
            for index in range(3):
                await writer.append_entry([b"%d" % index])
                writer.make_readable()
                entry = await reader.next_entry(5)
                assert entry is not None
                assert entry.values == [b"%d" % index]
                writer.make_readable()
            kinds = [decode_entry(item.payload).control for item in stage.bookies.ledger(writer.ledger_id).entries]
            assert [control and control["kind"] for control in kinds] == ["segment", *[None, "noop"] * 3]

    play(scene)


def test_segments_roll_by_size_without_gaps() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", SMALL)
        values = [b"%05d" % number * 100 for number in range(200)]
        async with await logs.writer("l", owner="w") as writer:
            futures = [asyncio.ensure_future(writer.append_entry([value])) for value in values]
            assert [await future for future in futures] == [range(number, number + 1) for number in range(200)]
            assert writer.rolls >= 3
            assert writer.repairs == 0
        segments = await logs.segments("l")
        assert all(left.end_offset == right.first_offset for left, right in pairwise(segments))
        assert all(segment.state is SegmentState.CLOSED for segment in segments)
        for segment in segments:
            ledger = stage.bookies.ledger(segment.ledger_id)
            assert segment.last_entry == len(ledger.entries) - 1
            assert segment.size_bytes == ledger.metadata.length
            assert ledger.metadata.custom["log"] == b"l"
            assert ledger.metadata.custom["component"] == b"log"
            assert ledger.metadata.custom["epoch"] == b"1"
        assert await read_values(logs, "l", 0, 200) == values

    play(scene)


def test_segments_roll_by_age_if_they_hold_records() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_age_s=0.05))
        async with await logs.writer("l", owner="w") as writer:
            await asyncio.sleep(0.12)
            assert writer.rolls == 0
            await writer.append(b"a")
            await eventually(lambda: writer.rolls == 1)
            assert await writer.append(b"b") == 1
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


@pytest.mark.parametrize("stored", [True, False])
def test_a_broken_segment_is_recovered_and_what_did_not_survive_is_sent_again(stored: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append_entry([b"a"]) == range(1)
            ledger = stage.bookies.ledger(writer.ledger_id)
            ledger.broken, ledger.keep_broken = True, stored
            futures = [writer.append_entry_nowait([b"b", b"c"]), writer.append_entry_nowait([b"d"])]
            assert [await future for future in futures] == [range(1, 3), range(3, 4)]
            assert writer.repairs == 1
        assert await read_values(logs, "l", 0, 4) == [b"a", b"b", b"c", b"d"]
        assert await logs.end_offset("l") == 4

    play(scene)


def test_a_writer_that_finds_no_way_past_a_broken_segment_says_that_the_outcome_is_unknown() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(repair_timeout_s=0.05))
        await logs.create("l")
        writer = await logs.writer("l", owner="w")
        stage.bookies.ledger(writer.ledger_id).broken = True
        stage.bookies.creatable = False
        with pytest.raises(OutcomeUnknown, match="a broken segment was not replaced"):
            await writer.append(b"a")
        with pytest.raises(OutcomeUnknown):
            await writer.append(b"b")
        await writer.close()
        stage.bookies.creatable = True
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append(b"c") == 0

    play(scene)


def test_a_second_writer_takes_over_and_fences_the_first() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        first = await logs.writer("l", owner="one")
        await first.append_many([b"a", b"b"])
        async with await others.writer("l", owner="two") as second:
            assert (second.epoch, second.start_offset) == (2, 2)
            with pytest.raises(LogFenced, match="'one'"):
                await first.append(b"lost")
            with pytest.raises(LogFenced):
                await first.noop()
            assert await second.append(b"c") == 2
            await first.close()
            owner = await logs.owner("l")
            assert owner is not None
            assert owner.name == "two"
        assert await logs.owner("l") is None
        assert await read_values(logs, "l", 0, 3) == [b"a", b"b", b"c"]

    play(scene)


def test_a_fenced_writer_notices_when_it_rolls() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        first = await logs.writer("l", owner="one")
        await first.append(b"x" * 1000)
        async with await others.writer("l", owner="two") as second:
            with pytest.raises(LogFenced):
                await first.append(b"y" * 1000)
            assert await second.append(b"z") == 1
        await first.abandon()

    play(scene)


def test_a_close_whose_last_records_are_refused_by_the_ledger_raises_that_the_log_was_lost() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(linger_s=60.0))
        await logs.create("l")
        writer = await logs.writer("l", owner="w")
        stage.bookies.ledger(writer.ledger_id).held = []
        sent = asyncio.ensure_future(writer.append_entry([b"in flight"]))
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(writer.append(b"buffered"))
        await asyncio.sleep(0)

        def refuse(_: object) -> asyncio.Future[int]:
            raise LedgerFenced("the ledger is being recovered")

        setattr(writer._ledger, "append_nowait", refuse)  # noqa: B010  the protocol's method is not meant to be replaced
        with pytest.raises(LogFenced):
            await _within(5, writer.close)
        for earlier in (sent, waiting):
            with pytest.raises(LogFenced):
                await asyncio.wait_for(earlier, 5)

    play(scene)


async def _within(limit_s: float, call: Callable[[], Awaitable[object]]) -> object:
    async with asyncio.timeout(limit_s):
        return await call()


@pytest.mark.parametrize("way", ["append", "append_entry", "append_entry_nowait", "noop"])
def test_an_append_does_not_wait_for_ever_where_its_ledger_refuses_what_waited_before_it(way: str) -> None:
    """Found by seed 70643: records that waited for an entry were sent with the next call, and their ledger had ended meanwhile."""

    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(entry_target_bytes=1024, linger_s=60.0))
        await logs.create("l", LogSettings(compression="none"))
        writer = await logs.writer("l", owner="w")
        stage.bookies.ledger(writer.ledger_id).held = []
        sent = asyncio.ensure_future(writer.append_entry([b"on its way"]))
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(writer.append(b"x" * 900))
        await asyncio.sleep(0)
        ledger = writer._ledger
        assert ledger is not None

        def refuse(_: object) -> asyncio.Future[int]:
            raise LedgerFenced("the ledger is being recovered")

        setattr(ledger, "append_nowait", refuse)  # noqa: B010  the protocol's method is not meant to be replaced
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "append": lambda: writer.append(b"y" * 900),
            "append_entry": lambda: writer.append_entry([b"y"]),
            "append_entry_nowait": lambda: writer.append_entry_nowait([b"y"]),
            "noop": writer.noop,
        }
        # Not `await` alone: one of them raises when it is called.
        with pytest.raises(LogFenced):
            await _within(5, calls[way])
        for earlier in (sent, waiting):
            with pytest.raises(LogFenced):
                await asyncio.wait_for(earlier, 5)
        await writer.abandon()

    play(scene)


def test_a_writer_may_be_refused_while_another_is_alive() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="one"):
            with pytest.raises(LogOwned, match="'one'"):
                await others.writer("l", owner="two", take_over=False)
        async with await others.writer("l", owner="two", take_over=False) as writer:
            assert await writer.append(b"a") == 0

    play(scene)


def test_closing_twice_is_harmless_and_then_nothing_can_be_appended() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="w")
        appended = asyncio.ensure_future(writer.append(b"a"))
        await asyncio.sleep(0)
        await writer.close()
        await writer.close()
        assert await appended == 0
        with pytest.raises(HandleClosed):
            await writer.append(b"b")
        head = await logs.head("l")
        assert head.open is None
        assert [segment.records for segment in head.recent] == [1]

    play(scene)


def test_segments_without_records_leave_the_list() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        for _ in range(5):
            writer = await logs.writer("l", owner="w")
            await writer.abandon()
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
        assert [segment.records for segment in await logs.segments("l")] == [1]
        assert len(stage.bookies.ledgers) == 1
        assert (await logs.head("l")).epoch == 6

    play(scene)


def test_wall_time_never_goes_back_not_even_over_segments_and_take_overs() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        stage.wall_us = 2_000_000
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"x" * 600)
            stage.wall_us = 1_000_000
            await writer.append(b"x" * 600)
            await writer.append(b"x" * 600)
        stage.wall_us = 500_000
        async with await logs.writer("l", owner="v") as writer:
            await writer.append(b"y")
        times = []
        for segment in await logs.segments("l"):
            inside = [decode_entry(entry.payload).header.wall_time_us for entry in stage.bookies.ledger(segment.ledger_id).entries]
            assert (segment.min_time_us, segment.max_time_us) == (inside[0], inside[-1])
            times += inside
        assert len(times) > 5
        assert times == sorted(times)
        assert times[0] == 2_000_000

    play(scene)


def test_wall_time_does_not_go_back_behind_segments_that_were_truncated() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        stage.wall_us = 2_000_000
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"x")
        await logs.truncate("l", 1)
        assert await logs.segments("l") == []
        stage.wall_us = 1_000_000
        async with await logs.writer("l", owner="v") as writer:
            await writer.append(b"y")
        (segment,) = await logs.segments("l")
        assert segment.min_time_us == segment.max_time_us == 2_000_000

    play(scene)


def test_an_unknown_log_is_named() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        with pytest.raises(NoSuchLog, match="'nowhere'"):
            await logs.writer("nowhere", owner="w")
        with pytest.raises(NoSuchLog, match="'nowhere'"):
            await logs.reader("nowhere")

    play(scene)


def test_what_is_done_with_a_log_is_counted() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_entry([b"x" * 1000, b"y"])
            await writer.append_entry([b"z"])
        assert len(await read_values(logs, "l", 0, 3)) == 3
        lines = stage.client_of(logs).metrics.expose().decode().splitlines()
        for expected in (
            'triplicate_log_records_appended_total{log="l"} 3.0',
            'triplicate_log_records_read_total{log="l"} 3.0',
            'triplicate_log_rolls_total{log="l"} 1.0',
            'triplicate_log_repairs_total{log="l"} 0.0',
            'triplicate_log_take_overs_total{log="l"} 1.0',
        ):
            assert expected in lines

    play(scene)


def test_a_writer_leaves_no_task_behind() -> None:
    async def scene(stage: Stage) -> None:
        before = asyncio.all_tasks()
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        async with await logs.writer("l", owner="w") as writer, await logs.reader("l") as reader:
            appends = [asyncio.ensure_future(writer.append_entry([b"x" * 400])) for _ in range(20)]
            for append in appends:
                await append
            assert await reader.next_entry(5) is not None
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == before

    play(scene)
