"""BookKeeper's layout over the tree: clusters, ledgers, ids, bookies. Source: BookKeeper `AbstractZkLedgerManager`,
`ZkLedgerIdGenerator`, `LongZkLedgerIdGenerator`, `ZKRegistrationManager`."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Callable

import pytest

from tests.unit.metadata.lagging import LaggingTree
from tests.unit.metadata.layout_rig import ELSEWHERE, INFO, new_metadata
from tests.unit.metadata.stores import run
from triplicate.errors import (
    BadVersion,
    BookieUnavailable,
    ConfigError,
    ConnectionLost,
    FormatError,
    LedgerExists,
    NodeExists,
    NoSuchLedger,
)
from triplicate.metadata import (
    ClusterMetadata,
    Cookie,
    InjectedFault,
    MemoryStore,
    MemoryTree,
    bookie_service,
    decode_layout,
    encode_layout,
)
from triplicate.runtime import Host, real_host


class Cluster:
    """One store, and clients of it."""

    def __init__(self) -> None:
        self.store = MemoryStore(self.host("clock").clock)

    def host(self, name: str) -> Host:
        return real_host(name, seed=1)

    async def client(self, name: str, *, create: bool = True) -> ClusterMetadata:
        return await ClusterMetadata.open(MemoryTree(self.store), self.host(name), create=create)

    def lose(self, operation: str, times: int, *, applied: bool, path: str = "") -> Callable[[], int]:
        """Lose the connection at some operations; returns how many are still to be lost."""
        left = [times]

        def fault(session_id: int, name: str, at: str) -> InjectedFault | None:
            if name != operation or not at.startswith(path) or left[0] == 0:
                return None
            left[0] -= 1
            return InjectedFault(raise_after=ConnectionLost(at)) if applied else InjectedFault(raise_before=ConnectionLost(at))

        self.store.fault = fault
        return lambda: left[0]


def test_a_new_cluster_looks_as_bookkeeper_makes_it() -> None:
    async def body() -> None:
        cluster = Cluster()
        first = await cluster.client("one")
        nodes = cluster.store.dump()
        assert sorted(nodes) == [
            "/",
            "/ledgers",
            "/ledgers/INSTANCEID",
            "/ledgers/LAYOUT",
            "/ledgers/available",
            "/ledgers/available/readonly",
        ]
        assert nodes["/ledgers/LAYOUT"][0] == b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
        assert str(uuid.UUID(first.instance_id)) == first.instance_id == nodes["/ledgers/INSTANCEID"][0].decode()
        assert first.own_root == f"/triplicate/{first.instance_id}"
        second = await cluster.client("two", create=False)
        assert second.instance_id == first.instance_id

    run(body())


def test_of_many_that_make_a_cluster_at_once_all_find_the_same() -> None:
    async def body() -> None:
        for applied in (False, True):
            cluster = Cluster()
            cluster.lose("multi", 2, applied=applied)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(cluster.client(f"client-{number}")) for number in range(5)]
            assert len({task.result().instance_id for task in tasks}) == 1

    run(body())


def test_without_a_cluster_the_error_says_what_to_do() -> None:
    async def body() -> None:
        with pytest.raises(ConfigError, match="triplicate up"):
            await Cluster().client("one", create=False)

    run(body())


def test_a_cluster_under_a_root_made_by_hand_is_completed() -> None:
    async def body() -> None:
        cluster = Cluster()
        tree = MemoryTree(cluster.store)
        await tree.create("/deep/root/available", parents=True)
        opened = await ClusterMetadata.open(tree, cluster.host("x"), create=True, root="/deep/root")
        await opened.bookies.register("b1", INFO)
        assert "/deep/root/available/b1" in cluster.store.dump()

    run(body())


def test_layouts_of_every_manager_are_read_and_others_refused() -> None:
    for manager in ("hierarchical", "longhierarchical", "flat"):
        assert decode_layout(encode_layout(manager)).manager == manager
        assert decode_layout(f"1\n{manager}:1".encode()).manager == manager
    assert decode_layout(b"2\ndlshade.org.apache.bookkeeper.meta.FlatLedgerManagerFactory:1").manager == "flat"
    for data in (
        b"",
        b"2",
        b"3\n" + encode_layout()[2:],
        b"2\norg.example.Other:1",
        encode_layout()[:-1] + b"2",
        b"1\nms:1",
        b"\xff\n\xff",
    ):
        with pytest.raises(FormatError):
            decode_layout(data)


def test_a_ledger_that_another_client_has_just_made_is_found_by_a_server_that_is_behind() -> None:
    async def body() -> None:
        cluster = Cluster()
        maker = await cluster.client("a")
        await maker.ledgers.create(7, new_metadata())
        tree = LaggingTree(cluster.store)
        reader = await ClusterMetadata.open(tree, cluster.host("b"))
        tree.behind = {"/ledgers/00/0000/L0007": None}
        assert not await reader.ledgers.exists(7)
        assert (await reader.ledgers.get(7)).version == 0

    run(body())


def test_a_cluster_of_another_layout_than_asked_is_refused() -> None:
    async def body() -> None:
        cluster = Cluster()
        host = cluster.host("x")
        opened = await ClusterMetadata.open(MemoryTree(cluster.store), host, create=True, manager="longhierarchical")
        await opened.ledgers.create(5, new_metadata())
        assert "/ledgers/000/0000/0000/0000/L0005" in cluster.store.dump()
        with pytest.raises(ConfigError, match="longhierarchical"):
            await ClusterMetadata.open(MemoryTree(cluster.store), host, manager="hierarchical")
        with pytest.raises(ConfigError, match="nonsense"):
            await ClusterMetadata.open(MemoryTree(cluster.store), host, manager="nonsense")

    run(body())


def test_a_ledger_is_created_changed_by_compare_and_set_and_deleted() -> None:
    async def body() -> None:
        cluster = Cluster()
        ledgers = (await cluster.client("one")).ledgers
        created = await ledgers.create(12345, new_metadata())
        assert created.version == 0
        assert created.value.creator_token is not None
        assert await ledgers.get(12345) == created
        assert await ledgers.exists(12345)
        changed = await ledgers.update(12345, created.value.closed(7, 58), 0)
        assert changed.version == 1
        assert await ledgers.get(12345) == changed
        with pytest.raises(BadVersion):
            await ledgers.update(12345, created.value, 0)
        with pytest.raises(LedgerExists) as exists:
            await ledgers.create(12345, new_metadata())
        assert exists.value.ledger_id == 12345
        with pytest.raises(BadVersion):
            await ledgers.delete(12345, 0)
        await ledgers.delete(12345, 1)
        await ledgers.delete(12345)
        assert not await ledgers.exists(12345)
        with pytest.raises(NoSuchLedger) as missing:
            await ledgers.get(12345)
        assert missing.value.ledger_id == 12345
        with pytest.raises(NoSuchLedger):
            await ledgers.update(12345, created.value, 1)

    run(body())


def test_a_deletion_takes_the_parents_that_it_leaves_empty_and_no_others() -> None:
    async def body() -> None:
        cluster = Cluster()
        ledgers = (await cluster.client("one")).ledgers
        before = list(cluster.store.dump())
        for ledger_id in (1, 2, 10001, 2**40):
            await ledgers.create(ledger_id, new_metadata())
        await ledgers.delete(1)
        assert "/ledgers/00/0000/L0002" in cluster.store.dump()
        await ledgers.delete(2)
        assert "/ledgers/00/0000" not in cluster.store.dump()
        assert "/ledgers/00/0001/L0001" in cluster.store.dump()
        await ledgers.delete(10001)
        await ledgers.delete(2**40)
        assert list(cluster.store.dump()) == before

    run(body())


@pytest.mark.parametrize("applied", [False, True])
def test_a_create_whose_answer_is_lost_is_recognised_by_its_token(applied: bool) -> None:
    async def body() -> None:
        cluster = Cluster()
        ledgers = (await cluster.client("one")).ledgers
        left = cluster.lose("create", 3, applied=applied, path="/ledgers/00")
        created = await ledgers.create(1, new_metadata())
        cluster.store.fault = None
        assert await ledgers.get(1) == created
        assert created.version == 0
        assert left() == 0

    run(body())


def test_a_create_whose_answer_is_lost_does_not_take_anothers_ledger_for_its_own() -> None:
    async def body() -> None:
        cluster = Cluster()
        one, two = await cluster.client("one"), await cluster.client("two")
        theirs = await two.ledgers.create(1, new_metadata())
        for applied in (False, True):
            cluster.lose("create", 1, applied=applied, path="/ledgers/00")
            with pytest.raises(LedgerExists):
                await one.ledgers.create(1, new_metadata())
        assert await one.ledgers.get(1) == theirs

    run(body())


def test_a_connection_that_stays_lost_is_raised_after_some_attempts() -> None:
    async def body() -> None:
        cluster = Cluster()
        one = await cluster.client("one")
        cluster.lose("create", 1000, applied=False, path="/ledgers/00")
        with pytest.raises(ConnectionLost):
            await one.ledgers.create(1, new_metadata())

    run(body())


@pytest.mark.parametrize("applied", [False, True])
def test_an_update_whose_answer_is_lost_is_decided_by_reading_again(applied: bool) -> None:
    async def body() -> None:
        cluster = Cluster()
        ledgers = (await cluster.client("one")).ledgers
        created = await ledgers.create(1, new_metadata())
        cluster.lose("set", 1, applied=applied)
        changed = await ledgers.update(1, created.value.recovering(), 0)
        assert changed.version == 1
        assert await ledgers.get(1) == changed

    run(body())


def test_an_update_whose_answer_is_lost_does_not_take_anothers_change_for_its_own() -> None:
    async def body() -> None:
        cluster = Cluster()
        one, two = await cluster.client("one"), await cluster.client("two")
        created = await one.ledgers.create(1, new_metadata())
        await two.ledgers.update(1, created.value.closed(3, 3), 0)
        cluster.lose("set", 1, applied=False)
        with pytest.raises(BadVersion):
            await one.ledgers.update(1, created.value.closed(4, 4), 0)

    run(body())


def test_ids_are_listed_in_ascending_order_across_all_ranges() -> None:
    async def body() -> None:
        cluster = Cluster()
        one = await cluster.client("one")
        ids = [0, 1, 9999, 10000, 99999999, 100000000, 2147483646, 2147483647, 2147483648, 2**40, 2**63 - 1]
        for ledger_id in reversed(ids):
            await one.ledgers.create(ledger_id, new_metadata())
        await one.cookies.put(Cookie("b1", "/j", ("/l",), one.instance_id))
        await one.ledgers.new_id()
        await one.tree.create("/ledgers/underreplication/ledgers/0000", parents=True)
        await one.tree.create("/ledgers/00/0000/stranger")
        assert [ledger_id async for ledger_id in one.ledgers.ids()] == ids
        listing = one.ledgers.ids()
        assert await anext(listing) == 0
        await listing.aclose()
        assert [ledger_id async for ledger_id in listing] == []

    run(body())


def test_listing_passes_over_what_is_deleted_meanwhile() -> None:
    async def body() -> None:
        one = await Cluster().client("one")
        for ledger_id in (1, 20000, 30000):
            await one.ledgers.create(ledger_id, new_metadata())
        listing = one.ledgers.ids()
        assert await anext(listing) == 1
        await one.ledgers.delete(20000)
        assert [ledger_id async for ledger_id in listing] == [30000]

    run(body())


def test_a_watch_on_a_ledger_wakes_when_it_changes() -> None:
    async def body() -> None:
        cluster = Cluster()
        one, two = await cluster.client("one"), await cluster.client("two")
        created = await one.ledgers.create(1, new_metadata())
        watch = two.ledgers.watch(1)
        await one.ledgers.update(1, created.value.closed(0, 1), 0)
        await watch.changed()
        watch.close()

    run(body())


def test_new_ids_count_from_zero_without_gaps_and_leave_no_node() -> None:
    async def body() -> None:
        cluster = Cluster()
        one, two = await cluster.client("one"), await cluster.client("two")
        assert [await client.ledgers.new_id() for client in (one, two, one, two)] == [0, 1, 2, 3]
        assert [path for path in cluster.store.dump() if path.startswith("/ledgers/idgen/")] == []
        cluster.lose("create", 1, applied=True, path="/ledgers/idgen")
        assert await one.ledgers.new_id() == 5
        cluster.lose("delete", 1, applied=False, path="/ledgers/idgen")
        assert await one.ledgers.new_id() == 6

    run(body())


def test_new_ids_become_long_for_every_client_when_the_short_ones_are_used_up() -> None:
    async def body() -> None:
        cluster = Cluster()
        one, two = await cluster.client("one"), await cluster.client("two")
        await one.ledgers.new_id()
        cluster.store._node("/ledgers/idgen").created_children = 2147483646
        assert await one.ledgers.new_id() == 2147483646
        assert await one.ledgers.new_id() == 1 << 32
        assert await two.ledgers.new_id() == (1 << 32) + 1
        cluster.store._node("/ledgers/idgen").created_children = 2**31 + 5
        assert await two.ledgers.new_id() == (1 << 32) + 2
        cluster.store._node("/ledgers/idgen-long/HOB-0000000001").created_children = 2147483647
        assert await one.ledgers.new_id() == 2 << 32
        for high in (3, 4, 5):
            await one.tree.create(f"/ledgers/idgen-long/HOB-{high:010d}")
        assert await two.ledgers.new_id() == 5 << 32
        assert (await one.tree.children("/ledgers/idgen-long"))[0] == [f"HOB-{high:010d}" for high in (3, 4, 5)]

    run(body())


def test_bookies_come_and_go_with_their_sessions() -> None:
    async def body() -> None:
        cluster = Cluster()
        one, two, reader = [await cluster.client(name) for name in ("one", "two", "reader")]
        watch = reader.bookies.watch()
        await two.bookies.register("b2", INFO)
        await watch.changed()
        await one.bookies.register("b1", INFO)
        await one.bookies.register("b1", INFO)
        assert list(await reader.bookies.writable()) == ["b1", "b2"]
        assert await reader.bookies.resolve("b1") == INFO
        assert await one.bookies.is_registered("b1")
        assert not await one.bookies.is_registered("b2")
        await one.aclose()
        await watch.changed()
        assert list(await reader.bookies.writable()) == ["b2"]
        with pytest.raises(BookieUnavailable) as gone:
            await reader.bookies.resolve("b1")
        assert gone.value.bookie_id == "b1"
        await two.bookies.unregister("b2")
        assert await reader.bookies.writable() == {}
        watch.close()

    run(body())


def test_a_bookie_that_registers_again_with_another_address_is_noticed() -> None:
    async def body() -> None:
        cluster = Cluster()
        one, reader = await cluster.client("one"), await cluster.client("reader")
        await one.bookies.register("b1", INFO)
        watch = reader.bookies.watch()
        moved = bookie_service("127.0.0.1", 4000)
        await one.bookies.register("b1", moved)
        await watch.changed()
        assert await reader.bookies.resolve("b1") == moved

    run(body())


def test_between_the_lists_a_bookie_is_in_both_for_a_moment_and_never_in_neither() -> None:
    async def body() -> None:
        cluster = Cluster()
        one, reader = await cluster.client("one"), await cluster.client("reader")
        await one.bookies.register("b1", INFO)
        seen: list[tuple[bool, bool]] = []
        writable, readonly = "/ledgers/available/b1", "/ledgers/available/readonly/b1"

        def look(session_id: int, operation: str, path: str) -> InjectedFault | None:
            nodes = cluster.store.dump()
            seen.append((writable in nodes, readonly in nodes))
            return None

        cluster.store.fault = look
        await one.bookies.set_readonly("b1", INFO, True)
        assert (await reader.bookies.writable(), list(await reader.bookies.readonly())) == ({}, ["b1"])
        assert await reader.bookies.resolve("b1") == INFO
        await one.bookies.set_readonly("b1", INFO, False)
        assert (list(await reader.bookies.writable()), await reader.bookies.readonly()) == (["b1"], {})
        assert (False, False) not in seen
        assert (True, True) in seen

    run(body())


def test_a_bookie_in_both_lists_takes_no_new_ledgers() -> None:
    async def body() -> None:
        cluster = Cluster()
        one, reader = await cluster.client("one"), await cluster.client("reader")
        await one.bookies.register("b1", INFO)
        await one.tree.create("/ledgers/available/readonly/b1", b"", ephemeral=True)
        assert await reader.bookies.writable() == {}

    run(body())


@pytest.mark.parametrize("readonly", [False, True])
def test_registering_replaces_the_node_of_a_former_life_at_the_same_address(readonly: bool) -> None:
    """Sessions of killed bookies may last: each election among ZooKeeper's servers grants them their whole time once more."""

    async def body() -> None:
        cluster = Cluster()
        dead, alive, reader = [await cluster.client(name) for name in ("dead", "alive", "reader")]
        await dead.bookies.register("b1", INFO, readonly=readonly)
        watch = reader.bookies.watch()
        await (reader.bookies.readonly() if readonly else reader.bookies.writable())
        await alive.bookies.register("b1", INFO, readonly=readonly, stale_wait_s=0.0)
        await watch.changed()
        assert await alive.bookies.is_registered("b1")
        assert not await dead.bookies.is_registered("b1")
        await dead.aclose()
        assert await reader.bookies.resolve("b1") == INFO

    run(body())


