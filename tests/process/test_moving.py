"""A cluster with data moves from its embedded metadata file to ZooKeeper, and its bookies continue there."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.moving import PASSWORD, make_cluster, move
from tests.process.running import Up, run
from tests.zookeeper.server import ZooKeeperServer
from triplicate import blocking


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    own = ZooKeeperServer(tmp_path / "zookeeper")
    own.start()
    yield own
    own.stop()


def test_a_cluster_moves_from_its_file_to_zookeeper(tmp_path: Path, server: ZooKeeperServer) -> None:
    cluster = make_cluster(tmp_path / "c")
    target = f"zk://{server.address}/ledgers"
    report = move(cluster, target)
    assert report["instance_id"] == cluster.instance_id
    assert report["ledgers"] == len(cluster.closed) + len(cluster.open)
    assert report["nodes"] == report["verified"] > report["ledgers"]
    used = max([*cluster.closed, *cluster.open]) + 1
    assert report["next_ledger_id"] > used
    with cluster.bookies_on(target), blocking.connect(target) as client:
        assert client.client.metadata.instance_id == cluster.instance_id
        for ledger_id, payloads in cluster.closed.items():
            with client.open(ledger_id, password=PASSWORD) as reader:
                assert reader.metadata.custom["kind"] == b"moved"
                assert [entry.payload for entry in reader.read(0, len(payloads) - 1)] == payloads
        for ledger_id, payloads in cluster.open.items():
            with client.recover(ledger_id, password=PASSWORD) as reader:
                assert [entry.payload for entry in reader.read(0, reader.last_add_confirmed)] == payloads
        with client.create(password=PASSWORD) as writer:
            writer.append(b"new")
            assert writer.ledger_id > report["next_ledger_id"]
        # Garbage collection and recovery use ZooKeeper now, so no process may use the old file beside it.
        assert json_at_once("ledger", "list", uri=target) != json_at_once("ledger", "list", uri=cluster.uri)
    # Nor may the command `up` start on the old file.
    refused = run("up", "--dir", str(cluster.folder), check=False)
    assert refused.returncode == 1
    assert f"names the metadata {target}, and this folder's is {cluster.uri}" in " ".join(refused.stderr.split())
    refused = at_once("cluster", "copy-metadata", cluster.uri, target, check=False)
    assert refused.returncode == 1
    assert "there is a cluster under /ledgers in the target already" in refused.stderr


def test_a_running_cluster_is_not_moved(tmp_path: Path, server: ZooKeeperServer) -> None:
    with Up(tmp_path / "c", "--bookies", "1", "--nodes", "0") as up:
        refused = at_once("cluster", "copy-metadata", up.uri, f"zk://{server.address}/ledgers", check=False)
        assert refused.returncode == 1
        assert "stop the cluster first: bookies are registered (bookie-1)" in refused.stderr
        assert up.end(signal.SIGTERM) == 0
    report = json.loads(run("cluster", "copy-metadata", up.uri, f"zk://{server.address}/ledgers", "--json").stdout)
    assert report["ephemerals_left_out"] == 0
