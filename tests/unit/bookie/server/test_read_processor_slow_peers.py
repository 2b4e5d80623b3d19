"""Every read is answered, also to a peer that takes its time."""

from __future__ import annotations

import asyncio

from tests.unit.bookie.bookie_rig import Rig, run_rig
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import ReadRequest, ReadResponse, Status

ENTRIES = 30


def test_reads_that_were_taken_up_when_the_peer_stopped_reading_are_answered_later() -> None:
    async def body(rig: Rig) -> None:
        codec = EntryCodec(5, DigestType.CRC32C, b"")
        client = await rig.connect()
        for entry_id in range(ENTRIES):
            assert await client.add(codec, entry_id, b"x" * 50_000) is Status.OK
        while rig.bookie.storage.cache.active or rig.bookie.storage.cache.frozen:
            await asyncio.sleep(0.05)
        assert client.transport is not None
        client.transport.pause_reading()
        client.send(*[ReadRequest(5, entry_id) for entry_id in range(ENTRIES)])
        await asyncio.sleep(2.0)
        client.transport.resume_reading()
        answers = [await client.answer() for _ in range(ENTRIES)]
        assert sorted(answer.entry_id for answer in answers if isinstance(answer, ReadResponse)) == list(range(ENTRIES))

    run_rig(body, read_turn_bytes=64 * 1024, answers_per_connection_bytes=64 * 1024, verify_on_write="off")
