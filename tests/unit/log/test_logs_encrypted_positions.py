"""Encrypted logs, also merged out of published ledgers: records, backwards, positions, and producers."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.log.encryption_rig import encrypted_log, with_keys
from tests.unit.log.fake import Stage, play
from triplicate.log import LogSettings, StagingOrigin, TransactionId


def test_records_are_found_and_read_in_both_directions_after_published_ledgers_were_merged() -> None:
    async def scene(stage: Stage) -> None:
        logs = await encrypted_log(stage)
        for batch in range(4):
            async with await logs.staging(StagingOrigin("l", "app")) as staging:
                for number in range(5):
                    await staging.append_many([b"%d" % (batch * 5 + number)])
                sealed = await staging.seal()
            await logs.publish("l", [sealed], application="app", batch=batch)
        logs.settings = replace(logs.settings, merge_after_s=0.0)
        assert (await logs.merge_small("l")).ledgers == 1
        expected = [b"%d" % number for number in range(20)]
        assert [record.value async for record in logs.records("l", to="latest")] == expected
        assert [record.value async for record in logs.backwards("l")] == expected[::-1]
        assert [record.value async for record in logs.backwards("l", 13)] == expected[12::-1]

    play(scene)


def test_positions_and_producers_of_an_encrypted_log_are_found() -> None:
    async def scene(stage: Stage) -> None:
        stage.wall_us = 1_700_000_000_000_000
        logs = await encrypted_log(stage, LogSettings(roll_size_bytes=2048, compression="none"))
        writer = await logs.writer("l")
        producer = await writer.producer("one")
        for number in range(20):
            stage.wall_us += 1_000_000
            await writer.append_entry([b"." * 200], transaction_ids=[number])
        await producer.append(b"numbered", sequence=4)
        await writer.abandon()
        others = with_keys(stage)
        assert await others.offset_at("l", TransactionId(7)) == 7
        seventh = await others.records("l", 7).next_record()
        assert seventh is not None
        assert await others.offset_at("l", seventh.time) == 7
        async with await others.producer("l", "one") as again:
            assert (await again.append(b"numbered", sequence=4)).is_duplicate
        last = await others.last_record("l")
        assert last is not None
        assert (last.offset, last.value) == (20, b"numbered")

    play(scene)
