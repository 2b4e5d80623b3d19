"""A killed process leaves unsynced bytes in the operating system's memory; a later loss of power takes them."""

from __future__ import annotations

import asyncio

from tests.unit.bookie.bookie_rig import Rig, run_rig
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import AddRequest, Status

DELAYS_S = [step * 0.0005 for step in range(1, 12)]


def test_a_group_that_only_a_replay_saw_is_there_after_a_loss_of_power() -> None:
    replayed = []
    for delay_s in DELAYS_S:

        async def body(rig: Rig, delay_s: float = delay_s) -> None:
            codec = EntryCodec(5, DigestType.CRC32C, b"")
            client = await rig.connect()
            assert await client.add(codec, 0) is Status.OK
            client.send(AddRequest(5, 1, codec.master_key, codec.encode(1, 0, 2, b"x")))
            await asyncio.sleep(delay_s)
            answered = not client.answers.empty()
            await rig.restart(keep_unsynced=True)
            client = await rig.connect()
            found = (await client.read(5, 1)).status
            replayed.append((answered, found))
            assert found is Status.OK or not answered
            assert await client.add(codec, 2) is Status.OK
            await rig.restart(keep_unsynced=False)
            client = await rig.connect()
            assert (await client.read(5, 2)).status is Status.OK
            assert (await client.read(5, 1)).status is found

        # No flush comes in between, so all of it must come from the journal.
        run_rig(body, flush_interval_s=3600.0)
    assert (False, Status.OK) in replayed, "one of the kills came between write and sync"
