"""Values that no entry can hold are refused where they are appended, and take no other record with them."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play
from triplicate.errors import ArgumentError, OutcomeUnknown
from triplicate.log import Appended

WRONG: list[dict[str, Any]] = [
    {"value": "text"},
    {"value": [1, 2]},
    {"value": b"v", "key": "text"},
    {"value": memoryview(array("i", [1, 2]))},
    {"value": memoryview(b"abcd")[::2]},
    {"value": b"v", "timestamp_us": 2**63},
    {"value": b"v", "timestamp_us": 1.5},
    {"value": b"v", "headers": [("name", "text")]},
    {"value": b"v", "headers": [(b"name", b"v")]},
]


@pytest.mark.parametrize("wrong", WRONG, ids=["text", "list", "key", "numbers", "stride", "large", "float", "header", "header's name"])
def test_a_wrong_value_is_refused_and_the_records_beside_it_are_appended(wrong: dict[str, Any]) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l") as writer:
            producer = await writer.producer("orders-1")
            for append in (writer.append, producer.append):
                before = asyncio.ensure_future(append(b"before"))
                refused = asyncio.ensure_future(append(**wrong))
                after = asyncio.ensure_future(append(b"after"))
                _, waiting = await asyncio.wait([before, refused, after], timeout=5)
                assert not waiting
                assert isinstance(refused.exception(), ArgumentError)
                assert [before.exception(), after.exception()] == [None, None]
            assert producer.last_sequence == 1
        assert [record.value async for record in logs.records("l", to="latest")] == [b"before", b"after"] * 2

    play(scene)


def test_many_records_with_a_wrong_one_are_refused_before_any_is_sent() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l") as writer:
            values: list[Any] = [*[b"." * 500_000] * 4, "text"]
            with pytest.raises(ArgumentError):
                await writer.append_many(values)
            assert writer.next_offset == 0

    play(scene)


def test_an_entry_with_a_wrong_part_is_refused_and_a_header_of_numbers_is_stored_whole() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        numbers: Any = memoryview(array("i", [1, 2]))
        text: Any = "text"
        async with await logs.writer("l") as writer:
            for values, parts in (([text], {}), ([numbers], {}), ([b"v"], {"keys": [5]}), ([b"v"], {"preamble": numbers})):
                with pytest.raises(ArgumentError):
                    await writer.append_entry(values, **parts)
            assert await writer.append(b"v", headers=[("n", numbers), ("m", b"end")]) == 0
        record = await logs.last_record("l")
        assert record is not None
        assert record.headers == (("n", bytes(numbers)), ("m", b"end"))

    play(scene)


def test_offsets_and_numbers_of_producers_are_integers() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        half: Any = 0.5
        async with await logs.writer("l") as writer:
            await writer.append_many([b"1", b"2"])
            producer = await writer.producer("orders-1")
            name: Any = 5
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: producer.append(b"v", sequence=half),
                lambda: writer.producer("orders-2", epoch=half),
                lambda: writer.producer(name),
                lambda: logs.truncate("l", half),
                lambda: logs.offset_at("l", half),
                lambda: logs.reader("l", half),
                lambda: logs.reset_consumer("l", "c", half),
                lambda: logs.consumer("l", name),
            ]
            for call in calls:
                with pytest.raises(ArgumentError):
                    await asyncio.wait_for(call(), 5)
            assert await producer.append(b"v") == Appended(0, 2)
        async with await logs.consumer("l", "d") as consumer:
            await consumer.next_record()
            with pytest.raises(ArgumentError):
                await consumer.save(half)
            await consumer.close()
        await logs.delete_consumer("l", "d")
        assert (await logs.head("l")).first_offset == 0
        assert await logs.consumers("l") == []

    play(scene)


def test_records_that_become_wrong_while_they_wait_are_refused_and_others_go_on() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l") as writer:
            part = memoryview(b"released")
            refused = asyncio.ensure_future(writer.append(part))
            await asyncio.sleep(0)
            part.release()
            with pytest.raises(ValueError, match="released"):
                await asyncio.wait_for(refused, 5)
            assert writer._window.is_empty
            assert await writer.append(b"next") == 0

    play(scene)


def test_numbered_records_that_become_wrong_end_the_writer() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        writer = await logs.writer("l")
        producer = await writer.producer("orders-1")
        part = memoryview(b"released")
        refused = asyncio.ensure_future(producer.append(part, sequence=0))
        await asyncio.sleep(0)
        part.release()
        with pytest.raises(ValueError, match="released"):
            await asyncio.wait_for(refused, 5)
        with pytest.raises((ValueError, OutcomeUnknown)):
            await producer.append(b"again", sequence=0)
        await writer.abandon()
        async with await logs.producer("l", "orders-1") as producer:
            assert await producer.append(b"again", sequence=0) == Appended(0, 0)

    play(scene)
