"""`triplicate up --secure --metadata zk`: the ZooKeeper beside the bookies is protected as every other door, also after a restart."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.process.running import Up, run
from triplicate.cli.supervision.cluster_folder import CLIENT_FILE


def client(up: Up, *arguments: str, text: str | None = None) -> str:
    return run(*arguments, text=text, TRIPLICATE_CONFIG=str(up.folder / CLIENT_FILE)).stdout


@pytest.mark.deep
def test_a_secured_cluster_on_zookeeper_works_and_lets_nobody_else_in(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Up(folder, "--secure", "--metadata", "zk", "--bookies", "3", "--nodes", "1") as up:
        assert up.uri.startswith("zk://")
        client(up, "log", "create", "events")
        client(up, "log", "append", "events", text="one\n")
        client(up, "database", "create", "shop")
        client(up, "sql", "shop", "--small", "-c", "create table t (a int)", "-c", "insert into t values (7)")
        stranger = run("ledger", "list", uri=up.uri, check=False)
        assert (stranger.returncode, stranger.stdout) == (1, "")
        assert len(stranger.stderr.strip().splitlines()) == 1, stranger.stderr
        assert up.end(signal.SIGTERM) == 0, up.errors
    with Up(folder) as again:
        assert again.uri == up.uri
        assert client(again, "log", "read", "events") == "one\n"
        assert " 8 " in client(again, "sql", "shop", "--small", "-c", "select a + 1 from t")
        status = json.loads(client(again, "cluster", "status", "--json"))
        assert status["healthy"], status["problems"]
