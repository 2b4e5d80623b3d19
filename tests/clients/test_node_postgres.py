"""node-postgres, the client of JavaScript: casts, named statements, arrays, types, transactions and its pool."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.foreign import NODE_EXPECTED, node_scenes
from tests.clients.stand import Db, unique


@pytest.fixture(scope="module")
def seen(shared: Db) -> dict[str, Any]:
    table = unique("node")
    with shared.writable() as connection:
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, x INTEGER)".encode())
    return node_scenes(shared, table)


@pytest.mark.parametrize("scene", NODE_EXPECTED)
def test_node_postgres_gets_postgresqls_answers(seen: dict[str, Any], scene: str) -> None:
    assert seen[scene] == NODE_EXPECTED[scene]


def test_every_scene_is_checked(seen: dict[str, Any]) -> None:
    assert set(seen) == set(NODE_EXPECTED)
