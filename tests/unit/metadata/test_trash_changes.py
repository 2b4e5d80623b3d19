"""Changes of ledgers in the trash: their bookies are replaced there, and an undelete restores the last state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from triplicate.errors import BadVersion, ConnectionLost, NoSuchLedger
from triplicate.ledger import EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.metadata import CheckVersion, ClusterMetadata, InjectedFault, LedgerStore, MemoryStore, MemoryTree, Versioned
from triplicate.runtime import real_host

METADATA = LedgerMetadata(
    ensemble_size=1,
    write_quorum=1,
    ack_quorum=1,
    state=LedgerState.CLOSED,
    length=0,
    last_entry_id=-1,
    segments=(EnsembleSegment(0, ("a",)),),
)
MOVED = replace(METADATA, segments=(EnsembleSegment(0, ("b",)),))


def play(scene: Callable[[ClusterMetadata, MemoryStore], Awaitable[None]]) -> None:
    """A cluster with ledger 7 in the trash."""

    async def body() -> None:
        host = real_host("test", seed=1)
        store = MemoryStore(host.clock)
        async with await ClusterMetadata.open(MemoryTree(store), host, create=True) as cluster:
            await cluster.ledgers.create(7, METADATA)
            await cluster.trash.delete(7, 3600.0)
            await scene(cluster, store)

    asyncio.run(body())


def test_an_undelete_restores_the_bookies_that_were_named_in_the_trash() -> None:
    async def scene(cluster: ClusterMetadata, store: MemoryStore) -> None:
        assert (await cluster.trash.update(7, MOVED, 0)).version == 1
        with pytest.raises(BadVersion):
            await cluster.trash.update(7, METADATA, 0)
        restored = await cluster.trash.undelete(7)
        assert (restored.value.segments, restored.version) == (MOVED.segments, 2)
        with pytest.raises(NoSuchLedger):
            await cluster.trash.update(7, METADATA, 1)

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
def test_a_change_whose_answer_is_lost_is_made_once(applied: bool) -> None:
    async def scene(cluster: ClusterMetadata, store: MemoryStore) -> None:
        lost: list[str] = []

        def lose_once(session: int, operation: str, path: str) -> InjectedFault | None:
            if operation != "set" or lost:
                return None
            lost.append(path)
            error = ConnectionLost("the answer is lost")
            return InjectedFault(raise_after=error) if applied else InjectedFault(raise_before=error)

        store.fault = lose_once
        assert (await cluster.trash.update(7, MOVED, 0)).version == 1
        assert lost
        found = await cluster.trash.get(7)
        assert found is not None
        assert (found.metadata.segments, found.version) == (MOVED.segments, 1)

    play(scene)


def test_the_undelete_sees_a_change_behind_its_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """The undelete restored bookies whose disks were free to be wiped by then."""

    async def scene(cluster: ClusterMetadata, store: MemoryStore) -> None:
        restore = LedgerStore.restore

        async def late(ledgers: LedgerStore, ledger_id: int, metadata: LedgerMetadata, version: int, guard: CheckVersion) -> Versioned:
            if version == 0:
                await cluster.trash.update(ledger_id, MOVED, version)
            return await restore(ledgers, ledger_id, metadata, version, guard)

        monkeypatch.setattr(LedgerStore, "restore", late)
        assert (await cluster.trash.undelete(7)).value.segments == MOVED.segments
        assert await cluster.trash.get(7) is None

    play(scene)


def test_the_second_of_two_undeletes_finds_the_ledger_restored() -> None:
    async def scene(cluster: ClusterMetadata, store: MemoryStore) -> None:
        first, second = await asyncio.gather(cluster.trash.undelete(7), cluster.trash.undelete(7))
        assert first.value.segments == second.value.segments == METADATA.segments

    play(scene)


def test_an_undelete_of_a_ledger_that_left_the_trash_meanwhile_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(cluster: ClusterMetadata, store: MemoryStore) -> None:
        restore = LedgerStore.restore

        async def late(ledgers: LedgerStore, ledger_id: int, metadata: LedgerMetadata, version: int, guard: CheckVersion) -> Versioned:
            await cluster.tree.delete(guard.path)
            return await restore(ledgers, ledger_id, metadata, version, guard)

        monkeypatch.setattr(LedgerStore, "restore", late)
        with pytest.raises(NoSuchLedger):
            await cluster.trash.undelete(7)
        assert not await cluster.ledgers.exists(7)

    play(scene)
