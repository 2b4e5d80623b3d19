"""pgx, the client of Go: each mode of execution, casts, arrays, types, transactions, its pool and its catalogue queries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.foreign import pgx_scenes
from tests.clients.stand import Db, unique

CHANGED = [[1, 2], [2, 20], [3, 30]]
EXPECTED: dict[str, Any] = {
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


@pytest.fixture(scope="module")
def seen(shared: Db) -> dict[str, Any]:
    table = unique("pgx")
    with shared.writable() as connection:
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, x INTEGER)".encode())
    return pgx_scenes(shared, table)


@pytest.mark.parametrize("scene", EXPECTED)
def test_pgx_gets_postgresqls_answers(seen: dict[str, Any], scene: str) -> None:
    assert seen[scene] == EXPECTED[scene]


def test_every_scene_is_checked(seen: dict[str, Any]) -> None:
    assert set(seen) == set(EXPECTED)
