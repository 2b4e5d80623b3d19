"""Floods of connections to the port for clients of Redis: half-open ones and TLS handshakes are bounded, and honest clients are served."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tests.flood import AtRest, Flood, client_hello
from tests.unit.kv.resp.login_rig import Door, run_door
from tests.unit.kv.resp.resp_rig import Stand, play
from tests.waiting import eventually
from triplicate.kv.resp.resp_connections import RespLimits
from triplicate.security import REFUSALS_PER_S

LIMIT, KEPT, ATTEMPTS = 50, 150, 2000


def test_a_flood_of_connections_is_bounded_and_a_client_logs_in_meanwhile(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        async with door.client() as before:
            assert await before.ping()
            flood = [await asyncio.open_connection("127.0.0.1", door.stand.port) for _ in range(60)]
            await eventually(lambda: door.refused("half_open") == 50)
            await eventually(lambda: door.stand.server.count == 11)
            async with door.client() as client:
                assert await client.set("a", "1")
            assert await before.get("a") == b"1"
            for _, writer in flood:
                writer.close()
            await eventually(lambda: door.stand.server.count == 1)

    run_door(tmp_path, body, limits=RespLimits(half_open=20, half_open_per_address=10))


@pytest.mark.parametrize("first", [b"", client_hello()], ids=["silent", "hello"])
def test_a_flood_leaves_nothing_behind_and_an_honest_client_is_served(tmp_path: Path, first: bytes) -> None:
    """A million of them: tests/process/test_floods.py."""

    async def body(door: Door) -> None:
        async def round_of(number: int) -> None:
            flood = Flood(door.stand.server.address, first, KEPT)
            await flood.attempt(number)
            await eventually(lambda: door.stand.server.count <= LIMIT)
            assert flood.opened + flood.refused == number
            async with door.client() as client:
                assert await client.set("a", "1")
            flood.close()
            await eventually(lambda: door.stand.server.count == 0)

        await round_of(ATTEMPTS // 4)  # The pools and caches fill.
        rest = AtRest()
        await round_of(ATTEMPTS)
        await rest.check(ATTEMPTS)

    run_door(tmp_path, body, limits=RespLimits(half_open=LIMIT, half_open_per_address=LIMIT, handshakes_per_s=100))


def test_a_flood_in_clear_leaves_nothing_behind_and_an_honest_client_is_served(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async def round_of(number: int) -> None:
            flood = Flood(stand.server.address, b"*2\r\n$3\r\nGE", KEPT)
            await flood.attempt(number)
            await eventually(lambda: stand.server.count <= LIMIT)
            assert flood.opened + flood.refused == number
            raw = await stand.raw()
            assert await raw.ask(b"PING\r\n") == b"+PONG"
            raw.close()
            flood.close()
            await eventually(lambda: stand.server.count == 0)

        await round_of(ATTEMPTS // 4)  # The pools and caches fill.
        rest = AtRest()
        await round_of(ATTEMPTS)
        await rest.check(ATTEMPTS)

    play(tmp_path, scene, limits=RespLimits(half_open=LIMIT, half_open_per_address=LIMIT))


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_handshakes_beyond_the_rate_wait_their_turn(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(door: Door) -> None:
        began = asyncio.get_running_loop().time()
        clients = await asyncio.gather(*(door.raw() for _ in range(6)))
        assert asyncio.get_running_loop().time() - began >= 0.9
        for client in clients:
            assert await client.ask(b"ECHO a\r\n") == b"-NOAUTH Authentication required."
            client.close()

    run_door(tmp_path, body, limits=RespLimits(handshakes_per_s=3), loop=loop)


def test_a_handshake_whose_turn_comes_too_late_is_refused(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        waiting = [await door.stand.raw() for _ in range(4)]
        await eventually(lambda: door.refused("handshakes") >= 1)
        with contextlib.suppress(ConnectionError):
            assert await waiting[-1].rest() == b""
        for client in waiting:
            client.close()

    run_door(tmp_path, body, limits=RespLimits(handshakes_per_s=1, login_s=2.0))


def test_connections_that_have_left_or_were_crowded_out_keep_no_other_handshake_waiting(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        crowd = [await door.stand.raw() for _ in range(60)]
        await eventually(lambda: door.refused("half_open") >= 58)
        began = asyncio.get_running_loop().time()
        honest = await door.raw()
        assert asyncio.get_running_loop().time() - began < 10, "connections that are gone keep another one waiting"
        for client in (*crowd, honest):
            client.close()
        await eventually(lambda: door.stand.server.count == 0)
        for _ in range(50):
            gone = await door.stand.raw()
            gone.writer.write(client_hello())
            gone.close()
        await eventually(lambda: door.stand.server.count == 0)
        began = asyncio.get_running_loop().time()
        (await door.raw()).close()
        assert asyncio.get_running_loop().time() - began < 10, "clients that have left keep another one waiting"

    run_door(tmp_path, body, limits=RespLimits(handshakes_per_s=1, half_open_per_address=2))


def test_a_flood_of_refused_connections_does_not_fill_the_audit_log(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        async def attempt() -> None:
            client = await door.stand.raw()
            client.writer.write(b"PING\r\n")
            with contextlib.suppress(ConnectionError):
                await client.rest()
            client.close()

        attempts = 10 * REFUSALS_PER_S
        began = asyncio.get_running_loop().time()
        for _ in range(attempts):
            await attempt()
        await eventually(lambda: door.refused("tls") == attempts)
        seconds = asyncio.get_running_loop().time() - began
        assert len(door.events.all) <= (1 + seconds) * REFUSALS_PER_S
        lines = len(door.events.all)
        while len(door.events.all) == lines:
            await attempt()
        await eventually(lambda: door.refused("tls") == len(door.events.all) + sum(one.get("passed_over", 0) for one in door.events.all))

    run_door(tmp_path, body)
