"""No entry counts as missing because of a metadata server that is behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from tests.unit.client.cluster import fake_cluster, run
from triplicate.client import LedgerReader
from triplicate.errors import NoSuchEntry
from triplicate.metadata import ClusterMetadata
from triplicate.metadata.ledger_store import Versioned


def show_old_ensemble(metadata: ClusterMetadata, monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...]) -> list[str]:
    """Until a sync, reads of ledgers show an earlier version, with bookies that have none of the entries; returns the syncs."""
    get, refresh, syncs = metadata.ledgers.get, metadata.ledgers.refresh, list[str]()

    async def behind(ledger_id: int) -> Versioned:
        found = await get(ledger_id)
        if syncs:
            return found
        segment = replace(found.value.last_segment, ensemble=others)
        return replace(found, value=replace(found.value, segments=(*found.value.segments[:-1], segment)), version=found.version - 1)

    async def synced() -> None:
        await refresh()
        syncs.append("sync")

    monkeypatch.setattr(metadata.ledgers, "get", behind)
    monkeypatch.setattr(metadata.ledgers, "refresh", synced)
    return syncs


READS: dict[str, Callable[[LedgerReader], Awaitable[object]]] = {
    "unconfirmed": lambda reader: reader.read_unconfirmed(0, 1),
    "confirmed": lambda reader: reader.read(0, 0),
}


@pytest.mark.parametrize("way", READS)
def test_an_entry_is_looked_for_again_after_a_sync(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster("abcdef") as cluster, cluster.client() as client:
            writer = await client.create()
            for payload in (b"0", b"1"):
                await writer.append(payload)
            others = tuple(name for name in cluster.bookies if name not in writer.metadata.last_segment.ensemble)
            syncs = show_old_ensemble(cluster.metadata, monkeypatch, others)
            reader = await client.open(writer.ledger_id)
            async with asyncio.timeout(10):
                await READS[way](reader)
            assert syncs

    run(main())


@pytest.mark.parametrize("way", READS)
def test_an_entry_that_nobody_has_is_missing_after_one_sync(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            syncs = show_old_ensemble(cluster.metadata, monkeypatch, tuple(writer.metadata.last_segment.ensemble))
            syncs.append("caught up")
            reader = await client.open(writer.ledger_id)
            with pytest.raises(NoSuchEntry):
                await asyncio.wait_for(READS[way](reader), 10)
            assert syncs == ["caught up", "sync"]

    run(main())


def test_the_last_written_entry_is_asked_of_bookies_named_after_a_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster("abcdef") as cluster, cluster.client() as client:
            writer = await client.create()
            for payload in (b"0", b"1"):
                await writer.append(payload)
            others = tuple(name for name in cluster.bookies if name not in writer.metadata.last_segment.ensemble)
            show_old_ensemble(cluster.metadata, monkeypatch, others)
            reader = await client.open(writer.ledger_id)
            last = await reader.read_last_written()
            assert last is not None
            assert last.entry_id == 1

    run(main())
