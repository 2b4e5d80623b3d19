from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import triplicate
from triplicate.config import RespSettings, SecuritySettings
from triplicate.embedded import EmbeddedStore
from triplicate.errors import ArgumentError, ConfigError, EnvironmentFault, HandleClosed, NoSuchStore, StoreUnavailable
from triplicate.kv import (
    ANY,
    NO_EXPIRY,
    Add,
    ChangeKind,
    DeadlineWhen,
    Expiry,
    KeyRange,
    Put,
    StoreBatch,
    VersionIs,
    When,
    bounded,
    session,
)
from triplicate.testing import MemoryCluster


def play(scene: Callable[[EmbeddedStore, MemoryCluster], Awaitable[None]]) -> None:
    async def body() -> None:
        async with asyncio.timeout(60), MemoryCluster() as cluster:
            await scene(await cluster.key_value(), cluster)

    asyncio.run(body())


def test_values_are_put_read_at_every_level_and_deleted() -> None:
    async def scene(store: EmbeddedStore, cluster: MemoryCluster) -> None:
        outcome, position = await store.put(b"a", b"1")
        assert (outcome.applied, outcome.version, store.position) == (True, position, position)
        assert not (await store.put(b"a", b"2", when=When.IF_ABSENT))[0].applied
        assert (await store.put(b"a", b"2", returns_old=True))[0].value == b"1"
        for level in (session(position), bounded(10.0), ANY):
            assert (await store.get(b"a", level)).value == b"2"
        found = await store.get_many([b"b", b"a"])
        assert [record and record.value for record in found.records] == [None, b"2"]
        assert (await store.delete(b"a", b"b"))[0] == 1
        gone = await store.get(b"a")
        assert (gone.value, gone.record, (await store.count()).number) == (None, None, 0)
        with pytest.raises(ArgumentError, match="a key has 1 to"):
            await store.put(b"", b"")

    play(scene)


def test_a_value_is_replaced_only_by_those_who_know_it() -> None:
    async def scene(store: EmbeddedStore, cluster: MemoryCluster) -> None:
        assert await store.compare_and_set(b"a", None, b"1")
        assert not await store.compare_and_set(b"a", None, b"2")
        assert not await store.compare_and_set(b"a", b"2", b"3")
        assert await store.compare_and_set(b"a", b"1", b"2", expiry=Expiry(after_ms=60_000))
        found = await store.get(b"a")
        assert found.record is not None
        assert (found.value, 0 < found.record.deadline_ms - found.time_ms <= 60_000) == (b"2", True)
        batch = StoreBatch([Put(b"a", b"3"), Add(b"n", 1)], [VersionIs(b"a", found.record.version)])
        assert (await store.execute(batch)).held
        assert not (await store.execute(batch)).held
        assert await store.compare_and_set(b"a", b"3", None)
        assert [(item.key, item.record.value) async for item in store.items()] == [(b"n", b"1")]

    play(scene)


def test_deadlines_are_set_and_removed() -> None:
    async def scene(store: EmbeddedStore, cluster: MemoryCluster) -> None:
        await store.put(b"a", b"1")
        assert not await store.expire(b"a", Expiry(after_ms=60_000), DeadlineWhen.IF_SOME)
        assert await store.expire(b"a", Expiry(after_ms=60_000))
        assert await store.expire(b"a", NO_EXPIRY)
        assert not await store.expire(b"b", Expiry(after_ms=60_000))
        assert (await store.get(b"a")).value == b"1"
        assert await store.expire(b"a", Expiry(at_ms=1))
        assert (await store.get(b"a")).value is None

    play(scene)


def test_the_keys_of_a_range_are_read_a_page_at_a_time() -> None:
    async def scene(store: EmbeddedStore, cluster: MemoryCluster) -> None:
        await store.execute(StoreBatch([Put(b"%03d" % number, b"x") for number in range(250)]))
        await store.put(b"a", b"y")
        assert [key async for key, _ in store.items(page_keys=100)] == [*(b"%03d" % number for number in range(250)), b"a"]
        assert [key async for key, _ in store.items(KeyRange.prefix(b"11"), ANY, page_keys=3)] == [b"11%d" % number for number in range(10)]
        page = await store.scan(KeyRange(b"248", b"b"), 2, with_values=False)
        assert ([item.key for item in page.items], page.items[0].record.value) == ([b"248", b"249"], b"")
        assert page.cursor is not None
        assert [item.key for item in (await store.scan(KeyRange(b"248", b"b").from_cursor(page.cursor))).items] == [b"a"]

    play(scene)


