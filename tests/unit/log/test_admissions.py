"""A publish meets a living writer: the writer lists it at a roll, once, and works on; or the publisher gives up in time."""

from __future__ import annotations

import asyncio

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.test_publishing import staged


def test_a_living_writer_lists_what_is_published_between_its_records() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append_many([b"a", b"b"]) == range(2)
            parts = [await staged(others, [b"c", b"d"]), await staged(others, [b"e"])]
            published = await others.publish("l", parts, application="app", batch=1)
            assert (published.first_offset, published.end_offset, published.already, published.by_writer) == (2, 5, False, True)
            assert await writer.append(b"f") == 5
            assert (writer.admitted, writer.acknowledged_offset, writer.next_offset) == (3, 6, 6)
            assert (await others.publish("l", parts, application="app", batch=1)).already
            assert writer.failure is None
        assert await read_values(others, "l", 0, 6) == [b"a", b"b", b"c", b"d", b"e", b"f"]
        assert stage.store.children("/triplicate/test/logs/l/requests")[0] == []

    play(scene)
