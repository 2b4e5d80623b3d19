"""Deleting a ledger together with checks: it stays where one fails, and a lost answer changes nothing about that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from triplicate.errors import BadVersion, ConnectionLost, NoSuchLedger
from triplicate.ledger import EnsembleSegment, LedgerMetadata
from triplicate.metadata import CheckVersion, ClusterMetadata, CreateNode, DeleteNode, InjectedFault, MemoryStore, MemoryTree, TreeOperation
from triplicate.runtime import real_host

METADATA = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(EnsembleSegment(0, ("a",)),))
PERIODS = pytest.mark.parametrize("period_s", [0.0, 3600.0])


def play(scene: Callable[[ClusterMetadata, MemoryStore], Awaitable[None]]) -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        store = MemoryStore(host.clock)
        async with await ClusterMetadata.open(MemoryTree(store), host, create=True) as cluster:
            await cluster.ledgers.create(7, METADATA)
            await cluster.tree.create("/head", b"1")
            await scene(cluster, store)

    asyncio.run(body())


@PERIODS
def test_a_ledger_stays_while_a_check_fails(period_s: float) -> None:
    async def scene(cluster: ClusterMetadata, store: MemoryStore) -> None:
        failing: list[list[TreeOperation]] = [
            [CheckVersion("/head", 1)],
            [CheckVersion("/nowhere")],
            [CreateNode("/head"), DeleteNode("/head")],
        ]
        for checks in failing:
            with pytest.raises(BadVersion):
                await cluster.trash.delete(7, period_s, checks=checks)
        with pytest.raises(BadVersion):
            await cluster.trash.delete(7, period_s, version=1)
        assert (await cluster.ledgers.get(7)).version == 0
        await cluster.trash.delete(
            7, period_s, version=0, checks=[CheckVersion("/head", 0), CreateNode("/nowhere"), DeleteNode("/nowhere")]
        )
        with pytest.raises(NoSuchLedger):
            await cluster.ledgers.get(7)
        assert await cluster.tree.exists("/nowhere") is None
        await cluster.trash.delete(7, period_s, version=0, checks=[CheckVersion("/head", 9)])
        if period_s:
            assert (await cluster.trash.undelete(7)).value.segments == METADATA.segments

    play(scene)


@PERIODS
@pytest.mark.parametrize("applied", [True, False])
def test_a_deletion_whose_answer_is_lost_is_made_once(period_s: float, applied: bool) -> None:
    async def scene(cluster: ClusterMetadata, store: MemoryStore) -> None:
        lost: list[str] = []

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            if operation != "multi" or lost:
                return None
            lost.append(path)
            error = ConnectionLost("lost")
            return InjectedFault(raise_after=error) if applied else InjectedFault(raise_before=error)

        store.fault = fault
        await cluster.trash.delete(7, period_s, checks=[CheckVersion("/head", 0)])
        assert lost
        assert not await cluster.ledgers.exists(7)

    play(scene)
