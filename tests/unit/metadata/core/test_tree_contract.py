"""The contract of every driver of the metadata tree. Source: `triplicate.metadata.core.tree`; ZooKeeper Programmer's Guide."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.unit.metadata.stores import DRIVERS, OpenSession, run, sessions
from triplicate.errors import ArgumentError, BadVersion, MetadataError, NodeExists, NoNode, NotEmpty, SessionExpired
from triplicate.metadata import CheckVersion, CreateNode, DeleteNode, SetData, Tree, TreeOperation, Watch

pytestmark = pytest.mark.parametrize("driver", DRIVERS)

SOON_S = 3.0


async def wakes(watch: Watch) -> None:
    async with asyncio.timeout(SOON_S):
        await watch.changed()


async def armed(tree: Tree, path: str) -> None:
    """Read the path: a change by another session wakes a watch for certain only if it comes after a read that began after the watch."""
    await tree.exists(path)


async def sleeps(watch: Watch, quiet_s: float = 0.15) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(quiet_s):
            await watch.changed()


def test_a_node_is_created_read_changed_and_deleted(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            assert await tree.create("/a", b"one") == "/a"
            data, stat = await tree.get("/a")
            assert (data, stat.version, stat.cversion, stat.ephemeral_owner) == (b"one", 0, 0, 0)
            assert stat.ctime_ms == stat.mtime_ms > 1_600_000_000_000
            changed = await tree.set("/a", b"two", 0)
            assert changed.version == 1
            assert await tree.get("/a") == (b"two", changed)
            assert changed.ctime_ms == stat.ctime_ms
            assert await tree.exists("/a") == changed
            await tree.delete("/a", 1)
            assert await tree.exists("/a") is None

    run(body())


def test_what_is_missing_or_there_already_is_an_error_that_names_the_path(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.create("/here")
            with pytest.raises(NodeExists, match="/here"):
                await tree.create("/here")
            with pytest.raises(NodeExists, match="/"):
                await tree.create("/")
            with pytest.raises(NoNode, match="/missing"):
                await tree.create("/missing/child")
            for operation in (tree.get, tree.delete, tree.children):
                with pytest.raises(NoNode, match="/missing"):
                    await operation("/missing")
            with pytest.raises(NoNode, match="/missing"):
                await tree.set("/missing", b"")

    run(body())


def test_a_version_that_does_not_match_changes_nothing(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.create("/a", b"zero")
            await tree.set("/a", b"one")
            for version in (0, 2):
                with pytest.raises(BadVersion, match="/a"):
                    await tree.set("/a", b"wrong", version)
                with pytest.raises(BadVersion, match="/a"):
                    await tree.delete("/a", version)
            data, stat = await tree.get("/a")
            assert (data, stat.version) == (b"one", 1)

    run(body())


def test_a_node_with_children_is_not_deleted_and_the_root_never(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.create("/a/b", parents=True)
            with pytest.raises(NotEmpty, match="/a"):
                await tree.delete("/a")
            with pytest.raises(ArgumentError):
                await tree.delete("/")

    run(body())


@pytest.mark.parametrize("path", ["", "a", "a/b", "/a/", "//a", "/a//b", "/a/./b", "/../b", "/a\0b"])
def test_a_path_that_is_none_is_refused(driver: str, tmp_path: Path, path: str) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            with pytest.raises(ArgumentError):
                await tree.create(path)
            with pytest.raises(ArgumentError):
                tree.watch(path)

    run(body())


def test_data_beyond_a_megabyte_is_refused(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.create("/a", b"x" * 1_000_000)
            with pytest.raises(ArgumentError, match="/a"):
                await tree.set("/a", b"x" * 1_000_001)
            assert (await tree.get("/a"))[0] == b"x" * 1_000_000

    run(body())


def test_children_are_sorted_and_counted_by_the_cversion(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.create("/a")
            for name in ("z", "B", "a", "é", "a-b", "a/c"):
                await tree.create(f"/a/{name}", parents=True)
            names, stat = await tree.children("/a")
            assert names == ["B", "a", "a-b", "z", "é"]
            assert (stat.cversion, stat.version) == (5, 0)
            await tree.delete("/a/z")
            names, stat = await tree.children("/a")
            assert (names, stat.cversion) == (["B", "a", "a-b", "é"], 6)
            assert (await tree.children("/"))[0] == ["a"]

    run(body())


def test_parents_are_made_on_demand_empty_and_persistent(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.create("/a/b/c", b"leaf", parents=True, ephemeral=True)
            data, stat = await tree.get("/a/b")
            assert (data, stat.ephemeral_owner) == (b"", 0)
            assert (await tree.get("/a/b/c"))[1].ephemeral_owner == tree.session_id

    run(body())


def test_sequential_names_count_every_creation_under_the_parent(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            first = await tree.create("/q/n-", sequential=True, parents=True)
            assert first == "/q/n-0000000000"
            await tree.delete(first)
            await tree.create("/q/plain")
            assert await tree.create("/q/other-", sequential=True) == "/q/other-0000000002"
            assert await tree.create("/q/", sequential=True) == "/q/0000000003"
            with pytest.raises(NoNode):
                await tree.create("/none/n-", sequential=True)

    run(body())


def test_an_ephemeral_node_has_an_owner_and_no_children(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree, other = await open_session(), await open_session()
            assert tree.session_id not in (0, other.session_id)
            await tree.create("/e", ephemeral=True)
            stat = await other.exists("/e")
            assert stat is not None
            assert stat.ephemeral_owner == tree.session_id
            with pytest.raises(MetadataError):
                await tree.create("/e/child")

    run(body())


def test_ephemeral_nodes_vanish_when_their_session_closes(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree, other = await open_session(), await open_session()
            await tree.create("/d/mine", ephemeral=True, parents=True)
            await other.create("/d/theirs", ephemeral=True)
            await tree.create("/d/stays")
            _, before = await other.children("/d")
            watch = other.watch("/d")
            await armed(other, "/d")
            await tree.close()
            await tree.close()
            await wakes(watch)
            names, after = await other.children("/d")
            assert names == ["stays", "theirs"]
            assert after.cversion == before.cversion + 1

    run(body())


def test_a_closed_session_does_nothing_more(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            watch = tree.watch("/a")
            waiting = asyncio.ensure_future(watch.changed())
            await asyncio.sleep(0)
            await tree.close()
            with pytest.raises(SessionExpired):
                await waiting
            with pytest.raises(SessionExpired):
                await watch.changed()
            with pytest.raises(SessionExpired):
                await tree.create("/a")
            with pytest.raises(SessionExpired):
                await tree.watch("/a").changed()

    run(body())


def test_a_read_after_a_sync_sees_what_others_did_before_it(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            writer, reader = await open_session(), await open_session()
            await reader.sync("/nowhere/yet")
            for number in range(5):
                await writer.create(f"/a/{number}", parents=True)
                await reader.sync("/a")
                assert await reader.exists(f"/a/{number}") is not None
            await reader.close()
            with pytest.raises(SessionExpired):
                await reader.sync("/a")

    run(body())


def test_multi_applies_all_in_order(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.create("/a", b"one")
            await tree.multi([])
            await tree.multi(
                [
                    CheckVersion("/a", 0),
                    CreateNode("/b"),
                    CreateNode("/b/c", b"new"),
                    SetData("/a", b"two", 0),
                    SetData("/a", b"three", 1),
                    CreateNode("/gone"),
                    DeleteNode("/gone", 0),
                    CreateNode("/e", ephemeral=True),
                ]
            )
            data, stat = await tree.get("/a")
            assert (data, stat.version) == (b"three", 2)
            assert (await tree.get("/b/c"))[0] == b"new"
            assert await tree.exists("/gone") is None
            assert (await tree.get("/e"))[1].ephemeral_owner == tree.session_id

    run(body())


def test_multi_makes_and_deletes_a_node_with_those_beneath_it(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.multi([CreateNode("/a"), CreateNode("/a/id"), CreateNode("/a/id/one"), CheckVersion("/a/id/one")])
            with pytest.raises(NotEmpty):
                await tree.multi([DeleteNode("/a/id/one"), DeleteNode("/a")])
            with pytest.raises(NoNode, match="/a/id/other"):
                await tree.multi([SetData("/a", b"late", 0), CheckVersion("/a/id/other")])
            assert (await tree.get("/a"))[0] == b""
            await tree.multi([DeleteNode("/a/id/one"), DeleteNode("/a/id"), DeleteNode("/a")])
            assert await tree.exists("/a") is None

    run(body())


def test_multi_applies_nothing_when_one_operation_fails(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.create("/a", b"one")
            before = [await tree.get("/a"), await tree.children("/")]
            steps: list[TreeOperation] = [CreateNode("/b"), SetData("/a", b"two"), CreateNode("/b/n"), DeleteNode("/b/n")]
            failures: list[tuple[TreeOperation, type[Exception]]] = [
                (CheckVersion("/a", 7), BadVersion),
                (CheckVersion("/none"), NoNode),
                (DeleteNode("/b", 3), BadVersion),
                (CreateNode("/b"), NodeExists),
                (SetData("/none", b""), NoNode),
                (DeleteNode("/"), ArgumentError),
            ]
            for failing, error in failures:
                with pytest.raises(error, match=re.escape(failing.path)):
                    await tree.multi([*steps, failing, CreateNode("/never")])
                assert [await tree.get("/a"), await tree.children("/")] == before
            assert await tree.create("/s-", sequential=True) == "/s-0000000001"

    run(body())


def test_a_watch_wakes_for_its_node_and_its_children_only(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree, other = await open_session(), await open_session()
            for by in (tree, other):
                root = f"/w{by.session_id}"
                watch, exact = tree.watch(root), tree.watch(f"{root}/child")
                await armed(tree, root)
                await by.create(root)
                await wakes(watch)
                await by.set(root, b"data")
                await wakes(watch)
                await by.create(f"{root}/child")
                await wakes(watch)
                await wakes(exact)
                await by.set(f"{root}/child", b"data")
                await wakes(exact)
                await by.create(f"{root}/child/deeper")
                await wakes(exact)
                await sleeps(watch)
                await by.delete(f"{root}/child/deeper")
                await by.delete(f"{root}/child")
                await wakes(watch)
                await wakes(exact)
                watch.close()
                exact.close()
                watch.close()

    run(body())


def test_a_change_between_making_a_watch_and_waiting_is_not_lost(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree, other = await open_session(), await open_session()
            await tree.create("/a")
            watch = tree.watch("/a")
            await tree.get("/a")
            await other.set("/a", b"changed")
            await asyncio.sleep(0.1)
            await wakes(watch)
            assert (await tree.get("/a"))[0] == b"changed"

    run(body())


def test_a_node_deleted_and_made_again_wakes_a_watch(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree, other = await open_session(), await open_session()
            await tree.create("/a", b"same")
            watch = tree.watch("/a")
            await tree.get("/a")
            await other.multi([DeleteNode("/a"), CreateNode("/a", b"same")])
            await wakes(watch)

    run(body())


def test_a_wake_up_meant_for_a_cancelled_waiter_is_kept(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            watch = tree.watch("/a")
            waiter = asyncio.ensure_future(watch.changed())
            await asyncio.sleep(0)
            waiter.cancel()
            await tree.create("/a")
            with pytest.raises(asyncio.CancelledError):
                await waiter
            await wakes(watch)

    run(body())


def test_a_cancelled_change_that_was_applied_still_wakes_our_own_watches(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            tree = await open_session()
            await tree.create("/a")
            watch = tree.watch("/a")
            await tree.get("/a")
            change = asyncio.ensure_future(tree.set("/a", b"new"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            change.cancel()
            with pytest.raises(asyncio.CancelledError):
                await change
            if (await tree.get("/a"))[0] == b"new":
                await wakes(watch)

    run(body())


def test_of_two_sessions_that_set_the_same_version_one_wins(driver: str, tmp_path: Path) -> None:
    async def increment(tree: Tree, times: int) -> None:
        for _ in range(times):
            while True:
                data, stat = await tree.get("/counter")
                try:
                    await tree.set("/counter", str(int(data) + 1).encode(), stat.version)
                except BadVersion:
                    continue
                break

    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            trees = [await open_session() for _ in range(3)]
            await trees[0].create("/counter", b"0")
            async with asyncio.TaskGroup() as group:
                for tree in trees:
                    group.create_task(increment(tree, 15))
            data, stat = await trees[0].get("/counter")
            assert (data, stat.version) == (b"45", 45)

    run(body())


def test_sequential_names_of_concurrent_sessions_differ(driver: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with sessions(driver, tmp_path) as open_session:
            trees = [await open_session() for _ in range(3)]
            made: list[str] = []

            async def make(tree: Tree) -> None:
                made.extend([await tree.create("/ids/ID-", ephemeral=True, sequential=True, parents=True) for _ in range(10)])

            async with asyncio.TaskGroup() as group:
                for tree in trees:
                    group.create_task(make(tree))
            assert sorted(made) == [f"/ids/ID-{number:010d}" for number in range(30)]

    run(body())


def test_operations_of_one_session_take_effect_in_the_order_of_their_calls(driver: str, tmp_path: Path) -> None:
    async def body(open_session: OpenSession) -> None:
        tree = await open_session()
        await tree.create("/a", b"start")
        async with asyncio.TaskGroup() as group:
            changes = [group.create_task(tree.set("/a", str(number).encode(), number)) for number in range(20)]
        assert [change.result().version for change in changes] == list(range(1, 21))

    async def whole() -> None:
        async with sessions(driver, tmp_path) as open_session:
            await body(open_session)

    run(whole())
