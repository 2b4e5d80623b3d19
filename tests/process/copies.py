"""Ledgers of the tests of lost bookies in real processes, and the copies that they lack."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.client import Client, connect
from triplicate.ledger import EntryCodec, write_set

LEDGERS = 12
ENTRIES = 50
PASSWORD = b"p"
SHAPES = ((3, 3, 2), (3, 2, 2), (2, 2, 2))
"""Ensemble size, write quorum and ack quorum of the ledgers, in turn."""


async def write_ledgers(uri: str, *, leave_open: int = 0, shapes: Sequence[tuple[int, int, int]] = SHAPES) -> list[int]:
    """Ledgers of several shapes. The last ones may be left open, and their writer is gone."""
    ledger_ids: list[int] = []
    async with connect(uri) as client:
        for number in range(LEDGERS):
            ensemble_size, write_quorum, ack_quorum = shapes[number % len(shapes)]
            writer = await client.create(ensemble_size=ensemble_size, write_quorum=write_quorum, ack_quorum=ack_quorum, password=PASSWORD)
            ledger_ids.append(writer.ledger_id)
            for entry in range(ENTRIES):
                await writer.append(b"%d of %d" % (entry, number) * 20)
            if number < LEDGERS - leave_open:
                await writer.close()
    return ledger_ids


async def copies_missing(client: Client, ledger_id: int) -> list[str]:
    """The copies of a ledger that the metadata promises and that no read with a right digest delivers."""
    metadata = await client.metadata_of(ledger_id)
    codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password)
    promised = [
        (entry_id, metadata.ensemble_of(entry_id)[position])
        for entry_id in range(metadata.last_entry_id + 1)
        for position in write_set(entry_id, metadata.ensemble_size, metadata.write_quorum)
    ]
    async with client.bookie_copies() as copies:
        return [
            f"{ledger_id}/{entry_id} on {bookie_id}"
            for entry_id, bookie_id in promised
            if await copies.read(codec, entry_id, bookie_id) is None
        ]


async def all_missing(uri: str, ledger_ids: list[int]) -> list[str]:
    async with connect(uri) as client:
        return [missing for ledger_id in ledger_ids for missing in await copies_missing(client, ledger_id)]


async def names_of(uri: str, ledger_ids: list[int]) -> set[str]:
    async with connect(uri) as client:
        found = [await client.metadata_of(ledger_id) for ledger_id in ledger_ids]
    return {name for metadata in found for segment in metadata.segments for name in segment.ensemble}


async def registered(uri: str) -> list[str]:
    async with connect(uri) as client:
        return list(await client.metadata.bookies.writable())


async def marked(uri: str) -> list[int]:
    """The ledgers that are marked as under-replicated."""
    async with connect(uri) as client:
        return [mark.ledger_id async for mark in client.metadata.under_replication.marks()]
