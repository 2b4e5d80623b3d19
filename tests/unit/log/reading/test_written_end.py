"""The end of what may have been acknowledged, which proves that a copy of a log is up to date."""

from __future__ import annotations

import asyncio

from tests.unit.log.fake import Stage, play
from triplicate.log import LogSettings


def test_a_record_counts_before_it_can_be_read() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings())
        assert await logs.written_end("l") == 0
        async with await logs.writer("l", owner="w") as writer:
            assert await logs.written_end("l") == 0
            await writer.append_entry([b"a", b"b"])
            assert await logs.written_end("l") == 2
            (ledger,) = [ledger for ledger in stage.bookies.ledgers.values() if len(ledger.entries) > 1]
            ledger.held = []
            append = asyncio.get_running_loop().create_task(writer.append_entry([b"c"]))
            while not ledger.held:
                await asyncio.sleep(0)
            assert await logs.end_offset("l") < 3
            assert await logs.written_end("l") == 3
            held, ledger.held = ledger.held, None
            for future, entry_id in held:
                future.set_result(entry_id)
            await append
        assert await logs.written_end("l") == 3

    play(scene)


def test_records_of_all_segments_count() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        async with await logs.writer("l", owner="w") as writer:
            for number in range(40):
                await writer.append_entry([b"%04d" % number * 100])
                assert await logs.written_end("l") == number + 1
            assert len(await logs.segments("l")) > 1
        await logs.truncate("l", 30)
        assert await logs.written_end("l") == 40

    play(scene)
