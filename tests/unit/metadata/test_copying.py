"""Moving a cluster's metadata between stores. Source: BookKeeper `LongZkLedgerIdGenerator` for where new ids come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.unit.metadata.layout_rig import INFO, new_metadata
from tests.unit.metadata.stores import fresh_servers, run
from tests.zookeeper.server import shared_server
from triplicate.cli.main import cli
from triplicate.errors import ConfigError, CorruptionError
from triplicate.metadata import (
    ClusterMetadata,
    Cookie,
    CopyReport,
    InjectedFault,
    MemoryStore,
    MemoryTree,
    SqliteTree,
    Tree,
    copy_metadata,
    open_cluster,
    own_paths,
)
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
from triplicate.runtime import real_host

IDS = [0, 1, 2, 10_000, 123_456]


def host() -> Any:
    return real_host("copy", seed=1)


async def filled(tree: Tree, manager: str | None = None, ids: list[int] = IDS) -> ClusterMetadata:
    """A cluster with something of everything."""
    cluster = await ClusterMetadata.open(tree, host(), create=True, manager=manager)
    for ledger_id in ids:
        await cluster.ledgers.create(ledger_id, new_metadata())
    await cluster.cookies.put(Cookie("b1", "/j", ("/l",), cluster.instance_id))
    await cluster.tree.create(own_paths.log_path(cluster.own_root, "orders"), b"head", parents=True)
    await cluster.tree.create(own_paths.page_path(cluster.own_root, "orders", 1), b"x" * 300_000, parents=True)
    await cluster.tree.create(own_paths.page_path(cluster.own_root, "orders", 2), b"y" * 300_000)
    await cluster.tree.create(f"{cluster.own_root}/subscriptions/orders/mine", b"7", parents=True)
    await cluster.tree.create("/ledgers/underreplication/ledgers/0000", parents=True)
    return cluster


async def dump(tree: Tree, path: str, *, but: tuple[str, ...] = ("idgen", "idgen-long")) -> dict[str, bytes]:
    """Every node from `path` down, without the id generators."""
    nodes = {path: (await tree.get(path))[0]}
    for name in (await tree.children(path))[0]:
        if name not in but:
            nodes.update(await dump(tree, f"{path.rstrip('/')}/{name}", but=but))
    return nodes


async def copied(source: ClusterMetadata, target: Tree, root: str = "/ledgers", **options: Any) -> tuple[CopyReport, ClusterMetadata]:
    report = await copy_metadata(source, target, host(), root, **options)
    return report, await ClusterMetadata.open(target, host(), root=root)


def test_from_a_file_to_zookeeper_and_back_everything_is_the_same(tmp_path: Path) -> None:
    async def body() -> None:
        source = await filled(await SqliteTree.open(f"{tmp_path}/metadata.db", host()))
        await source.tree.create("/ledgers/available/gone", ephemeral=True)
        nodes = await dump(source.tree, "/ledgers") | await dump(source.tree, "/triplicate")
        del nodes["/ledgers/available/gone"]
        report, there = await copied(source, await ZooKeeperTree.open(await fresh_servers(), host()), force=True)
        assert await dump(there.tree, "/ledgers") | await dump(there.tree, "/triplicate") == nodes
        assert there.instance_id == source.instance_id == report.instance_id
        assert report.nodes == report.verified == len(nodes) - 1, "the node above ours is nobody's"
        assert (report.bytes, report.ephemerals_left_out) == (sum(map(len, nodes.values())), 1)
        assert (report.ledgers, report.greatest_ledger_id) == (len(IDS), IDS[-1])
        assert await there.ledgers.get(123_456) == await source.ledgers.get(123_456)
        _, back = await copied(there, MemoryTree(MemoryStore(host().clock)))
        assert await dump(back.tree, "/ledgers") | await dump(back.tree, "/triplicate") == nodes
        _, file = await copied(back, await SqliteTree.open(f"{tmp_path}/again.db", host()), root="/deep/ledgers")
        moved = {path.replace("/ledgers", "/deep/ledgers", 1) if path.startswith("/ledgers") else path: nodes[path] for path in nodes}
        assert await dump(file.tree, "/deep/ledgers") | await dump(file.tree, "/triplicate") == moved
        assert file.instance_id == source.instance_id
        for cluster in (source, there, back, file):
            await cluster.aclose()

    run(body(), limit_s=30)


@pytest.mark.parametrize(
    ("manager", "ids", "drawn", "first", "long"),
    [
        (None, [], 0, 1, False),
        (None, [7], 0, 8, False),
        (None, [7], 20, 20, False),
        ("longhierarchical", [300], 0, 301, False),
        (None, [2_000_000], 0, 1 << 32, True),
        (None, [2**31 - 1], 0, 1 << 32, True),
        (None, [(1 << 32) + 5], 0, (1 << 32) + 6, True),
        (None, [(3 << 32) + 2**31], 0, 4 << 32, True),
        (None, [2**63 - 1], 30, 30, False),
        ("flat", [500], 0, 501, False),
    ],
)
def test_new_ids_come_after_all_that_were_used(manager: str | None, ids: list[int], drawn: int, first: int, long: bool) -> None:
    async def body() -> None:
        source = await filled(MemoryTree(MemoryStore(host().clock)), manager, ids)
        for _ in range(drawn):
            await source.ledgers.new_id()
        report, there = await copied(source, MemoryTree(MemoryStore(host().clock)))
        assert report.next_ledger_id in range(first, first + 2)
        assert await there.ledgers.new_id() > report.next_ledger_id
        assert (await there.tree.exists("/ledgers/idgen-long") is not None) == long

    run(body())


def test_a_long_generator_goes_on_behind_what_it_gave_out() -> None:
    async def body() -> None:
        source = await filled(MemoryTree(MemoryStore(host().clock)))
        await source.tree.create("/ledgers/idgen-long")
        given = [await source.ledgers.new_id() for _ in range(3)]
        report, there = await copied(source, MemoryTree(MemoryStore(host().clock)))
        assert report.next_ledger_id > max(given)
        assert await there.tree.exists("/ledgers/idgen-long") is not None

    run(body())


def test_a_cluster_that_runs_is_not_copied_unless_forced() -> None:
    async def body() -> None:
        for readonly in (False, True):
            source = await filled(MemoryTree(MemoryStore(host().clock)))
            await source.bookies.register("b1", INFO, readonly=readonly)
            target = MemoryTree(MemoryStore(host().clock))
            with pytest.raises(ConfigError, match=r"b1.*--force"):
                await copy_metadata(source, target, host(), "/ledgers")
            assert (await target.children("/"))[0] == []
            report, there = await copied(source, target, force=True)
            assert report.ephemerals_left_out == 1
            assert await there.bookies.writable() == await there.bookies.readonly() == {}

    run(body())


@pytest.mark.parametrize("held", ["/triplicate/{0}/databases/shop/leader", "/ledgers/underreplication/locks/urL0000000007"])
def test_what_a_live_process_holds_stops_the_copy_unless_forced(held: str) -> None:
    async def body() -> None:
        source = await filled(MemoryTree(MemoryStore(host().clock)))
        path = held.format(source.instance_id)
        await source.tree.create(path, ephemeral=True, parents=True)
        target = MemoryTree(MemoryStore(host().clock))
        with pytest.raises(ConfigError, match=f"stop the cluster first: a process that is alive holds {path}; --force"):
            await copy_metadata(source, target, host(), "/ledgers")
        assert (await target.children("/"))[0] == []
        report, there = await copied(source, target, force=True)
        assert report.ephemerals_left_out == 1
        assert await there.tree.exists(path) is None

    run(body())


def test_another_cluster_is_never_written_over() -> None:
    async def body() -> None:
        source = await filled(MemoryTree(MemoryStore(host().clock)))
        target = MemoryTree(MemoryStore(host().clock))
        theirs = await ClusterMetadata.open(target, host(), create=True)
        with pytest.raises(ConfigError, match="already"):
            await copy_metadata(source, target, host(), "/ledgers")
        assert (await ClusterMetadata.open(target, host())).instance_id == theirs.instance_id

    run(body())


def test_a_copy_that_was_broken_off_is_no_cluster_and_can_be_made_again() -> None:
    async def body() -> None:
        source = await filled(MemoryTree(MemoryStore(host().clock)))
        store = MemoryStore(host().clock)
        target = MemoryTree(store)
        await target.create("/ledgers/00/0000/L0000", b"half", parents=True)
        writes = [0]

        def breaks(session_id: int, operation: str, path: str) -> InjectedFault | None:
            writes[0] += operation in ("create", "multi", "set")
            return InjectedFault(raise_before=OSError("broken off")) if writes[0] == 10 else None

        store.fault = breaks
        with pytest.raises(OSError, match="broken off"):
            await copy_metadata(source, target, host(), "/ledgers")
        store.fault = None
        with pytest.raises(ConfigError, match="no cluster"):
            await ClusterMetadata.open(target, host())
        _, there = await copied(source, target)
        assert await dump(there.tree, "/ledgers") == await dump(source.tree, "/ledgers")

    run(body())


def test_what_differs_when_it_is_read_again_is_an_error() -> None:
    async def body() -> None:
        for change in ("data", "stranger"):
            source = await filled(MemoryTree(MemoryStore(host().clock)))
            store = MemoryStore(host().clock)
            target, other = MemoryTree(store), MemoryTree(store)
            changed = [False]

            async def meddle(changed: list[bool] = changed, other: MemoryTree = other, change: str = change) -> None:
                if not changed[0]:
                    changed[0] = True
                    if change == "data":
                        await other.set("/ledgers/00/0000/L0001", b"other")
                    else:
                        await other.create("/ledgers/00/0000/L0009")

            get = target.get

            async def meddled(path: str, get: Any = get, meddle: Any = meddle) -> Any:
                await meddle()
                return await get(path)

            target.get = meddled  # type: ignore[method-assign]
            with pytest.raises(CorruptionError, match="/ledgers/00/0000"):
                await copy_metadata(source, target, host(), "/ledgers")

    run(body())


def triplicate(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["cluster", *arguments])


def test_the_commands_make_a_cluster_and_move_it(tmp_path: Path) -> None:
    servers, _, folder = run(fresh_servers()).partition("/")
    assert servers == shared_server().address
    file, zookeeper = f"sqlite://{tmp_path}/metadata.db", f"zk://{servers}/{folder}/ledgers"
    made = json.loads(triplicate("init", file, "--json").stdout)
    assert made["root"] == "/ledgers"
    refused = triplicate("init", file)
    assert isinstance(refused.exception, ConfigError)
    assert "already" in str(refused.exception)
    report = json.loads(triplicate("copy-metadata", file, zookeeper, "--json").stdout)
    assert report["instance_id"] == made["instance_id"]
    assert report["nodes"] == report["verified"] > 0

    async def look() -> str:
        cluster = await open_cluster(zookeeper, host())
        try:
            assert cluster.root == f"/{folder}/ledgers"
            return cluster.instance_id
        finally:
            await cluster.aclose()

    assert run(look()) == made["instance_id"]
    assert isinstance(triplicate("copy-metadata", file, zookeeper).exception, ConfigError)
    back = f"sqlite://{tmp_path}/back.db"
    assert made["instance_id"] in triplicate("copy-metadata", zookeeper, back).output
    for wrong in (("init", "memory:"), ("copy-metadata", f"sqlite://{tmp_path}/none.db", back), ("init", "zk://a:1/")):
        assert isinstance(triplicate(*wrong).exception, ConfigError)
    other = f"zk+longhierarchical://{servers}/{folder}/other"
    assert "longhierarchical" in str(triplicate("copy-metadata", file, other).exception)
    assert "longhierarchical" in triplicate("init", other).output
