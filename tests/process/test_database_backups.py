"""A database is backed up, its whole cluster is destroyed, and another cluster has it again, as it was at any moment."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import Up, run
from tests.waiting import wait_until


def led(uri: str, name: str) -> bool:
    return json_at_once("database", "show", name, uri=uri)["leader"] is not None


def sql(uri: str, name: str, *statements: str) -> str:
    """Run statements in one session; the output."""
    arguments = [word for statement in statements for word in ("-c", statement)]
    return run("sql", "--small", name, *arguments, uri=uri).stdout


@pytest.mark.deep
def test_a_cluster_is_destroyed_and_its_database_is_restored_on_another_one(tmp_path: Path) -> None:
    backup, first = str(tmp_path / "backup"), tmp_path / "first"
    with Up(first, "--bookies", "3", "--nodes", "2") as up:
        at_once("database", "create", "shop", uri=up.uri)
        wait_until(lambda: led(up.uri, "shop"), 30.0, "a node leads the database")
        sql(up.uri, "shop", "CREATE TABLE items (a INTEGER PRIMARY KEY, b TEXT)", "INSERT INTO items(b) VALUES ('one'), ('two')")
        made = json_at_once("database", "backup", "shop", backup, uri=up.uri)
        sql(up.uri, "shop", "INSERT INTO items(b) VALUES ('three')", "DELETE FROM items")
        longer = json_at_once("database", "backup", "shop", backup, "--incremental", uri=up.uri)
        assert longer["position"] == made["position"] + 2
        seen = sql(up.uri, "shop", f"SET triplicate.as_of = 'position {made['position']}'", "SELECT b FROM items")
        assert "two" in seen
        refused = at_once("database", "restore", backup, "shop", uri=up.uri, check=False)
        assert refused.returncode != 0
        assert "--replace" in refused.stderr
    shutil.rmtree(first)
    assert at_once("database", "verify-backup", backup).returncode == 0
    with Up(tmp_path / "second", "--bookies", "3", "--nodes", "1") as up:
        position = str(made["position"] + 1)
        at_once("database", "restore", backup, "shop", "--to-position", position, uri=up.uri)
        wait_until(lambda: led(up.uri, "shop"), 30.0, "a node leads the database")
        assert "three" in sql(up.uri, "shop", "SELECT b FROM items ORDER BY a")
        sql(up.uri, "shop", "INSERT INTO items(b) VALUES ('four')")
        at_once("database", "clone", "shop", "copy", "--to-position", position, uri=up.uri)
        at_once("database", "export", "copy", str(tmp_path / "plain.db"), uri=up.uri)
        with sqlite3.connect(tmp_path / "plain.db") as connection:
            assert connection.execute("SELECT b FROM items ORDER BY a").fetchall() == [("one",), ("two",), ("three",)]
        connection.close()
        at_once("database", "import", str(tmp_path / "plain.db"), "again", uri=up.uri)
        wait_until(lambda: led(up.uri, "again"), 30.0, "a node leads the database")
        assert "three" in sql(up.uri, "again", "SELECT b FROM items ORDER BY a")
    part = next(Path(backup).glob("log-*"))
    part.write_bytes(part.read_bytes()[:-1] + b"\xff")
    damaged = at_once("database", "verify-backup", backup, check=False)
    assert damaged.returncode != 0
    assert part.name in damaged.stderr
