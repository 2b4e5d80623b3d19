"""The deletion of a process's own ephemeral node is not repeated, in its next session, on the node that another process has made there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.log.fake import Stage
from tests.unit.metadata.stores import run
from triplicate.config.node_settings import NodeSettings
from triplicate.errors import NodeExists
from triplicate.log import Logs
from triplicate.log.core.head import Owner
from triplicate.log.store import ownership
from triplicate.metadata import ClusterMetadata, DeleteNode, InjectedFault, MemoryTree, RenewingTree, RepairProgress, Tree, bookie_service
from triplicate.metadata.repair_progress import RepairProgressRecords
from triplicate.replica import Election, NodeRegistrar, hand_leader_over
from triplicate.sql.hosting.balancer import Balancer

ROOT = "/triplicate/test"
MARK = "/ledgers/underreplication/ledgers/0000/0000/0000/0007/urL0000000007"
LOCK = "/ledgers/underreplication/locks/urL0000000007"
BOOKIE = "127.0.0.1:3181"
INFO = bookie_service("127.0.0.1", 3181)


@dataclass
class Succession:
    """A process whose session expires at a change of its ephemeral node. Another process makes one there before the next session opens."""

    stage: Stage = field(default_factory=Stage)
    remade: str = ""
    """A persistent node that is deleted and made again as well."""

    def __post_init__(self) -> None:
        self.other = MemoryTree(self.stage.store)
        self.host = self.stage.host
        self.path = ""
        self.tree = RenewingTree(MemoryTree(self.stage.store), self._next_session, self.host)
        self._first = self.tree.session_id
        self._opened = 0

    async def metadata(self) -> ClusterMetadata:
        return await ClusterMetadata.open(self.tree, self.host, create=True, stale_wait_s=0.1)

    def logs(self) -> Logs:
        logs = self.stage.logs()
        self.stage.client_of(logs).metadata.tree = self.tree
        return Logs(logs.client, logs.settings)

    async def _next_session(self) -> Tree:
        self._opened += 1
        if self.remade:
            data, _ = await self.other.get(self.remade)
            await self.other.multi([DeleteNode(self.remade)])
            await self.other.create(self.remade, data)
        await self.other.create(self.path, b"of another process", ephemeral=True)
        return MemoryTree(self.stage.store)

    def expire_at(self, path: str) -> None:
        """Let the session expire when it is about to change this node, which it has made."""
        self.path = path
        assert self.stage.store.get(path)[1].ephemeral_owner == self._first

        def fault(session_id: int, operation: str, touched: str) -> InjectedFault | None:
            is_change = operation in ("delete", "multi") and touched == path
            return InjectedFault(expire=True) if session_id == self._first and is_change else None

        self.stage.store.fault = fault

    async def check(self) -> None:
        await self.tree.sync("/")
        assert self._opened == 1, "the session has not expired"
        assert self.stage.store.get(self.path)[1].ephemeral_owner == self.other.session_id


async def release_lock(process: Succession) -> Callable[[], Awaitable[object]]:
    marks = (await process.metadata()).under_replication
    await marks.mark(7, ["b1"])
    lock = await marks.lock(7, "w1")
    assert lock is not None
    process.expire_at(LOCK)
    return lambda: marks.release(lock)


async def complete(process: Succession) -> Callable[[], Awaitable[object]]:
    marks = (await process.metadata()).under_replication
    await marks.mark(7, ["b1"])
    lock = await marks.lock(7, "w1")
    assert lock is not None
    process.expire_at(LOCK)
    process.remade = MARK

    async def completed() -> None:
        assert not await marks.complete(lock)
        assert process.stage.store.exists(MARK) is not None

    return completed


async def lock_undone(process: Succession) -> Callable[[], Awaitable[object]]:
    marks = (await process.metadata()).under_replication
    lock = await marks.lock_unmarked(7, "w1")
    assert lock is not None
    process.expire_at(LOCK)
    return lambda: marks._undo(7)


async def unregister(process: Succession) -> Callable[[], Awaitable[object]]:
    bookies = (await process.metadata()).bookies
    await bookies.register(BOOKIE, INFO)
    process.expire_at(f"/ledgers/available/{BOOKIE}")
    return lambda: bookies.unregister(BOOKIE)


async def register_again(process: Succession) -> Callable[[], Awaitable[object]]:
    bookies = (await process.metadata()).bookies
    await bookies.register(BOOKIE, INFO)
    process.expire_at(f"/ledgers/available/{BOOKIE}")

    async def refused() -> None:
        with suppress(NodeExists):
            await bookies.register(BOOKIE, bookie_service("127.0.0.1", 3182))

    return refused


async def end_progress(process: Succession) -> Callable[[], Awaitable[object]]:
    progress = RepairProgressRecords(process.tree, process.host, ROOT)
    await progress.write(7, RepairProgress("w1", 1, 1, 0, 0, None, 0.0, 0.0))
    process.expire_at(f"{ROOT}/progress/{7:019d}")
    return lambda: progress.clear(7)


async def elected(process: Succession) -> Election:
    await process.tree.create("/machine/candidates", parents=True)
    election = Election(process.host, process.tree, "/machine", "n1", "n1:1", delay_s=0.0)
    await election.report(1)
    assert await election.create_leader_node(1)
    return election


async def resign(process: Succession) -> Callable[[], Awaitable[object]]:
    election = await elected(process)
    process.expire_at("/machine/leader")
    return election.resign


async def withdraw_candidate(process: Succession) -> Callable[[], Awaitable[object]]:
    election = await elected(process)
    process.expire_at("/machine/candidates/n1")
    return election.withdraw


async def withdraw_handover(process: Succession) -> Callable[[], Awaitable[object]]:
    await process.tree.create("/machine", parents=True)
    client: Any = process.logs().client
    moving = asyncio.ensure_future(hand_leader_over(client, "/machine", "n2", 60.0))
    while process.stage.store.exists("/machine/handover") is None:
        await asyncio.sleep(0)
    process.expire_at("/machine/handover")

    async def given_up() -> None:
        moving.cancel()
        await asyncio.wait([moving])

    return given_up


async def withdraw_node(process: Succession) -> Callable[[], Awaitable[object]]:
    registrar = NodeRegistrar(process.host, process.tree, ROOT, "n1", "n1:1", "ab" * 16)
    await registrar.acquire(0.1)
    process.expire_at(f"{ROOT}/nodes/n1")
    return registrar.withdraw


async def withdraw_balancer(process: Succession) -> Callable[[], Awaitable[object]]:
    client: Any = process.logs().client
    balancer = Balancer(process.host, client, NodeSettings(node_id="n1"))
    await balancer._elected()
    process.expire_at(f"{ROOT}/balancer")
    return balancer._withdraw


async def release_claim(process: Succession) -> Callable[[], Awaitable[object]]:
    logs = process.logs()
    await logs.create("l")
    snapshots = logs.snapshots("l")
    assert await snapshots.claim()
    process.expire_at(f"{ROOT}/logs/l/snapshots/claim")
    return snapshots.release


async def release_log(process: Succession) -> Callable[[], Awaitable[object]]:
    logs = process.logs()
    await logs.create("l")
    store, owner = logs.store, Owner("w", "token")
    await ownership.claim(store, "l", (await logs.head("l")).log_id, owner, take_over=False)
    process.expire_at(f"{ROOT}/logs/l/owner")
    return lambda: ownership.release(store, "l", owner)


CHANGES = [
    release_lock,
    complete,
    lock_undone,
    unregister,
    register_again,
    end_progress,
    resign,
    withdraw_candidate,
    withdraw_handover,
    withdraw_node,
    withdraw_balancer,
    release_claim,
    release_log,
]


@pytest.mark.parametrize("change", CHANGES, ids=[change.__name__ for change in CHANGES])
def test_the_node_of_another_process_is_left_alone(change: Callable[[Succession], Awaitable[Callable[[], Awaitable[object]]]]) -> None:
    async def body() -> None:
        process = Succession()
        act = await change(process)
        await act()
        await process.check()

    run(body())
