"""Floods of connections to a node: the number of half-open ones is bounded, and honest clients are served."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.flood import AtRest, Flood
from tests.unit.sql.pg.login_rig import SSL_REQUEST, Door, run_door, startup
from tests.waiting import eventually
from triplicate.security import REFUSALS_PER_S
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

    run_door(tmp_path, body, ServerLimits(half_open=LIMIT, half_open_per_address=LIMIT, handshakes_per_s=2000))


def test_a_flood_of_refused_connections_does_not_fill_the_audit_log(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        async def attempt() -> None:
            client = await door.raw(encrypted=False)
            await client.send(startup())
            assert (await client.error())[0] == "28000"
            client.close()

        attempts = 10 * REFUSALS_PER_S
        began = door.host.clock.monotonic()
        for _ in range(attempts):
            await attempt()
        await eventually(lambda: door.refused("plain_text") == attempts)
        seconds = door.host.clock.monotonic() - began
        assert len(door.events.all) <= (1 + seconds) * REFUSALS_PER_S
        lines = len(door.events.all)
        while len(door.events.all) == lines:
            await attempt()
        assert door.refused("plain_text") == len(door.events.all) + sum(one.get("passed_over", 0) for one in door.events.all)

    run_door(tmp_path, body)


def test_handshakes_beyond_the_rate_wait_their_turn_and_those_that_come_too_late_are_refused(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        began = door.host.clock.monotonic()
        clients = await asyncio.gather(*(door.psycopg() for _ in range(6)))
        assert door.host.clock.monotonic() - began >= 0.9
        for client in clients:
            await client.close()

    async def late(door: Door) -> None:
        raw = [await door.raw(encrypted=False) for _ in range(4)]
        for client in raw:
            await client.send(SSL_REQUEST)
        await eventually(lambda: door.refused("handshakes") >= 1)
        for client in raw:
            client.close()

    async def gone(door: Door) -> None:
        async with await door.psycopg():  # The only handshake of this second.
            for _ in range(50):
                client = await door.raw(encrypted=False)
                await client.send(SSL_REQUEST)
                client.close()
            await eventually(lambda: door.server.connections.count == 1)
        began = door.host.clock.monotonic()
        await (await door.psycopg()).close()
        assert door.host.clock.monotonic() - began < 5, "clients that have left keep another one waiting"

    run_door(tmp_path, gone, ServerLimits(handshakes_per_s=1))
    run_door(tmp_path, body, ServerLimits(handshakes_per_s=3))
    run_door(tmp_path, late, ServerLimits(handshakes_per_s=1, login_s=2.0))
