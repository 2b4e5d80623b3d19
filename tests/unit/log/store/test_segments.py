from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from triplicate.client import Client
from triplicate.config import ClientSettings
from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.errors import NotEnoughBookies
from triplicate.log.core.head import Quorums
from triplicate.log.core.quorums import placeable_copies
from triplicate.log.store.segments import create_segment
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, bookie_service
from triplicate.runtime import real_host


def segment_on(machines: Mapping[str, str], min_ack_domains: int = 1) -> tuple[Quorums | None, tuple[str, ...]]:
    """The reduced quorums and the ensemble of a new segment; `machines` by bookie id."""

    async def main() -> tuple[Quorums | None, tuple[str, ...]]:
        host = real_host("writer", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            for port, (bookie_id, machine) in enumerate(machines.items(), 1000):
                await metadata.bookies.register(bookie_id, bookie_service(machine, port))
            async with Client(host, metadata, ClientSettings(placement_min_ack_domains=min_ack_domains)) as client:
                ledger, reduced = await create_segment(client, LogClientSettings(), LogSettings(), {})
                return reduced, (await client.metadata_of(ledger.ledger_id)).last_segment.ensemble

    return asyncio.run(main())


def test_a_segment_has_as_many_copies_as_there_are_machines() -> None:
    reduced, ensemble = segment_on({"a": "x", "b": "x", "c": "y", "d": "y"})
    assert reduced == Quorums(2, 2)
    assert {"ab".find(name) >= 0 for name in ensemble} == {True, False}
    assert segment_on({"a": "x", "b": "y", "c": "z", "d": "z"})[0] is None


def test_on_the_only_machine_a_segment_has_all_copies() -> None:
    assert segment_on({"a": "x", "b": "x", "c": "x"})[0] is None
    with pytest.raises(NotEnoughBookies):
        segment_on({"a": "x"})


def test_a_segment_keeps_the_domains_of_its_acknowledgements() -> None:
    machines = {"a": "x", "b": "x", "c": "y", "d": "y"}
    assert segment_on(machines, 2)[0] == Quorums(2, 2)
    with pytest.raises(NotEnoughBookies, match="acknowledged in 3 machines"):
        segment_on(machines, 3)


def test_copies_that_can_be_placed_are_counted_by_machine() -> None:
    assert [placeable_copies(list(machines)) for machines in ("", "x", "xx", "xxyy", "xyz")] == [0, 1, 2, 2, 3]
