"""pgx, the client of Go: each mode of execution, casts, arrays, types, transactions, its pool and its catalogue queries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.foreign import PGX_EXPECTED, pgx_scenes
from tests.clients.stand import Db, unique


@pytest.fixture(scope="module")
def seen(shared: Db) -> dict[str, Any]:
    table = unique("pgx")
    with shared.writable() as connection:
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, x INTEGER)".encode())
    return pgx_scenes(shared, table)


@pytest.mark.parametrize("scene", PGX_EXPECTED)
def test_pgx_gets_postgresqls_answers(seen: dict[str, Any], scene: str) -> None:
    assert seen[scene] == PGX_EXPECTED[scene]


def test_every_scene_is_checked(seen: dict[str, Any]) -> None:
    assert set(seen) == set(PGX_EXPECTED)
