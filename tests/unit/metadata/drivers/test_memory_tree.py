"""The faults that the memory driver can inject, and that its runs repeat."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import ConnectionLost, NodeExists, SessionExpired
from triplicate.metadata import InjectedFault, MemoryStore, MemoryTree
from triplicate.runtime import real_host


def new_store() -> MemoryStore:
    return MemoryStore(real_host("test", seed=1).clock)


def test_a_connection_lost_before_the_change_leaves_it_undone() -> None:
    async def body() -> None:
        store = new_store()
        tree = MemoryTree(store)
        asked: list[tuple[int, str, str]] = []

        def fault(session_id: int, operation: str, path: str) -> InjectedFault | None:
            asked.append((session_id, operation, path))
            return InjectedFault(raise_before=ConnectionLost("before")) if operation == "create" else None

        store.fault = fault
        with pytest.raises(ConnectionLost):
            await tree.create("/a")
        assert await tree.exists("/a") is None
        assert asked == [(tree.session_id, "create", "/a"), (tree.session_id, "exists", "/a")]

    run(body())


def test_a_connection_lost_after_the_change_leaves_it_done_and_wakes_watches() -> None:
    async def body() -> None:
        store = new_store()
        tree = MemoryTree(store)
        elsewhere = tree.watch("/elsewhere")
        store.fault = lambda session_id, operation, path: InjectedFault(raise_after=ConnectionLost("after"))
        with pytest.raises(ConnectionLost):
            await tree.create("/a", b"data")
        await elsewhere.changed()
        store.fault = None
        assert (await tree.get("/a"))[0] == b"data"
        with pytest.raises(NodeExists):
            await tree.create("/a")

    run(body())


def test_an_expired_session_loses_its_ephemeral_nodes_and_raises_from_then_on() -> None:
    async def body() -> None:
        store = new_store()
        tree, other = MemoryTree(store), MemoryTree(store)
        await tree.create("/e", ephemeral=True)
        mine, theirs = tree.watch("/x"), other.watch("/e")
        store.fault = lambda session_id, operation, path: InjectedFault(expire=True) if session_id == tree.session_id else None
        with pytest.raises(SessionExpired):
            await tree.create("/never")
        await theirs.changed()
        assert await other.exists("/e") is None
        assert await other.exists("/never") is None
        with pytest.raises(SessionExpired):
            await mine.changed()
        with pytest.raises(SessionExpired):
            await tree.get("/")
        assert store.sessions == [other.session_id]
        store.expire(tree.session_id)

    run(body())


def test_a_change_cancelled_on_its_way_out_is_not_applied_and_on_its_way_back_is() -> None:
    async def body() -> None:
        store = new_store()
        tree = MemoryTree(store)
        for name, fault in (("/before", InjectedFault(delay_before_s=60.0)), ("/after", InjectedFault(delay_after_s=60.0))):
            store.fault = lambda session_id, operation, path, fault=fault: fault
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await tree.create(name)
        store.fault = None
        assert (await tree.children("/"))[0] == ["after"]

    run(body())


def test_two_runs_of_the_same_operations_give_the_same_store() -> None:
    async def body() -> dict[str, tuple[bytes, int, int, int]]:
        store = new_store()
        trees = [MemoryTree(store) for _ in range(3)]
        for number, tree in enumerate(trees):
            await tree.create("/d/n-", str(number).encode(), ephemeral=number == 1, sequential=True, parents=True)
        await trees[0].set("/d", b"x")
        await trees[1].close()
        return {path: (data, stat.version, stat.cversion, stat.ephemeral_owner) for path, (data, stat) in store.dump().items()}

    first = run(body())
    assert first == run(body())
    assert list(first) == ["/", "/d", "/d/n-0000000000", "/d/n-0000000002"]


def test_the_counter_of_sequential_names_wraps_as_a_signed_number_of_32_bits() -> None:
    async def body() -> None:
        store = new_store()
        tree = MemoryTree(store)
        await tree.create("/q")
        store._node("/q").created_children = 2**31 - 1
        assert await tree.create("/q/n-", sequential=True) == "/q/n-2147483647"
        assert await tree.create("/q/n-", sequential=True) == "/q/n--2147483648"

    run(body())
