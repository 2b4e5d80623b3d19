"""`triplicate up --metadata zk`: a real ZooKeeper beside the bookies, and nothing else is different."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil

from tests.process.at_once import at_once, json_at_once
from tests.process.readme import README
from tests.process.running import TIMEOUT_S, Up, command, environment, run
from tests.waiting import LIMIT_S, wait_until


def java_of(up: Up) -> psutil.Process:
    (java,) = psutil.Process(up.members["zookeeper"]["pid"]).children()
    return java


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def refused(*arguments: str, **variables: str) -> str:
    answer = subprocess.run(
        command("up", *arguments),
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert answer.returncode == 1, answer.stderr
    (line,) = answer.stderr.strip().splitlines()
    return line


def test_the_readmes_example_runs_and_a_restart_keeps_everything(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / "example.py"
    program.write_text(block)
    folder = tmp_path / "triplicate-data"
    with Up(folder, "--metadata", "zk", "--bookies", "3", "--nodes", "0") as up:
        java = java_of(up)
        content = json.loads((folder / "cluster.json").read_text())
        assert up.uri == content["metadata"] == f"zk://{up.members['zookeeper']['address']}/ledgers"
        assert {one.laddr.ip for one in java.net_connections() if one.status == psutil.CONN_LISTEN} == {"127.0.0.1"}
        answer = subprocess.run(
            [sys.executable, "-W", "error", str(program)],
            env=environment(TRIPLICATE_METADATA=up.uri),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert answer.stderr == ""
        assert answer.stdout.splitlines() == ["acknowledged: 0", "acknowledged: 1", "[b'never', b'lost']"]
        ledgers = json_at_once("ledger", "list", uri=up.uri)
        assert up.end(signal.SIGINT) == 0, up.errors
        assert up.alive() == []
        assert is_gone(java)
    # The second start needs no option, and commands find the cluster in the folder.
    with Up(folder) as again:
        assert again.uri == up.uri
        assert json_at_once("ledger", "list", uri=again.uri) == ledgers
        here = subprocess.run(
            command("ledger", "list", "--json"),
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        assert json.loads(here.stdout) == ledgers
        assert again.end(signal.SIGTERM) == 0


def test_no_java_process_outlives_a_killed_up(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--metadata", "zk", "--bookies", "1", "--nodes", "0") as up:
        first = java_of(up)
        up.end(signal.SIGKILL)
        # At once: the orphans are waited for.
        with Up(tmp_path / "c") as again:
            assert is_gone(first)
            second = java_of(again)
            os.kill(again.members["zookeeper"]["pid"], signal.SIGKILL)
            wait_until(lambda: is_gone(second), LIMIT_S, "Java is gone")
            assert again.process.stderr is not None
            output = again.process.stderr.readline()
            while "--config" not in output:
                output += again.process.stderr.readline()
            assert "zookeeper was killed by signal 9" in " ".join(output.split())


def test_missing_requirements_of_zookeeper_are_reported_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    line = refused("--dir", str(folder), "--metadata", "zk", JAVA_HOME=str(tmp_path))
    assert "holds no Java, which ZooKeeper needs: install a Java runtime" in line
    assert not folder.exists()


def test_a_folder_keeps_its_metadata_store(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Up(folder, "--bookies", "1", "--nodes", "0") as up:
        up.end(signal.SIGTERM)
    line = refused("--dir", str(folder), "--metadata", "zk")
    assert f"keeps its metadata in sqlite://{folder}/metadata.db" in line
    assert "copy-metadata" in line


def test_a_taken_port_and_lost_data_are_named_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Up(folder, "--metadata", "zk", "--bookies", "1", "--nodes", "0") as up:
        host, _, port = up.members["zookeeper"]["address"].rpartition(":")
        up.end(signal.SIGTERM)
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((host, int(port)))
        holder.listen()
        line = refused("--dir", str(folder))
        assert "zookeeper did not start" in line
        assert f"{host}:{port} is held by process {os.getpid()}" in line
    (folder / "zookeeper" / "data").rename(tmp_path / "lost")
    assert "zookeeper/data is missing" in refused("--dir", str(folder))


def test_logs_and_databases_work_as_on_the_file(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--metadata", "zk", "--bookies", "3", "--nodes", "1") as up:
        run("log", "create", "events", uri=up.uri)
        run("log", "append", "events", "a", "b", uri=up.uri)
        assert run("log", "read", "events", uri=up.uri).stdout == "a\nb\n"
        at_once("database", "create", "shop", uri=up.uri)
        wait_until(lambda: json_at_once("database", "show", "shop", uri=up.uri)["leader"] == "node-1", 30.0, "the node leads the database")
        at_once("sql", "shop", "--small", "-c", "CREATE TABLE t (a INTEGER PRIMARY KEY)", "-c", "INSERT INTO t VALUES (7)", uri=up.uri)
        assert "7" in at_once("sql", "shop", "--small", "-c", "SELECT a FROM t", uri=up.uri).stdout.split()
        assert up.end(signal.SIGTERM) == 0
