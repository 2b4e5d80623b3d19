"""node-postgres, the client of JavaScript: casts, named statements, arrays, types, transactions and its pool."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.foreign import node_scenes
from tests.clients.stand import Db, unique

EXPECTED: dict[str, Any] = {
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


@pytest.fixture(scope="module")
def seen(shared: Db) -> dict[str, Any]:
    table = unique("node")
    with shared.writable() as connection:
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, x INTEGER)".encode())
    return node_scenes(shared, table)


@pytest.mark.parametrize("scene", EXPECTED)
def test_node_postgres_gets_postgresqls_answers(seen: dict[str, Any], scene: str) -> None:
    assert seen[scene] == EXPECTED[scene]


def test_every_scene_is_checked(seen: dict[str, Any]) -> None:
    assert set(seen) == set(EXPECTED)
