"""Entries about as large as a bookie's frame limit: readable from any writer, and refused without trying another bookie."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import real_cluster
from triplicate.config import BookieSettings, ClientSettings
from triplicate.errors import EntryTooLarge, RecordTooLarge
from triplicate.wire import BOOKIE_FRAME_BYTES, MAX_FRAME_BYTES

MIB = 1 << 20
WIRES = ["v2", "v3"]


def test_the_defaults_of_client_and_bookie_fit_together() -> None:
    assert ClientSettings().frame_limit_bytes == MAX_FRAME_BYTES < BookieSettings().frame_limit_bytes == BOOKIE_FRAME_BYTES


@pytest.mark.parametrize("wire", WIRES)
def test_an_entry_larger_than_the_bookies_take_ends_the_append_and_replaces_nobody(wire: str) -> None:
    async def main() -> None:
        async with real_cluster("abcd") as cluster, cluster.client(ClientSettings(wire=wire, frame_limit_bytes=8 * MIB)) as client:
            writer = await client.create()
            assert await writer.append(b"small") == 0
            async with asyncio.timeout(60):
                with pytest.raises(EntryTooLarge, match="raise bookie"):
                    await writer.append(bytes(6 * MIB))
            assert writer.ensemble_changes == 0
            assert await writer.close() == 0
            reader = await client.open(writer.ledger_id)
            assert [entry.payload for entry in await reader.read(0, 0)] == [b"small"]
            assert len((await cluster.metadata.ledgers.get(writer.ledger_id)).value.segments) == 1

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_what_others_wrote_at_the_bookies_limit_is_read_with_the_default_settings(wire: str) -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client(ClientSettings(frame_limit_bytes=BOOKIE_FRAME_BYTES)) as other:
            writer = await other.create()
            payload = b"p" * writer.largest_payload_bytes
            assert len(payload) > 5 * MIB
            await writer.append(payload)
            await writer.close()
            async with cluster.client(ClientSettings(wire=wire)) as client:
                reader = await client.open(writer.ledger_id)
                assert (await reader.read(0, 0))[0].payload == payload
                mine = await client.create()
                with pytest.raises(RecordTooLarge):
                    await mine.append(payload)

    run(main())
