"""Helpers of the tests of auto-recovery: ledgers over controlled bookies, lost bookies, and a check of all copies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.unit.client.cluster import FakeCluster, FakeLedger
from triplicate.autorecovery import LedgerRepair, ReplicationWorker
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.ledger import DigestType, LedgerMetadata, write_set

PROMPT = AutorecoverySettings(bytes_per_s=0, open_ledger_grace_s=0.2, refill_wait_s=0.5)
"""Settings under which a test of an open ledger takes a fifth of a second."""


async def write_ledger(
    client: Client,
    entries: int,
    *,
    close: bool = True,
    sizes: tuple[int, int, int] = (3, 3, 2),
    digest_type: DigestType = DigestType.CRC32C,
) -> int:
    """A ledger of small entries; returns its id."""
    ensemble_size, write_quorum, ack_quorum = sizes
    writer = await client.create(
        ensemble_size=ensemble_size, write_quorum=write_quorum, ack_quorum=ack_quorum, digest_type=digest_type, password=b"secret"
    )
    for number in range(entries):
        await writer.append(b"entry %d " % number + b"x" * (number % 50))
    if close:
        await writer.close()
    else:
        writer.abandon()
    return writer.ledger_id


async def lose(cluster: FakeCluster, bookie_id: str) -> None:
    """A bookie dies for good: no process, no registration, no entries."""
    await cluster[bookie_id].stop()
    await cluster.metadata.bookies.unregister(bookie_id)
    cluster[bookie_id].ledgers.clear()


async def garble(cluster: FakeCluster, bookie_id: str) -> None:
    """The bookie's registration cannot be decoded, as if a later release had written it."""
    await cluster.metadata.tree.set(f"/ledgers/available/{bookie_id}", b"\xff\xff")


async def replace_disks(cluster: FakeCluster, bookie_id: str) -> None:
    """The bookie loses everything and is in limbo."""
    bound = await cluster.metadata.ledgers.new_id()
    cluster[bookie_id].ledgers.clear()
    await cluster.metadata.incarnations.begin_next(bookie_id, bound)


async def ledger_that_lacks_b(cluster: FakeCluster, client: Client, entries: int) -> int:
    """A closed ledger on the bookies a, b and c; then d comes, and b dies for good. Returns the ledger's id."""
    ledger_id = await write_ledger(client, entries)
    await cluster.settled(ledger_id, entries - 1)
    await cluster.add("d")
    await lose(cluster, "b")
    return ledger_id


@asynccontextmanager
async def worker_of(client: Client, settings: AutorecoverySettings = PROMPT) -> AsyncIterator[ReplicationWorker]:
    async with client.bookie_copies() as copies:
        yield ReplicationWorker(client, copies, settings, name="worker")


async def repair(client: Client, ledger_id: int, missing: str, settings: AutorecoverySettings = PROMPT) -> LedgerRepair:
    """Mark a ledger and repair it once."""
    await client.metadata.under_replication.mark(ledger_id, missing.split())
    async with worker_of(client, settings) as worker:
        return await worker.repair(ledger_id)


async def is_marked(cluster: FakeCluster, ledger_id: int) -> bool:
    return await cluster.metadata.under_replication.get(ledger_id) is not None


def absent_copies(cluster: FakeCluster, ledger_id: int, metadata: LedgerMetadata) -> list[tuple[int, str]]:
    """(entry id, bookie) of the copies that the metadata promises, and that do not exist or differ from the others."""
    absent: list[tuple[int, str]] = []
    for entry_id in range(metadata.last_entry_id + 1):
        ensemble = metadata.ensemble_of(entry_id)
        names = [ensemble[position] for position in write_set(entry_id, metadata.ensemble_size, metadata.write_quorum)]
        bodies = {name: cluster[name].ledgers.get(ledger_id, FakeLedger()).entries.get(entry_id) for name in names}
        right = next(body for body in bodies.values() if body is not None)
        absent += [(entry_id, name) for name, body in bodies.items() if body != right]
    return absent