def test_a_prefix_is_watched_from_a_position_on() -> None:
    async def scene(store: EmbeddedStore, cluster: MemoryCluster) -> None:
        _, position = await store.put(b"a1", b"1")
        await store.put(b"b1", b"1")
        await store.delete(b"a1")
        async with await store.watch(b"a", position) as watch:
            assert [change.kind for change in await anext(watch)] == [ChangeKind.DELETE]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await anext(watch)
            await store.put(b"a2", b"2")
            assert [(change.key, change.value) for change in await anext(watch)] == [(b"a2", b"2")]
            waits = asyncio.ensure_future(anext(watch))
            await asyncio.sleep(0)
        with pytest.raises(StopAsyncIteration):
            await waits

    play(scene)


def test_a_folder_keeps_its_store_beside_its_database(tmp_path: Path) -> None:
    async def body() -> None:
        folder = tmp_path / "app"
        async with asyncio.timeout(60), triplicate.key_value(folder) as store:
            assert (store.is_leader, store.address, store.leader) == (True, None, None)
            await store.put(b"a", b"kept")
            with pytest.raises(EnvironmentFault, match="in use by this process"):
                async with triplicate.key_value(os.fspath(folder)):
                    pass
        with pytest.raises(HandleClosed):
            await store.get(b"a")
        await store.aclose()
        async with asyncio.timeout(60), triplicate.database(folder) as database:
            await database.execute("create table t(a)")
            async with triplicate.key_value(database.node, create=False) as store:
                assert (await store.get(b"a")).value == b"kept"
                async with triplicate.key_value(database.node, "other") as other:
                    assert (await other.count()).number == 0
            with pytest.raises(HandleClosed, match="was closed"):
                await store.get(b"a")
            await database.execute("insert into t values (1)")
            with pytest.raises(NoSuchStore):
                async with triplicate.key_value(database.node, "none", create=False):
                    pass
            with pytest.raises(ArgumentError, match="the node is open"):
                triplicate.key_value(database.node, port=0)
            node = database.node
        with pytest.raises(HandleClosed):
            async with triplicate.key_value(node):
                pass

    asyncio.run(body())


def test_a_change_in_a_folder_is_synced_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fdatasync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    async def body() -> None:
        async with asyncio.timeout(60), triplicate.key_value(tmp_path / "app") as store:
            for change in (store.put(b"a", b"1"), store.compare_and_set(b"a", b"1", b"2"), store.delete(b"a")):
                synced.clear()
                await change
                assert any(path.endswith(".journal") for path in synced), change

    monkeypatch.setattr(os, "fdatasync", noted)
    asyncio.run(body())


def test_a_store_that_was_dropped_says_so() -> None:
    async def scene(store: EmbeddedStore, cluster: MemoryCluster) -> None:
        await cluster.drop_key_value(store.name)
        with pytest.raises(StoreUnavailable, match="was dropped"):
            await store.get(b"a")

    play(scene)


def test_clients_of_redis_reach_a_store_that_has_a_port() -> None:
    import redis.asyncio

    async def body() -> None:
        async with asyncio.timeout(60), triplicate.key_value("memory:", "carts", port=0) as store:
            assert store.address is not None
            host, port = store.address
            async with redis.asyncio.Redis(host=host, port=port, username="carts", password="any") as client:
                await client.set("a", "1")
            assert (await store.get(b"a")).value == b"1"

    asyncio.run(body())


def test_a_port_that_is_in_use_is_named_and_the_database_beside_goes_on() -> None:
    async def body() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            resp = RespSettings(serve=True, port=taken.getsockname()[1])
            async with asyncio.timeout(60), triplicate.database("memory:", resp=resp) as database:
                with pytest.raises(EnvironmentFault, match=r"choose another resp\.port"):
                    async with triplicate.key_value(database.node):
                        pass
                assert (await database.execute("select 1")).value == 1
                taken.close()
                async with triplicate.key_value(database.node) as store:
                    assert store.address == ("127.0.0.1", resp.port)

    asyncio.run(body())


def test_a_store_whose_opening_is_given_up_is_opened_again() -> None:
    async def scene(store: EmbeddedStore, cluster: MemoryCluster) -> None:
        for _ in range(2):
            opening = asyncio.ensure_future(EmbeddedStore.open(cluster.node, "other", create=True, limit_s=30, shares_node=True))
            await asyncio.sleep(0)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
        other = await cluster.key_value("other")
        assert (await other.put(b"a", b"1"))[0].applied

    play(scene)


def test_a_port_without_protection_is_refused_where_security_is_required() -> None:
    async def body() -> None:
        with pytest.raises(ConfigError, match=r"node\.tls[\s\S]*resp\.users_file"):
            async with triplicate.key_value("memory:", port=0, security=SecuritySettings(required=True)):
                pass
        with pytest.raises(ConfigError, match=r"resp\.users_file"):
            async with triplicate.key_value("memory:", resp=RespSettings(serve=True, users_file="users")):
                pass

    asyncio.run(body())


def test_the_missing_package_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        with pytest.raises(EnvironmentFault, match="pip install"):
            async with triplicate.key_value("memory:"):
                pass

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    asyncio.run(body())
