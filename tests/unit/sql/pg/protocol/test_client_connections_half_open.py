"""Floods of connections to a node: the number of half-open ones is bounded, and honest clients are served."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.flood import AtRest, Flood
from tests.unit.sql.pg.login_rig import SSL_REQUEST, Door, run_door
from tests.waiting import eventually
from triplicate.sql.pg import ServerLimits

LIMIT, KEPT, ATTEMPTS = 50, 150, 2000


def test_a_flood_of_connections_is_bounded_and_a_client_logs_in_meanwhile(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        async with await door.psycopg() as before:
            flood = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(60)]
            await eventually(lambda: door.refused("half_open") == 50)
            await eventually(lambda: door.server.connections.count == 11)
            async with await door.psycopg():
                pass
            await before.execute("select 1")
            for _, writer in flood:
                writer.close()
            await eventually(lambda: door.server.connections.count == 1)

    run_door(tmp_path, body, ServerLimits(half_open=20, half_open_per_address=10))


@pytest.mark.parametrize("first", [b"", SSL_REQUEST, SSL_REQUEST[:3]], ids=["silent", "request for TLS", "half a packet"])
def test_a_flood_leaves_nothing_behind_and_an_honest_client_is_served(tmp_path: Path, first: bytes) -> None:
    """A million of them: tests/process/test_floods.py."""

    async def body(door: Door) -> None:
        async def round_of(number: int) -> None:
            flood = Flood(door.server.address, first, KEPT)
            await flood.attempt(number)
            await eventually(lambda: door.server.connections.count <= LIMIT)
            assert flood.opened + flood.refused == number
            async with await door.psycopg() as connection:
                await connection.execute("select 1")
            flood.close()
            await eventually(lambda: door.server.connections.count == 0)

        await round_of(ATTEMPTS // 4)  # The pools and caches fill.
        rest = AtRest()
        await round_of(ATTEMPTS)
        await rest.check(ATTEMPTS)

    run_door(tmp_path, body, ServerLimits(half_open=LIMIT, half_open_per_address=LIMIT))
