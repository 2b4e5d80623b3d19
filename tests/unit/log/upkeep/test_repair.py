"""A log whose ledgers are gone: it is explained, brought back where that can be, and goes on without giving an offset twice."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.head_rig import fill
from triplicate.errors import ArgumentError, LogOwned, LogReserved, NoSuchLedger, OffsetGap
from triplicate.log import Logs, LogSettings, Purpose, PurposeKind, SegmentState
from triplicate.log.upkeep import repair
from triplicate.log.upkeep.repair import Examination


async def lose_open(stage: Stage, logs: Logs, *, trash_period_s: float = 0.0) -> int:
    """A log of two records in a closed segment and two in an open one, whose writer died and whose ledger is deleted."""
    await logs.create("l")
    async with await logs.writer("l", owner="first") as writer:
        await writer.append_many([b"a", b"b"])
    dying = stage.logs()
    writer = await dying.writer("l", owner="second")
    await writer.append_many([b"c", b"d"])
    await writer.abandon()
    client = stage.client_of(dying)
    client.trash_period_s = trash_period_s
    await client.delete(writer.ledger_id)
    return writer.ledger_id


def test_a_log_that_lacks_nothing_is_left_alone() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 100)
        before = stage.store.get(logs.store.path("l"))
        assert (await logs.examine("l")).lost == ()
        assert (await logs.repair("l")).lost == ()
        assert stage.store.get(logs.store.path("l")) == before

    play(scene)


def test_an_open_segment_that_is_gone_is_given_up_and_no_offset_is_given_twice() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        ledger_id = await lose_open(stage, logs)
        with pytest.raises(NoSuchLedger):
            await logs.writer("l", owner="third")
        found = await logs.examine("l")
        (lost,) = found.lost
        assert (lost.ledger_id, lost.is_open, lost.first_offset, lost.end_offset, lost.undelete_until_ms) == (
            ledger_id,
            True,
            2,
            None,
            None,
        )
        goes_on = found.next_offset
        assert goes_on > 2 + 256 * 2**20
        assert (await logs.repair("l", by="operator")).lost == ()
        async with await logs.writer("l", owner="third") as writer:
            assert writer.start_offset == goes_on
            assert await writer.append(b"e") == goes_on
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]
        assert await read_values(logs, "l", goes_on, goes_on + 1) == [b"e"]
        async with await logs.reader("l", 3) as reader:
            with pytest.raises(OffsetGap, match=rf"offsets 2 to {goes_on - 1} are lost with ledger {ledger_id}.*from {goes_on} on"):
                await reader.next_entry(5)
        with pytest.raises(OffsetGap, match="are lost"):
            await logs.plan("l", 0, goes_on + 1, 10)
        assert (await logs.examine("l")).holes == ((2, goes_on),)

    play(scene)


@pytest.mark.parametrize("end", [2, 4])
def test_the_operator_may_say_where_the_log_goes_on(end: int) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await lose_open(stage, logs)
        with pytest.raises(ArgumentError, match="begins at offset 2"):
            await logs.repair("l", end=1)
        await logs.repair("l", end=end)
        async with await logs.writer("l", owner="third") as writer:
            assert await writer.append(b"e") == end
        assert (await logs.examine("l")).holes == (((2, 4),) if end == 4 else ())
        assert [segment.state for segment in await logs.segments("l")].count(SegmentState.LOST) == (end == 4)

    play(scene)


def test_what_is_in_the_trash_is_brought_back_and_not_given_up() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        ledger_id = await lose_open(stage, logs, trash_period_s=3600.0)
        found = await logs.examine("l")
        assert [item.ledger_id for item in found.recoverable] == [ledger_id]
        before = stage.store.get(logs.store.path("l"))
        with pytest.raises(ArgumentError, match=f"`triplicate ledger undelete {ledger_id}`"):
            await logs.repair("l", end=2)
        assert stage.store.get(logs.store.path("l")) == before
        await stage.client_of(logs).metadata.trash.undelete(ledger_id)
        assert (await logs.examine("l")).lost == ()

    play(scene)


def test_what_a_later_release_may_bring_back_is_not_given_up() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 3)
        (segment, *_) = await logs.segments("l")
        client = stage.client_of(logs)
        client.trash_period_s = 3600.0
        await client.delete(segment.ledger_id)
        path = next(path for path in stage.store.dump() if "/trash/" in path)
        fields = json.loads((await client.metadata.tree.get(path))[0])
        await client.metadata.tree.set(path, json.dumps({**fields, "v": 99}).encode())
        before = stage.store.get(logs.store.path("l"))
        with pytest.raises(ArgumentError, match=f"a later release, which may restore them: {segment.ledger_id}"):
            await logs.repair("l")
        assert stage.store.get(logs.store.path("l")) == before

    play(scene)


def test_the_end_of_the_trash_is_judged_by_the_stores_clock() -> None:
    async def scene(stage: Stage) -> None:
        logs, hasty = stage.logs(), stage.logs(ahead_s=86_400.0)
        ledger_id = await lose_open(stage, logs, trash_period_s=3600.0)
        with pytest.raises(ArgumentError, match=f"undelete {ledger_id}"):
            await hasty.repair("l", end=2)

    play(scene)


def test_a_ledger_that_is_restored_during_a_repair_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 3)
        (segment, *_) = await logs.segments("l")
        client = stage.client_of(logs)
        client.trash_period_s = 3600.0
        await client.delete(segment.ledger_id)
        examined = await logs.examine("l")
        gone = replace(examined, lost=tuple(replace(item, undelete_until_ms=None) for item in examined.lost))

        async def restored(*arguments: Any) -> Examination:
            if segment.ledger_id in await client.metadata.trash.ledger_ids():
                await client.metadata.trash.undelete(segment.ledger_id)
            return gone

        monkeypatch.setattr(repair, "examine", restored)
        with pytest.raises(ArgumentError, match="was restored meanwhile"):
            await logs.repair("l")
        assert (await logs.segments("l"))[0] == segment

    play(scene)


def test_closed_segments_that_are_gone_stay_a_hole_in_the_list() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await fill(logs, 100)
        segments = await logs.segments("l")
        for place in (3, 4, 99):
            await stage.client_of(logs).delete(segments[place].ledger_id)
        found = await logs.examine("l")
        assert [(item.first_offset, item.end_offset, item.is_open) for item in found.lost] == [
            (3, 4, False),
            (4, 5, False),
            (99, 100, False),
        ]
        assert (await logs.repair("l")).lost == ()
        after = await logs.segments("l")
        assert [(one.first_offset, one.end_offset) for one in after] == [(one.first_offset, one.end_offset) for one in segments]
        assert await logs.end_offset("l") == 100
        assert len(await read_values(logs, "l", 5, 99)) == 94
        async with await logs.reader("l", 2) as reader:
            assert await reader.next_entry(5) is not None
            with pytest.raises(OffsetGap, match="offsets 3 to 3 are lost"):
                await reader.next_entry(5)
        assert await logs.truncate("l", 10) == 10
        async with await logs.writer("l", owner="w") as writer:
            assert writer.start_offset == 100

    play(scene)


def test_a_log_with_a_living_writer_is_not_repaired() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="alive")
        await stage.client_of(logs).delete(writer.ledger_id)
        with pytest.raises(LogOwned, match="'alive'"):
            await stage.logs().repair("l")
        await writer.abandon()
        await stage.logs().repair("l", end=0)

    play(scene)


def test_a_writer_from_before_a_repair_is_fenced() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        writer = await logs.writer("l", owner="zombie")
        await stage.client_of(logs).delete(writer.ledger_id)
        repairing = stage.logs()
        await writer._scope.aclose()  # It is cut off, and does not see that its place as owner is gone.
        await stage.client_of(logs).metadata.tree.delete(logs.store.path("l") + "/owner")
        await repairing.repair("l", end=0)
        before = await logs.head("l")
        await writer.close()
        assert await logs.head("l") == before

    play(scene)


def test_the_log_of_a_database_is_repaired_for_the_database_only() -> None:
    async def scene(stage: Stage) -> None:
        logs, purpose = stage.logs(), Purpose(PurposeKind.DATABASE, "shop")
        await logs.create("l", purpose=purpose)
        assert (await logs.examine("l")).lost == ()
        with pytest.raises(LogReserved):
            await logs.repair("l")
        await logs.acting_for(purpose).repair("l")

    play(scene)
