"""What a bookie cannot verify it does not refuse."""

from __future__ import annotations

import asyncio

from tests.unit.bookie.bookie_rig import NAME, Rig, run_rig
from triplicate.ledger import DigestType, EnsembleSegment, EntryCodec, LedgerMetadata, LedgerState
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.wire import Status


def test_a_ledger_whose_metadata_names_no_digest_is_written_on() -> None:
    async def body(rig: Rig) -> None:
        metadata = await ClusterMetadata.open(MemoryTree(rig.cluster.store), rig.client_host.port)
        segments = (EnsembleSegment(0, (NAME,)),)
        oldest = LedgerMetadata(1, 1, 1, segments, LedgerState.OPEN, custom={}, format_version=1, credentials_stored=False)
        await metadata.ledgers.create(5, oldest)
        await metadata.aclose()
        client = await rig.connect()
        codec = EntryCodec(5, DigestType.HMAC, b"known to its users only")
        assert await client.add(codec, 0) is Status.OK
        await asyncio.sleep(2.0)  # The bookie has read the metadata by now.
        assert await client.add(codec, 1) is Status.OK

    run_rig(body)