def test_registering_waits_for_the_node_of_a_previous_life_at_another_address() -> None:
    async def body() -> None:
        cluster = Cluster()
        dead, alive = await cluster.client("dead"), await cluster.client("alive")
        await dead.bookies.register("b1", INFO)
        with pytest.raises(NodeExists, match="b1"):
            await alive.bookies.register("b1", ELSEWHERE, stale_wait_s=0.05)
        registering = asyncio.ensure_future(alive.bookies.register("b1", ELSEWHERE))
        await asyncio.sleep(0.05)
        assert not registering.done()
        await dead.aclose()
        await registering
        assert await alive.bookies.is_registered("b1")

    run(body())


@pytest.mark.parametrize("applied", [False, True])
def test_registering_survives_a_lost_connection(applied: bool) -> None:
    async def body() -> None:
        cluster = Cluster()
        one = await cluster.client("one")
        cluster.lose("create", 2, applied=applied, path="/ledgers/available/b1")
        await one.bookies.register("b1", INFO)
        assert await one.bookies.is_registered("b1")

    run(body())


def test_a_registration_that_cannot_be_read_does_not_hide_the_others() -> None:
    async def body() -> None:
        cluster = Cluster()
        one = await cluster.client("one")
        await one.bookies.register("b1", INFO)
        await one.tree.create("/ledgers/available/b2", b"\xff\xff", ephemeral=True)
        await one.tree.create("/ledgers/available/not valid", b"", ephemeral=True)
        await one.tree.create("/ledgers/available/10.0.0.1:3181", b"", ephemeral=True)
        assert list(await one.bookies.writable()) == ["10.0.0.1:3181", "b1"]
        with pytest.raises(FormatError):
            await one.bookies.resolve("b2")

    run(body())


