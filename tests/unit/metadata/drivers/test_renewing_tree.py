"""Trees that outlive their sessions. Source: BookKeeper `ZooKeeperClient`, which opens a new session after expiry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.metadata.lagging import LaggingTree
from tests.unit.metadata.stores import run
from triplicate.errors import AccessRefused, ConnectionLost, SessionExpired
from triplicate.metadata import ClusterMetadata, InjectedFault, MemoryStore, MemoryTree, RenewingTree, Tree, bookie_service, open_tree
from triplicate.metadata.drivers.renewing_tree import REFUSED_PAUSE_S
from triplicate.runtime import Clock, TaskScope, Timer, real_host, sleep
from triplicate.sim import World

INFO = bookie_service("127.0.0.1", 3181)


def renewing(store: MemoryStore) -> RenewingTree:
    async def open_session() -> Tree:
        return MemoryTree(store)

    return RenewingTree(MemoryTree(store), open_session, real_host("test", seed=1))


def test_operations_and_watches_go_on_after_a_session_was_lost() -> None:
    async def body() -> None:
        store = MemoryStore(real_host("test").clock)
        tree = renewing(store)
        await tree.create("/a", b"one")
        await tree.create("/e", ephemeral=True)
        watch = tree.watch("/e")
        first = tree.session_id
        store.expire(first)
        await watch.changed()
        assert await tree.exists("/e") is None
        assert tree.session_id != first
        await tree.create("/e", ephemeral=True)
        await watch.changed()
        store.expire(tree.session_id)
        await tree.set("/a", b"two", 0)
        assert (await tree.get("/a"))[0] == b"two"
        await tree.close()
        assert store.sessions == []
        with pytest.raises(SessionExpired):
            await tree.get("/a")
        with pytest.raises(SessionExpired):
            await watch.changed()

    run(body())


def test_operations_that_meet_the_loss_together_open_one_session() -> None:
    async def body() -> None:
        store = MemoryStore(real_host("test").clock)
        tree = renewing(store)
        store.expire(tree.session_id)
        async with TaskScope("test") as scope:
            for number in range(5):
                scope.spawn(tree.create(f"/{number}"), name="create")
        assert len(store.sessions) == 1
        assert tree.session_id == 2
        await tree.close()

    run(body())


def test_a_store_that_refuses_is_asked_again_only_after_a_pause() -> None:
    """A password that was rotated must not end a process, and must not be tried without a pause."""

    async def body() -> None:
        store, attempts, refuses = MemoryStore(real_host("test").clock), 0, True

        async def open_session() -> Tree:
            nonlocal attempts
            attempts += 1
            if refuses:
                raise AccessRefused("the user is refused")
            return MemoryTree(store)

        now = 1000.0
        host = real_host("test", seed=1)
        host = replace(host, clock=_SetClock(host.clock, lambda: now))
        tree = RenewingTree(MemoryTree(store), open_session, host)
        store.expire(tree.session_id)
        for _ in range(5):
            with pytest.raises(ConnectionLost, match="no metadata session: the user is refused"):
                await tree.exists("/a")
        assert attempts == 1
        now += REFUSED_PAUSE_S
        with pytest.raises(ConnectionLost):
            await tree.exists("/a")
        assert attempts == 2
        refuses = False
        now += REFUSED_PAUSE_S
        assert await tree.exists("/a") is None
        assert attempts == 3
        await tree.close()

    run(body())


class _SetClock:
    """A clock whose time the test sets."""

    def __init__(self, clock: Clock, now: Callable[[], float]) -> None:
        self._clock = clock
        self.monotonic = now
        self.elapsed = now

    def wall_us(self) -> int:
        return self._clock.wall_us()

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Timer:
        return self._clock.call_at(when, callback, *args)


def test_sessions_that_die_as_fast_as_they_are_opened_are_a_lost_connection() -> None:
    async def body() -> None:
        store = MemoryStore(real_host("test").clock)
        tree = renewing(store)
        store.fault = lambda session_id, operation, path: InjectedFault(expire=True)
        with pytest.raises(ConnectionLost):
            await tree.create("/a")
        store.fault = None
        await tree.create("/a")
        await tree.close()

    run(body())


def test_a_session_that_cannot_be_opened_now_is_tried_again_by_the_next_call() -> None:
    async def body() -> None:
        store = MemoryStore(real_host("test").clock)
        failures = [ConnectionLost("away")]

        async def open_session() -> Tree:
            if failures:
                raise failures.pop()
            return MemoryTree(store)

        tree = RenewingTree(MemoryTree(store), open_session, real_host("test"))
        store.expire(tree.session_id)
        with pytest.raises(ConnectionLost):
            await tree.create("/a")
        await tree.create("/a")
        await tree.close()

    run(body())


def test_a_watch_without_a_session_to_move_to_rests_between_its_attempts() -> None:
    """A caller that only notes a possible change waits for the watch again at once."""
    world = World(1)
    host = world.start_host("test")
    store = MemoryStore(host.port.clock)
    attempts: list[float] = []

    async def open_session() -> Tree:
        attempts.append(world.loop.time())
        if len(attempts) > 1 and attempts[-1] < 10.0:
            raise ConnectionLost("away")
        return MemoryTree(store)

    async def body() -> None:
        tree = RenewingTree(await open_session(), open_session, host.port)
        watch = tree.watch("/a")
        store.expire(tree.session_id)
        while world.loop.time() < 10.0:
            await watch.changed()
        await tree.create("/a")
        await watch.changed()
        watch.close()
        await tree.close()

    world.run(host.call(body()))
    world.close()
    assert 10 < len(attempts) < 30


def test_a_bookie_registers_again_when_its_session_was_lost() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        store = MemoryStore(host.clock)
        bookie = await ClusterMetadata.open(renewing(store), host, create=True)
        reader = await ClusterMetadata.open(MemoryTree(store), host)
        await bookie.bookies.register("b1", INFO)
        watch = reader.bookies.watch()
        store.expire(bookie.tree.session_id)
        await watch.changed()
        assert await reader.bookies.writable() == {}
        assert not await bookie.bookies.is_registered("b1")
        await bookie.bookies.register("b1", INFO, readonly=True)
        async with asyncio.timeout(3):
            while not await reader.bookies.readonly():
                await watch.changed()
        assert await bookie.bookies.is_registered("b1")
        assert await reader.bookies.writable() == {}
        await bookie.aclose()

    run(body())


def test_an_address_opens_a_tree_that_survives_the_loss_of_its_session(tmp_path: Path) -> None:
    async def body() -> None:
        host = real_host("test")
        uri = f"sqlite://{tmp_path}/metadata.db"
        tree, other = await open_tree(uri, host), await open_tree(uri, host)
        assert isinstance(tree, RenewingTree)
        await tree.create("/e", ephemeral=True)
        watch = tree.watch("/e")
        inner = tree._tree
        # As if another session had found this one dead.
        await inner._worker.run(inner._store.close_session)  # type: ignore[attr-defined]
        async with asyncio.timeout(5):
            while await tree.exists("/e") is not None:
                await watch.changed()
        await tree.create("/e", ephemeral=True)
        stat = await other.exists("/e")
        assert stat is not None
        assert stat.ephemeral_owner == tree.session_id
        await tree.close()
        assert await other.exists("/e") is None
        await other.close()
        await sleep(host.clock, 0)

    run(body())


def test_a_new_session_is_synced_before_its_first_read_is_trusted() -> None:
    async def body() -> None:
        store = MemoryStore(real_host("test").clock)
        sessions: list[LaggingTree] = []

        async def open_session() -> Tree:
            # The server of each new session has not seen the last change.
            sessions.append(LaggingTree(store))
            sessions[-1].behind["/a"] = b"old"
            return sessions[-1]

        tree = RenewingTree(MemoryTree(store), open_session, real_host("test"))
        await tree.create("/a", b"new")
        store.expire(tree.session_id)
        assert (await tree.get("/a"))[0] == b"new"
        assert len(sessions) == 1
        await tree.close()

    run(body())


def test_a_new_session_that_cannot_be_synced_is_closed() -> None:
    async def body() -> None:
        store = MemoryStore(real_host("test").clock)

        async def open_session() -> Tree:
            return MemoryTree(store)

        tree = RenewingTree(MemoryTree(store), open_session, real_host("test"))
        store.expire(tree.session_id)
        store.fault = lambda session_id, operation, path: (
            InjectedFault(raise_before=ConnectionLost("away")) if operation == "sync" else None
        )
        with pytest.raises(ConnectionLost):
            await tree.get("/")
        assert store.sessions == []
        store.fault = None
        assert await tree.exists("/none") is None
        await tree.close()

    run(body())
