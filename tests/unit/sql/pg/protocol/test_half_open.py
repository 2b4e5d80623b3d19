"""The number of connections whose clients have not logged in."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.flood import AtRest, Flood
from tests.unit.sql.pg.login_rig import SSL_REQUEST, Door, run_door
from tests.waiting import eventually
from triplicate.sql.pg import ServerLimits
from triplicate.sql.pg.protocol.half_open import HalfOpenConnections

LIMIT, KEPT, ATTEMPTS = 50, 150, 2000


def test_the_oldest_connection_of_an_address_makes_room_for_another() -> None:
    table = HalfOpenConnections(100, 2)
    assert [table.add(number, "192.0.2.1") for number in (1, 2, 3)] == [None, None, 1]
    table.remove(2)
    assert table.add(4, "192.0.2.1") is None
    assert table.add(5, "192.0.2.1") == 3
    assert table.add(6, "192.0.2.2") is None
    assert len(table) == 3


def test_a_flood_from_one_address_replaces_its_own_connections() -> None:
    table = HalfOpenConnections(10, 9)
    honest = [table.add(number, f"192.0.2.{number}") for number in range(5)]
    closed = [table.add(number, "198.51.100.1") for number in range(100, 200)]
    assert honest == [None] * 5
    assert all(one is None or one >= 100 for one in closed)
    assert len(table) == 10
    assert all(table.add(number, f"192.0.2.{number}") >= 100 for number in range(5, 8))  # type: ignore[operator]


def test_addresses_of_one_network_of_ipv6_count_as_one() -> None:
    table = HalfOpenConnections(100, 2)
    assert [table.add(number, f"2001:db8::{number:x}") for number in range(1, 4)] == [None, None, 1]
    assert table.add(4, "2001:db8:0:1::1") is None


def test_no_trace_of_a_connection_stays() -> None:
    table = HalfOpenConnections(3, 3)
    for number in range(1000):
        table.add(number, f"192.0.2.{number % 200}")
        table.remove(number)
        table.remove(number)
    assert len(table) == 0
    assert not table._addresses


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
