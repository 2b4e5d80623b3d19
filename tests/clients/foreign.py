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

CHANGED = [[1, 2], [2, 20], [3, 30]]
PGX_EXPECTED: dict[str, Any] = {
    "casts": CHANGED,
    "casts, described": CHANGED,
    "casts, each time": CHANGED,
    "casts, undescribed": CHANGED,
    "casts, simple": CHANGED,
    "repeated": ["second", "first", "second"],
    "any of numbers": [1, 3],
    "any of texts": [True, False],
    "booleans": [False, True, True, False],
    "types": [
        1 << 40, True, 1.5, ["250", -2], "naïve", "00ff", True, True, True, "01234567-89ab-cdef-0123-456789abcdef", {"a": [1, None]},
    ],
    "now": True,
    "transactions": [[1, 11], [2, 20], [3, 30]],
    "read only": "25006",
    "duplicate": "23505",
    "batch": [[1, 100], [2, 200], [3, 300]],
    "pool": 2,
    "load type": [1009, True],
}  # fmt: skip
"""The answers of a PostgreSQL 15 server to the same program."""

NODE_EXPECTED: dict[str, Any] = {
    "casts": [[1, 2], [2, 20], [3, 30]],
    "casts, named": [[1, 2], [2, 20], [3, 4]],
    "repeated": ["second", "first", "second"],
    "any of numbers": [1, 3],
    "any of texts": [True, False],
    "booleans": [False, True, True, False],
    "types": ["1099511627776", True, 1.5, "2.50", "naïve", "00ff", True, True, {"a": [1, None]}],
    "now": True,
    "transactions": [[1, 11], [2, 20], [3, 30]],
    "duplicate": "23505",
    "several statements": [["UPDATE", "SELECT"], 3],
    "pool": 2,
}
"""The answers of a PostgreSQL 15 server to the same program."""


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
