"""The commands for copies, leaders and nodes against a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import Up
from tests.waiting import wait_until


def shown(uri: str) -> Any:
    return json_at_once("database", "show", "shop", uri=uri)


def listed(uri: str) -> dict[str, tuple[str, int, int]]:
    """State, leaders and copies of each node."""
    return {one["node"]: (one["state"], one["leaders"], one["copies"]) for one in json_at_once("node", "list", uri=uri)}


def all_nodes(uri: str) -> str:
    """A connection string that names all nodes, also those without a copy."""
    ports = [one["address"].rpartition(":")[2] for one in json_at_once("node", "list", uri=uri)]
    hosts = ",".join(["127.0.0.1"] * len(ports))
    return f"host={hosts} port={','.join(ports)} dbname=shop user=anna target_session_attrs=read-write"


@pytest.mark.deep
def test_leaders_and_copies_of_stores_follow_the_commands(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "2") as up:
        uri = up.uri

        def basket() -> Any:
            return json_at_once("kv", "show", "basket", uri=uri)

        def counted() -> dict[str, tuple[int, int]]:
            return {one["node"]: (one["store_leaders"], one["store_copies"]) for one in json_at_once("node", "list", uri=uri)}

        wait_until(lambda: len(listed(uri)) == 2, 30.0, "two nodes are listed")
        at_once("kv", "create", "basket", uri=uri)
        wait_until(lambda: basket()["leader"] is not None and len(basket()["nodes"]) == 2, 30.0, "two nodes have copies")
        first = basket()["leader"]
        (other,) = {one["node"] for one in basket()["nodes"]} - {first}
        assert f"node {other} leads store basket" in at_once("kv", "move-leader", "basket", uri=uri).stderr
        assert counted() == {first: (0, 1), other: (1, 1)}
        refused = at_once("kv", "move-leader", "basket", "node-9", uri=uri, check=False)
        assert refused.returncode == 1
        assert "there is no node 'node-9'" in refused.stderr
        at_once("node", "drain", other, "--wait", uri=uri)
        # The command waits for the drained node. Its copy is gone before the other node has taken over.
        wait_until(lambda: counted() == {first: (1, 1), other: (0, 0)}, 30.0, "the other node leads")
        refused = at_once("node", "drain", first, uri=uri, check=False)
        assert refused.returncode == 1
        assert "too few nodes would be left for the copies of basket (1 expected, 0 possible)" in refused.stderr
        at_once("node", "undrain", other, uri=uri)
        wait_until(lambda: counted()[other] == (0, 1), 30.0, "the copy comes back")


@pytest.mark.deep
def test_copies_leaders_and_nodes_follow_the_commands(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "3") as up:
        uri = up.uri
        wait_until(lambda: len(listed(uri)) == 3, 30.0, "three nodes are listed")
        at_once("database", "create", "shop", "--copies", "2", "--lease", "0", uri=uri)
        wait_until(lambda: shown(uri)["leader"] is not None and len(shown(uri)["nodes"]) == 2, 30.0, "two nodes have copies")
        first = shown(uri)
        assert sorted(one["node"] for one in first["nodes"]) == first["placement"]["chosen"]
        assert "2 of 2 copies" in at_once("database", "show", "shop", uri=uri).stdout
        places = all_nodes(uri)
        (other,) = {one["node"] for one in first["nodes"]} - {first["leader"]}
        connection = psycopg.connect(places, autocommit=True)
        connection.execute("CREATE TABLE t(a)")
        at_once("database", "move-leader", "shop", other, uri=uri)
        assert shown(uri)["leader"] == other
        with pytest.raises(psycopg.errors.AdminShutdown):
            connection.execute("INSERT INTO t VALUES (1)")
        at_once("node", "drain", other, "--wait", uri=uri)
        assert listed(uri)[other] == ("draining", 0, 0)
        with psycopg.connect(places, autocommit=True) as again:
            again.execute("INSERT INTO t VALUES (2)")
            assert again.execute("SELECT a FROM t").fetchall() == [(2,)]
        refused = at_once("node", "drain", first["leader"], uri=uri, check=False)
        assert refused.returncode == 1
        assert "too few nodes would be left for the copies of shop (2 expected, 1 possible)" in refused.stderr
        assert listed(uri)[first["leader"]][0] == "normal"
