"""Addresses of clusters. Source: BookKeeper `ZKMetadataDriverBase`, `MetadataDrivers`, setting `metadataServiceUri`."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import ConfigError, ConnectionLost
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, RenewingTree, cluster_root, open_cluster, open_tree
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
from triplicate.metadata.service_uri import ZooKeeperUri, parse_zookeeper
from triplicate.runtime import real_host


@pytest.mark.parametrize(
    ("uri", "servers", "root", "manager"),
    [
        ("zk://localhost:2181/ledgers", "localhost:2181", "/ledgers", None),
        ("zk://a:1;b:2;c:3/ledgers", "a:1,b:2,c:3", "/ledgers", None),
        ("zk://a:1,b:2/deep/root", "a:1,b:2", "/deep/root", None),
        ("zk://zoo-1.example;10.0.0.2/ledgers", "zoo-1.example,10.0.0.2", "/ledgers", None),
        ("zk://[::1]:2181;[::2]/ledgers", "[::1]:2181,[::2]", "/ledgers", None),
        ("zk+null://a:1/ledgers", "a:1", "/ledgers", None),
        ("zk+hierarchical://a:1/ledgers", "a:1", "/ledgers", "hierarchical"),
        ("zk+longhierarchical://a:1/ledgers", "a:1", "/ledgers", "longhierarchical"),
        ("zk+flat://a:1/ledgers", "a:1", "/ledgers", "flat"),
    ],
)
def test_an_address_of_zookeeper_is_read_as_bookkeeper_writes_it(uri: str, servers: str, root: str, manager: str | None) -> None:
    assert parse_zookeeper(uri) == ZooKeeperUri(servers, root, manager)
    assert cluster_root(uri) == (root, manager)


@pytest.mark.parametrize(
    "uri",
    [
        "zk://",
        "zk:///ledgers",
        "zk://a:1",
        "zk://a:1/",
        "zk://a:1//ledgers",
        "zk://a:1/ledgers/",
        "zk://a:0/ledgers",
        "zk://a:65536/ledgers",
        "zk://a:x/ledgers",
        "zk://a:1;/ledgers",
        "zk://a b:1/ledgers",
        "zk://a:1:2/ledgers",
        "zk+ms://a:1/ledgers",
        "zk+Hierarchical://a:1/ledgers",
        "zookeeper://a:1/ledgers",
        "zkx",
    ],
)
def test_what_is_no_address_is_refused_before_anything_is_asked(uri: str) -> None:
    with pytest.raises(ConfigError):
        run(open_tree(uri, real_host_later()))


def real_host_later() -> Any:
    """A stand-in that fails every use."""
    return None


def test_other_stores_keep_the_default_root(tmp_path: Path) -> None:
    async def body() -> None:
        uri = f"sqlite://{tmp_path}/metadata.db"
        made = await open_cluster(uri, real_host("test"), create=True)
        assert made.root == "/ledgers"
        await made.aclose()
        with pytest.raises(ConfigError, match="no cluster"):
            await open_cluster("memory:", real_host("test"))

    run(body())


def test_an_address_without_a_cluster_is_named_and_nothing_is_made(tmp_path: Path) -> None:
    async def body() -> None:
        empty, cluster, folder = tmp_path / "empty.db", tmp_path / "good" / "metadata.db", tmp_path / "good"
        empty.touch()
        folder.mkdir()
        uri = f"sqlite://{cluster}"
        await (await open_cluster(uri, real_host("test"), create=True)).aclose()
        before = sorted(tmp_path.rglob("*"))
        for wrong, words in {
            f"sqlite://{tmp_path}/typo.db": f"{tmp_path}/typo.db does not exist",
            f"sqlite://{empty}": f"{empty} is empty",
            str(folder): f"did you mean {uri}",
            str(cluster): f"did you mean {uri}",
            f"sqlite:/{cluster}": f"did you mean {uri}",
        }.items():
            with pytest.raises(ConfigError, match=re.escape(words)):
                await open_cluster(wrong, real_host("test"))
        with pytest.raises(ConfigError, match="there is no cluster under /other of zk://here"):
            await ClusterMetadata.open(MemoryTree(MemoryStore(real_host("test").clock)), real_host("test"), root="/other", uri="zk://here")
        assert sorted(tmp_path.rglob("*")) == before

    run(body())


def test_a_file_that_is_gone_is_not_made_again_by_the_next_session(tmp_path: Path) -> None:
    async def body() -> None:
        cluster = await open_cluster(f"sqlite://{tmp_path}/metadata.db", real_host("test"), create=True)
        tree = cluster.tree
        assert isinstance(tree, RenewingTree)
        inner = await tree.current()
        tree.mark_expired(inner)
        for path in tmp_path.glob("metadata.db*"):
            if path.is_file():
                path.rename(path.with_suffix(".away"))
        with pytest.raises(ConnectionLost, match=r"metadata\.db does not exist"):
            await tree.exists("/ledgers")
        assert not (tmp_path / "metadata.db").exists()
        await cluster.aclose()

    run(body())


def test_without_kazoo_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_kazoo(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "triplicate.metadata.drivers.zookeeper_tree":
            raise ModuleNotFoundError("No module named 'kazoo'")
        return real_import(name, *arguments, **options)

    async def body() -> None:
        monkeypatch.setattr(builtins, "__import__", without_kazoo)
        with pytest.raises(ConfigError, match=r"pip install 'triplicate\[zookeeper\]'"):
            await open_tree("zk://127.0.0.1:1/ledgers", real_host("test"))

    run(body())


def test_a_zookeeper_that_is_not_there_is_named() -> None:
    async def body() -> None:
        with pytest.raises(ConnectionLost, match=r"ZooKeeper at 127\.0\.0\.1:1 does not answer within 0\.3 s"):
            await ZooKeeperTree.open("127.0.0.1:1", real_host("test"), limit_s=0.3)

    run(body())
