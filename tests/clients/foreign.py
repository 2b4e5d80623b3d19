"""Clients in other languages, installed by `scripts/clients.py`, and their results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.stand import Db

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / "build" / "clients"
JDBC_JAR = Path("/usr/share/java/postgresql.jar")
LIMIT_S = 120


def leader_port(database: Db) -> int:
    return database.stand.ports[database.leader()]


def run_scenes(command: list[str], **variables: str) -> dict[str, Any]:
    """Run a client's program; return its results by the name of the scene."""
    answer = subprocess.run(
        command, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert answer.returncode == 0, f"{command[0]} ended with {answer.returncode}: {answer.stderr[-2000:]}"
    seen: dict[str, Any] = json.loads(answer.stdout)
    return seen


def pgx_scenes(database: Db, table: str, options: str = "user=tester sslmode=disable", **variables: str) -> dict[str, Any]:
    program = BUILT / "pgx"
    if not program.exists():
        pytest.skip("the client with pgx has not been built: scripts/clients.py says why")
    hosts = f"host=127.0.0.1 port={leader_port(database)} dbname={database.name} {options} connect_timeout=10"
    return run_scenes([str(program), hosts, table], **variables)


def node_scenes(database: Db, table: str, **variables: str) -> dict[str, Any]:
    modules = BUILT / "node" / "node_modules"
    node = shutil.which("node")
    if node is None or not modules.exists():
        pytest.skip("node-postgres has not been fetched: scripts/clients.py says why")
    script = ROOT / "tests" / "clients" / "node" / "scenes.js"
    return run_scenes(
        [node, str(script), "127.0.0.1", str(leader_port(database)), database.name, table], NODE_PATH=str(modules), **variables
    )
