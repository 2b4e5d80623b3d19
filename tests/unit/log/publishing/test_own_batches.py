"""The writer of a log that nobody else publishes to appends batches of any size, all or none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.unit.log.encryption_rig import SECRET, stored, with_keys
from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.head_rig import changes_of_head, lose_connection
from triplicate.errors import LogFenced, NoSuchLedger, OutcomeUnknown, UsageError
from triplicate.log import Logs, LogSettings, LogWriter, Purpose, PurposeKind

OWNER = Purpose(PurposeKind.DATABASE, "db")


async def entries(*values: bytes) -> AsyncIterator[tuple[bytes, list[bytes]]]:
    for value in values:
        yield b"p:" + value, [value]


async def reserved(stage: Stage, settings: LogSettings | None = None) -> Logs:
    logs = stage.logs().acting_for(OWNER)
    await logs.create("l", settings or LogSettings(), purpose=OWNER)
    return logs


async def all_values(logs: Logs) -> list[bytes | None]:
    return await read_values(logs, "l", 0, await logs.end_offset("l"))


def staging_ledgers(stage: Stage) -> list[int]:
    return [number for number, ledger in stage.bookies.ledgers.items() if ledger.metadata.custom.get("component") == b"staging"]


def test_a_batch_lies_between_the_writers_other_records() -> None:
    async def scene(stage: Stage) -> None:
        logs = await reserved(stage)
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append_entry([b"a"], preamble=b"p:a") == range(1)
            assert await writer.append_listed(entries(b"b", b"c")) == range(1, 3)
            assert await writer.append_entry([b"d"], preamble=b"p:d") == range(3, 4)
            assert await writer.append_listed(entries(b"e")) == range(4, 5)
        assert await all_values(logs) == [b"a", b"b", b"c", b"d", b"e"]
        reader = await logs.reader("l")
        found = [await anext(reader) for _ in range(5)]
        await reader.aclose()
        assert [entry.preamble for entry in found] == [b"p:a", b"p:b", b"p:c", b"p:d", b"p:e"]
        assert {entry.epoch for entry in found} == {writer.epoch}

    play(scene)


def test_a_batch_of_an_encrypted_log_is_encrypted() -> None:
    async def scene(stage: Stage) -> None:
        logs = with_keys(stage).acting_for(OWNER)
        await logs.create("l", LogSettings(compression="none"), purpose=OWNER, key_id="new")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_entry([b"a"])
            assert await writer.append_listed(entries(SECRET, b"c")) == range(1, 3)
        assert await all_values(logs) == [b"a", SECRET, b"c"]
        assert SECRET not in stored(stage)

    play(scene)


def test_entries_that_fail_leave_no_batch_and_the_writer_works_on() -> None:
    async def broken() -> AsyncIterator[tuple[bytes, list[bytes]]]:
        yield b"p", [b"x"]
        raise ValueError("broken")

    async def scene(stage: Stage) -> None:
        logs = await reserved(stage)
        async with await logs.writer("l", owner="w") as writer:
            with pytest.raises(ValueError, match="broken"):
                await writer.append_listed(broken())
            assert await writer.append_listed(entries(b"a")) == range(1)
        assert await all_values(logs) == [b"a"]

    play(scene)


def test_a_superseded_writer_lists_nothing() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = await reserved(stage), stage.logs().acting_for(OWNER)
        old = await logs.writer("l", owner="old")
        new: list[LogWriter] = []

        async def taken_over_meanwhile() -> AsyncIterator[tuple[bytes, list[bytes]]]:
            yield b"p", [b"x"]
            new.append(await others.writer("l", owner="new"))

        with pytest.raises(LogFenced):
            await old.append_listed(taken_over_meanwhile())
        await old.abandon()
        assert await new[0].append_listed(entries(b"y")) == range(1)
        await new[0].close()
        assert await all_values(others) == [b"y"]

    play(scene)


@pytest.mark.parametrize("applied", [False, True])
def test_a_roll_whose_answer_was_lost_lists_the_batch_once(applied: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = await reserved(stage)
        async with await logs.writer("l", owner="w") as writer:
            lost = lose_connection(stage, applied=applied, times=2, only=changes_of_head)
            assert await writer.append_listed(entries(b"a", b"b")) == range(2)
            assert len(lost) == 2
            assert await writer.append_entry([b"c"]) == range(2, 3)
        assert await all_values(logs) == [b"a", b"b", b"c"]

    play(scene)


def test_a_batch_whose_ledger_is_gone_is_not_appended() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = await reserved(stage), stage.logs()
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_entry([b"a"])

            async def deleted_meanwhile() -> AsyncIterator[tuple[bytes, list[bytes]]]:
                yield b"p", [b"x"]

            source: Any = writer._source
            find = source.admit

            async def admit(*arguments: object) -> object:
                for ledger in staging_ledgers(stage):
                    await others.client.delete(ledger)
                return await find(*arguments)

            source.admit = admit
            with pytest.raises((NoSuchLedger, OutcomeUnknown)):
                await writer.append_listed(deleted_meanwhile())
            source.admit = find
            assert await writer.append_entry([b"b"]) == range(1, 2)
        assert await all_values(logs) == [b"a", b"b"]

    play(scene)


def test_a_writer_that_ends_leaves_nobody_waiting() -> None:
    async def scene(stage: Stage) -> None:
        logs = await reserved(stage)
        writer = await logs.writer("l", owner="w")
        reached = asyncio.Event()

        async def held() -> AsyncIterator[tuple[bytes, list[bytes]]]:
            yield b"p", [b"x"]
            reached.set()

        appending = asyncio.create_task(writer.append_listed(held()))
        await reached.wait()
        await stage.logs().acting_for(OWNER).writer("l", owner="other")
        with pytest.raises(LogFenced):
            await appending
        with pytest.raises(LogFenced):
            await writer.append_listed(entries(b"y"))
        await writer.abandon()

    play(scene)


def test_a_log_that_others_publish_to_has_no_such_batches() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l") as writer:
            with pytest.raises(UsageError, match="publish"):
                await writer.append_listed(entries(b"x"))

    play(scene)
