"""Nodes that everyone may use are found and closed, all of them or a sample, however often the work is interrupted."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import AccessRefused, NoNode
from triplicate.metadata import AclState, ClusterMetadata, MemoryStore, MemoryTree, NodeAcls, RenewingTree, Tree
from triplicate.runtime import Host, real_host


class ProtectedTree(MemoryTree):
    """A tree in memory whose nodes have states of ACLs; those that are not named are the user's."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.states: dict[str, AclState] = {}
        self.forbidden: set[str] = set()
        self.closed: list[str] = []
        self.interrupt_after: int | None = None

    @property
    def closes_nodes(self) -> bool:
        return True

    async def acl_state(self, path: str) -> AclState:
        if await self.exists(path) is None:
            raise NoNode(path)
        if path in self.forbidden:
            raise AccessRefused(path)
        return self.states.get(path, AclState.OURS)

    async def close_node(self, path: str) -> None:
        if self.interrupt_after is not None and len(self.closed) >= self.interrupt_after:
            raise asyncio.CancelledError
        self.states[path] = AclState.OURS
        self.closed.append(path)


async def made(host: Host, *, ledgers: int = 0) -> tuple[ProtectedTree, ClusterMetadata]:
    tree = ProtectedTree(MemoryStore(host.clock))
    cluster = await ClusterMetadata.open(tree, host, create=True)
    for number in range(ledgers):
        await tree.create(f"/ledgers/00/0000/L{number:04d}", parents=True)
    await tree.create(f"{cluster.own_root}/logs/events", parents=True)
    return tree, cluster


async def acls_of(cluster: ClusterMetadata, host: Host) -> NodeAcls:
    found = await NodeAcls.of(cluster, host)
    assert found is not None
    return found


def test_every_node_of_both_roots_is_closed_and_then_nothing_is_left() -> None:
    async def body() -> None:
        host = real_host("test")
        tree, cluster = await made(host, ledgers=120)
        opened = ["/triplicate", "/ledgers", "/ledgers/00/0000/L0119", f"{cluster.own_root}/logs/events"]
        tree.states = dict.fromkeys(opened, AclState.OPEN) | {"/ledgers/LAYOUT": AclState.OTHER}
        acls = await acls_of(cluster, host)
        found = await acls.check()
        assert (found.open, found.other, found.closed, found.refused) == (4, 1, 0, 0)
        assert not tree.closed
        done: list[int] = []
        report = await acls.close_all(done.append)
        assert sorted(tree.closed) == sorted([*opened, "/ledgers/LAYOUT"])
        assert (report.closed, report.nodes) == (5, sum(done))
        assert tree.closed.index("/ledgers") < tree.closed.index("/ledgers/00/0000/L0119")
        again = await acls.close_all()
        assert (again.open, again.other, again.closed, again.nodes) == (0, 0, 0, report.nodes)

    run(body())


def test_an_interrupted_pass_goes_on_where_it_was() -> None:
    async def body() -> None:
        host = real_host("test")
        tree, cluster = await made(host, ledgers=200)
        tree.states = {f"/ledgers/00/0000/L{number:04d}": AclState.OPEN for number in range(200)}
        acls = await acls_of(cluster, host)
        tree.interrupt_after = 70
        with pytest.raises(asyncio.CancelledError):
            await acls.close_all()
        first, tree.closed, tree.interrupt_after = tree.closed, [], None
        await acls.close_all()
        assert len(first) == 70
        assert sorted([*first, *tree.closed]) == sorted(tree.states)

    run(body())


def test_a_sample_looks_at_the_upper_nodes_and_says_that_there_are_more() -> None:
    async def body() -> None:
        host = real_host("test")
        tree, cluster = await made(host, ledgers=300)
        tree.states = {"/ledgers/00": AclState.OPEN, "/ledgers/00/0000/L0299": AclState.OPEN}
        acls = await acls_of(cluster, host)
        found = await acls.sample(60)
        assert (found.nodes, found.open, found.example_open, found.complete) == (60, 1, "/ledgers/00", False)
        everything = await acls.sample(1000)
        assert (everything.open, everything.complete) == (2, True)

    run(body())


def test_nodes_that_the_user_may_not_look_at_are_counted() -> None:
    async def body() -> None:
        host = real_host("test")
        tree, cluster = await made(host)
        tree.forbidden = {"/ledgers/LAYOUT"}
        report = await (await acls_of(cluster, host)).close_all()
        assert (report.refused, report.example_refused, report.closed) == (1, "/ledgers/LAYOUT", 0)

    run(body())


def test_other_clusters_below_the_shared_root_are_left_alone() -> None:
    async def body() -> None:
        host = real_host("test")
        tree, cluster = await made(host)
        await tree.create("/triplicate/another-cluster/logs", parents=True)
        tree.states = {"/triplicate/another-cluster": AclState.OPEN, "/triplicate/another-cluster/logs": AclState.OPEN}
        report = await (await acls_of(cluster, host)).close_all()
        assert (report.open, tree.closed) == (0, [])

    run(body())


def test_a_renewing_tree_is_looked_through_and_a_store_without_acls_has_none() -> None:
    async def body() -> None:
        host = real_host("test")
        tree, cluster = await made(host)

        async def open_session() -> Tree:
            return tree

        cluster.tree = RenewingTree(tree, open_session, host)
        assert (await (await acls_of(cluster, host)).check()).open == 0
        cluster.tree = MemoryTree(MemoryStore(host.clock))
        assert await NodeAcls.of(cluster, host) is None

    run(body())
