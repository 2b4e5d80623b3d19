"""Snapshots of a database on a real cluster, up to the loss of every disk of its nodes."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.process.at_once import at_once, json_at_once
from tests.process.running import Up, run
from tests.waiting import wait_until

NODES = ("node-1", "node-2")
ROWS = (
    "INSERT INTO items(b) WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < 500) SELECT hex(randomblob(50)) FROM c"
)


def set_eager(folder: Path) -> None:
    """Have the nodes make a snapshot whenever the log has grown at all."""
    for node in NODES:
        path = folder / node / "node.toml"
        text = path.read_text(encoding="utf-8")
        assert "[node]\n" in text
        path.write_text(text.replace("[node]\n", "[node]\nsnapshot_log_bytes = 1\nsnapshot_interval_s = 0\n"), encoding="utf-8")


def led(uri: str) -> bool:
    return json_at_once("database", "show", "shop", uri=uri)["leader"] is not None


def sums(uri: str) -> str:
    return at_once("sql", "--small", "shop", "-c", "SELECT count(*), sum(a), min(b), max(b) FROM items", uri=uri, check=False).stdout


def test_a_database_is_rebuilt_from_bookies_after_its_nodes_lost_every_disk(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Up(folder, "--bookies", "3", "--nodes", "2") as up:
        at_once("database", "create", "shop", uri=up.uri)
        wait_until(lambda: led(up.uri), 30.0, "a node leads the database")
        refused = at_once("database", "snapshot", "nothing", uri=up.uri, check=False)
        assert refused.returncode != 0
        assert 'database "nothing" does not exist' in refused.stderr
        assert json_at_once("database", "snapshots", "shop", uri=up.uri) == []
    set_eager(folder)
    with Up(folder) as up:
        wait_until(lambda: led(up.uri), 30.0, "a node leads the database")
        run("sql", "--small", "shop", "-c", "CREATE TABLE items (a INTEGER PRIMARY KEY, b TEXT)", "-c", ROWS, uri=up.uri)
        made = json_at_once("database", "snapshot", "shop", "--timeout", "60", uri=up.uri)
        at_once("sql", "--small", "shop", "-c", ROWS, uri=up.uri)
        again = json_at_once("database", "snapshot", "shop", "--timeout", "60", uri=up.uri)
        assert again["position"] > made["position"]
        listed = json_at_once("database", "snapshots", "shop", "--verify", uri=up.uri)
        assert [one["state"] for one in listed] == ["verified"] * len(listed)
        assert again["position"] in [one["position"] for one in listed]
        assert again["snapshot"][:8] in at_once("database", "snapshots", "shop", uri=up.uri).stdout
        log = json_at_once("database", "show", "shop", uri=up.uri)["log"]
        wait_until(lambda: json_at_once("log", "show", log, uri=up.uri)["first_offset"] >= made["position"], 30.0, "the log is truncated")
        expected = sums(up.uri)
        assert "1000" in expected
    for node in NODES:
        (copies,) = (folder / node).rglob("databases")
        shutil.rmtree(copies)
    with Up(folder) as up:
        wait_until(lambda: led(up.uri), 30.0, "a node leads the database")
        assert sums(up.uri) == expected
        at_once("sql", "--small", "shop", "-c", "INSERT INTO items(b) VALUES ('one more')", uri=up.uri)
        assert "1001" in sums(up.uri)
