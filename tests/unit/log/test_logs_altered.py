"""Changing the settings of a log: what a living writer does with them, what becomes of older segments, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.head_rig import changes_of_head, lose_connection
from tests.waiting import eventually
from triplicate.errors import ArgumentError, LogReserved, NoSuchLog
from triplicate.log import Logs, LogSettings, LogWriter, Purpose, PurposeKind, Quorums, decode_header

PLAIN = LogSettings(ensemble_size=2, write_quorum=2, ack_quorum=2, roll_size_bytes=4096, compression="none")


async def roll(writer: LogWriter) -> None:
    before = writer.rolls
    while writer.rolls == before:
        await writer.append(b"." * 500)


def copies(stage: Stage, ledger_id: int) -> int:
    return stage.bookies.ledger(ledger_id).metadata.write_quorum


@pytest.mark.parametrize("applied", [True, False])
def test_a_living_writer_uses_other_settings_from_its_next_segment_on(applied: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l", PLAIN)
        async with await logs.writer("l") as writer:
            await roll(writer)
            lose_connection(stage, applied=applied, times=1, only=changes_of_head)
            head = await others.alter(
                "l", {"write_quorum": 3, "ensemble_size": 3, "roll_size_bytes": 1_000_000, "roll_age_s": 60, "compression": "zlib"}
            )
            assert (head.settings.write_quorum, head.settings.roll_age_s, head.settings.ack_quorum) == (3, 60.0, 2)
            assert head.epoch == writer.epoch
            await roll(writer)
            await writer.append(b"." * 500)
            await eventually(lambda: copies(stage, writer.ledger_id) == 3)
            assert not writer.is_reduced
            headers = [decode_header(entry.payload) for entry in stage.bookies.ledger(writer.ledger_id).entries]
            # An idle writer may have confirmed them meanwhile by an entry without records.
            last = [header for header in headers if not header.is_control][-1]
            assert last.flags & 0b1110, "it compresses"
            rolls = writer.rolls
            for _ in range(20):
                await writer.append_entry([b"." * 500])
            assert writer.rolls == rolls
        segments = await logs.segments("l")
        assert [segment.reduced for segment in segments[:-1]] == [Quorums(2, 2)] * (len(segments) - 1)
        assert segments[-1].reduced is None
        assert (await logs.raise_copies("l")).ledgers == len(segments) - 1
        assert {copies(stage, segment.ledger_id) for segment in await logs.segments("l")} == {3}
        assert len(await read_values(logs, "l", 0, segments[-1].end_offset)) == segments[-1].end_offset

    play(scene)


def test_fewer_copies_take_the_mark_from_segments_that_have_enough() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=4096, compression="none"))
        stage.bookies.writable = ["bookie-0", "bookie-1"]
        async with await logs.writer("l") as writer:
            await writer.append(b"a")
        assert [segment.reduced for segment in await logs.segments("l")] == [Quorums(2, 2)]
        await logs.alter("l", {"write_quorum": 2, "ensemble_size": 2})
        assert [segment.reduced for segment in await logs.segments("l")] == [None]

    play(scene)


def test_retention_by_other_settings_is_applied_at_once() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", PLAIN)
        async with await logs.writer("l") as writer:
            for _ in range(3):
                await roll(writer)
            await logs.alter("l", {"retain_size_bytes": 4096})
            await logs.retain("l")
            assert (await logs.head("l")).first_offset > 0

    play(scene)


NAN, INFINITY = float("nan"), float("inf")
UNSOUND: list[tuple[dict[str, Any], str]] = [
    ({"roll_age_s": 0.0}, "roll_age_s is 0.0: at least 0.05 seconds"),
    ({"roll_age_s": -1.0}, "at least 0.05 seconds"),
    ({"roll_age_s": NAN}, "roll_age_s is nan: a finite number"),
    ({"roll_age_s": INFINITY}, "roll_age_s is inf: a finite number"),
    ({"retain_age_s": -5}, "retain_age_s is -5: at least 0 seconds"),
    ({"retain_age_s": 10**400}, "at most 10000000000 seconds"),
    ({"roll_age_s": "5"}, "roll_age_s is '5', and must be of type float"),
    ({"roll_age_s": True}, "must be of type float"),
    ({"roll_size_bytes": 0}, "roll_size_bytes is 0: at least 1024 bytes"),
    ({"roll_size_bytes": 2**41}, "at most 1099511627776 bytes"),
    ({"write_quorum": 2.5}, r"write_quorum is 2\.5(, and must be of type int|; it must be a whole number)"),
    ({"write_quorum": True}, "write_quorum is True(, and must be of type int|; it must be a whole number)"),
    ({"compression": "rar"}, "one of auto, none, zlib, zstd is expected"),
    ({"compression": None}, "must be of type str"),
    ({"write_quorum": 1}, "quorum"),
]


@pytest.mark.parametrize(("changes", "reason"), [({"retain_years": 1}, "no setting 'retain_years': choose one of ensemble_size"), *UNSOUND])
def test_what_cannot_be_is_refused_and_nothing_changed(changes: dict[str, Any], reason: str) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", PLAIN)
        before = await logs.head("l")
        with pytest.raises(ArgumentError, match=reason):
            await logs.alter("l", {"retain_size_bytes": 5, **changes})
        assert await logs.head("l") == before

    play(scene)


@pytest.mark.parametrize(("unsound", "reason"), UNSOUND)
def test_no_log_is_created_with_what_cannot_be(unsound: dict[str, Any], reason: str) -> None:
    """A log that rolls at size 0 rolled without end."""

    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        with pytest.raises(ArgumentError, match=reason):
            await logs.create("l", replace(PLAIN, **unsound))
        assert await logs.names() == []

    play(scene)


@pytest.mark.parametrize("offset", [-5, 2**63, True, 1.0])
def test_no_log_begins_at_what_is_no_offset(offset: Any) -> None:
    async def scene(stage: Stage) -> None:
        with pytest.raises(ArgumentError, match="offset"):
            await stage.logs().create("l", PLAIN, first_offset=offset)
        with pytest.raises(ArgumentError, match="epoch -1"):
            await stage.logs().create("l", PLAIN, epoch=-1)
        assert (await stage.logs().create("l", PLAIN, first_offset=2**63 - 1)).first_offset == 2**63 - 1

    play(scene)


@pytest.mark.parametrize(
    ("unsound", "sound"),
    [
        ({"roll_size_bytes": 0}, {"roll_size_bytes": 1024}),
        ({"roll_age_s": "5"}, {"roll_age_s": 5}),
        ({"roll_age_s": NAN, "retain_age_s": -5.0}, {"roll_age_s": 60.0, "retain_age_s": 0.0}),
        ({"compression": "x"}, {"compression": "none"}),
    ],
)
def test_a_log_of_an_earlier_release_with_what_cannot_be_opens_and_is_altered(unsound: dict[str, Any], sound: dict[str, Any]) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.store.create("l", replace(PLAIN, **unsound))
        assert repr((await logs.head("l")).settings) == repr(replace(PLAIN, **unsound))
        assert [record async for record in logs.records("l", to="latest")] == []
        assert (await logs.alter("l", sound)).settings == replace(PLAIN, **sound)
        async with await logs.writer("l") as writer:
            assert await writer.append(b"a") == 0

    play(scene)


def test_a_log_of_a_database_is_altered_by_its_owner_only_and_without_retention() -> None:
    async def scene(stage: Stage) -> None:
        logs: Logs = stage.logs()
        shop = Purpose(PurposeKind.DATABASE, "shop")
        await logs.create("l", PLAIN, purpose=shop)
        with pytest.raises(LogReserved):
            await logs.alter("l", {"roll_age_s": 5})
        with pytest.raises(ArgumentError, match="allows no retain_age_s"):
            await logs.acting_for(shop).alter("l", {"retain_age_s": 5})
        assert (await logs.acting_for(shop).alter("l", {"roll_age_s": 5})).settings.roll_age_s == 5
        with pytest.raises(NoSuchLog):
            await logs.alter("m", {"roll_age_s": 5})

    play(scene)
