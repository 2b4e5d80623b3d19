"""Connections: TLS from their first byte, and limits on half-open and stalled ones."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tests.certificates import DAY_S, CertificateFolder, context_of_old_tls
from tests.unit.kv.resp.login_rig import PASSWORD, Door, run_door
from tests.unit.kv.resp.resp_rig import Stand, play, request
from tests.waiting import eventually
from triplicate.kv.resp.resp_connections import RespLimits

PONG = b"+PONG\r\n"


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_clients_with_tls_are_served(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(door: Door) -> None:
        async with door.client() as client:
            await client.set("a", "x" * 4000)
            assert await client.get("a") == b"x" * 4000
            assert await client.mget(*["a"] * 500) == [b"x" * 4000] * 500

    run_door(tmp_path, body, loop=loop)


@pytest.mark.parametrize(
    "sent",
    [request(b"AUTH", b"anna", PASSWORD.encode()), b"PING\r\n", b"\x16\x03\x01\xff\xff" + b"a" * 70_000],
    ids=["AUTH", "PING", "record"],
)
def test_what_is_no_handshake_ends_the_connection(tmp_path: Path, sent: bytes) -> None:
    async def body(door: Door) -> None:
        raw = await door.stand.raw()
        raw.writer.write(sent)
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = await raw.rest()
        assert b"+" not in answer
        await eventually(lambda: door.refused("tls") == 1)
        assert [(one["event"], one["reason"]) for one in door.events.all] == [("login refused", "tls")]
        raw.close()

    run_door(tmp_path, body)


def test_an_old_version_of_tls_is_refused(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await door.raw(context_of_old_tls())
        await eventually(lambda: door.refused("tls") == 1)

    run_door(tmp_path, body)


@pytest.mark.parametrize(("shown", "is_accepted"), [("anna", True), ("ben", False), ("expired", False), ("stranger", False), (None, False)])
def test_certificates_of_clients_are_demanded_by_the_rule(tmp_path: Path, shown: str | None, is_accepted: bool) -> None:
    async def body(door: Door) -> None:
        if shown == "expired":
            context = door.context("anna", made_s_ago=DAY_S, valid_s=60)
        elif shown == "stranger":
            context = door.context("anna", CertificateFolder(tmp_path / "others"))
        else:
            context = door.context(shown)
        answer = b""
        try:
            raw = await door.raw(context)
            answer = await raw.ask(request(b"AUTH", b"anna", PASSWORD.encode()))
            raw.close()
        except (ssl.SSLError, ConnectionError):
            pass  # A refusal: during the handshake with TLS 1.2, at the first read with TLS 1.3.
        assert (answer == b"+OK") is is_accepted
        if not is_accepted:
            await eventually(lambda: door.refused("certificate" if shown == "ben" else "tls") == 1)

    run_door(tmp_path, body, client_certificates="role")


def test_clients_verify_the_server(tmp_path: Path) -> None:
    def of_another(folder: CertificateFolder) -> object:
        return folder.trusting(CertificateFolder(tmp_path / "false").settings("node"))

    async def body(door: Door) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            await door.raw()

    run_door(tmp_path, body, certificate=of_another)  # type: ignore[arg-type]


def test_a_stranger_that_sends_much_is_refused_before_it_has_sent_it(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        for data in (b"*1\r\n$20000\r\n", b"*11\r\n", b"a" * 16384):
            raw = await door.raw()
            raw.writer.write(data)
            assert b"-ERR Protocol error: " in await raw.rest()
            raw.close()
        raw = await door.raw()
        assert await raw.ask(request(b"AUTH", b"anna", PASSWORD.encode())) == b"+OK"
        assert await raw.ask(request(b"DEL", *[b"k"] * 5000)) == b":0"
        raw.close()

    run_door(tmp_path, body)


def test_a_client_that_says_nothing_is_closed_in_time(tmp_path: Path) -> None:
    async def body(door: Door) -> None:
        silent, connected = await door.stand.raw(), await door.raw()
        with_tls = await connected.rest()
        assert with_tls == b""
        with contextlib.suppress(ConnectionError):
            await silent.rest()
        assert door.refused("time") == 2
        silent.close()
        connected.close()

    run_door(tmp_path, body, limits=RespLimits(login_s=0.2))


def test_a_client_that_reads_nothing_is_disconnected_and_memory_is_bounded(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        async with stand.client() as client:
            await client.set("a", "x" * 4000)
            raw = await stand.raw()
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            raw.writer.write(request(b"GET", b"a") * 20_000)
            await eventually(lambda: stand.server.count == 2)
            await eventually(lambda: stand.server.count == 1)
            assert await client.ping()
            raw.close()

    play(tmp_path, scene, limits=RespLimits(client_stall_s=0.3))


def test_half_a_request_ends_the_connection_and_an_idle_one_stays(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        idle, half = await stand.raw(), await stand.raw()
        assert await idle.ask(b"PING\r\n") == b"+PONG"
        half.writer.write(b"PING\r\n*2\r\n$3\r\nGET\r\n$5\r\nab")
        with contextlib.suppress(ConnectionError):
            assert await half.rest() == PONG
        assert await idle.ask(b"PING\r\n") == b"+PONG"
        idle.close()
        half.close()

    play(tmp_path, scene, limits=RespLimits(client_stall_s=0.2))