def test_a_registration_that_cannot_be_read_is_one_all_the_same() -> None:
    async def body() -> None:
        cluster = Cluster()
        one = await cluster.client("one")
        await one.bookies.register("b1", INFO)
        await one.bookies.register("b3", INFO, readonly=True)
        await one.bookies.register("b4", INFO)
        for path in ("available/b2", "available/readonly/b4", "available/readonly/b5"):
            await one.tree.create(f"/ledgers/{path}", b"\xff\xff", ephemeral=True)
        found = await one.bookies.registered()
        assert (list(found.writable), list(found.readonly), list(found.unreadable)) == (["b1"], ["b3", "b4"], ["b2", "b5"])
        assert found.names == ("b1", "b2", "b3", "b4", "b5")
        assert "the registration of bookie b2 is not a BookieServiceInfo" in found.unreadable["b2"]
        assert "b2" in found
        assert "b6" not in found

    run(body())


def test_cookies_are_stored_replaced_and_forgotten() -> None:
    async def body() -> None:
        cluster = Cluster()
        one = await cluster.client("one")
        cookie = Cookie("b1", "/j", ("/l",), one.instance_id)
        assert await one.cookies.get("b1") is None
        assert await one.cookies.bookie_ids() == []
        cluster.lose("create", 1, applied=True, path="/ledgers/cookies")
        await one.cookies.put(cookie)
        assert await one.cookies.get("b1") == (cookie, 0)
        other = dataclasses.replace(cookie, journal_dir="/other")
        with pytest.raises(NodeExists):
            await one.cookies.put(other)
        await one.cookies.put(other, 0)
        with pytest.raises(BadVersion):
            await one.cookies.put(cookie, 0)
        assert await one.cookies.get("b1") == (other, 1)
        assert await one.cookies.bookie_ids() == ["b1"]
        await one.cookies.delete("b1")
        await one.cookies.delete("b1")
        assert await one.cookies.get("b1") is None

    run(body())
