"""Attacks on pages with TLS and a token: recorded requests, old versions of TLS, floods of half-open connections."""

from __future__ import annotations

import asyncio

import pytest

from tests.certificates import CertificateFolder, context_of_old_tls
from tests.flood import AtRest, Flood
from tests.unit.runtime.guarded_pages import TOKEN, Pages, run
from tests.waiting import eventually
from triplicate.runtime.metrics_server import CONNECTIONS_MAX

AUTHORIZED = f"Authorization: Bearer {TOKEN}"
ATTEMPTS = 1000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateFolder:
    return CertificateFolder(tmp_path_factory.mktemp("certificates"))


def test_a_recorded_request_is_worthless_on_another_connection(certificates: CertificateFolder) -> None:
    """Somebody on the network records all that a reader sends, its token among it, and sends it again."""

    async def body(pages: Pages) -> None:
        recorded = bytearray()

        async def between(near: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await relay(near, writer, pages.listener.address, recorded)

        server = await asyncio.start_server(between, "127.0.0.1", 0)
        async with server:
            address = server.sockets[0].getsockname()
            reader, writer = await asyncio.open_connection(*address, ssl=pages.client, server_hostname="localhost")
            writer.write(f"GET /metrics HTTP/1.1\r\n{AUTHORIZED}\r\n\r\n".encode())
            assert (await reader.read()).startswith(b"HTTP/1.0 200 OK")
            writer.close()
        assert len(recorded) > 300
        assert TOKEN.encode() not in recorded
        reader, writer = await asyncio.open_connection(*pages.listener.address)
        writer.write(recorded)
        try:
            answer = await reader.read()
        except ConnectionResetError:
            answer = b""
        writer.close()
        assert b"HTTP" not in answer
        await eventually(lambda: pages.refused("handshake") == 1)

    run(body, certificates)


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: tuple[str, int], recorded: bytearray) -> None:
    """Pass on what comes from either side, and keep what comes from the client."""

    async def answers() -> None:
        while data := await far_reader.read(4096):
            writer.write(data)
        writer.close()

    far_reader, far = await asyncio.open_connection(*address)
    answering = asyncio.ensure_future(answers())
    while data := await reader.read(4096):
        recorded.extend(data)
        far.write(data)
    far.close()
    await answering


def test_the_version_of_tls_is_at_least_1_2(certificates: CertificateFolder) -> None:
    async def body(pages: Pages) -> None:
        pages.client = context_of_old_tls()
        with pytest.raises(OSError):
            await pages.get("/metrics", AUTHORIZED)
        await eventually(lambda: pages.refused("handshake") == 1)

    run(body, certificates)


@pytest.mark.parametrize("first", [b"", b"\x16\x03\x01\x02\x00", b"GET /metrics HTTP/1.1\r\n"], ids=["silent", "half a hello", "in clear"])
def test_a_flood_leaves_nothing_behind_and_a_reader_is_served_afterwards(
    certificates: CertificateFolder, first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages have few connections, and no reader passes while an attacker has them all; each lasts some seconds at most."""
    monkeypatch.setattr("triplicate.runtime.metrics_server.REQUEST_TIMEOUT_S", 1.0)

    async def body(pages: Pages) -> None:
        async def round_of(number: int) -> None:
            flood = Flood(pages.listener.address, first, 2 * CONNECTIONS_MAX)
            await flood.attempt(number)
            assert flood.still_open() <= CONNECTIONS_MAX
            assert flood.opened + flood.refused == number
            await eventually(lambda: flood.still_open() == 0)
            flood.close()
            assert (await pages.get("/metrics", AUTHORIZED))[0] == b"HTTP/1.0 200 OK"

        await round_of(ATTEMPTS // 4)  # The pools and caches fill.
        rest = AtRest()
        await round_of(ATTEMPTS)
        await rest.check(ATTEMPTS)

    run(body, certificates)


def test_an_oversized_record_of_tls_ends_the_connection(certificates: CertificateFolder) -> None:
    """A record of TLS that announces more than any handshake has: the connection ends before it has come."""

    async def body(pages: Pages) -> None:
        reader, writer = await asyncio.open_connection(*pages.listener.address)
        writer.write(b"\x16\x03\x01\xff\xff\x01\xff\xff\xff" + bytes(4096))
        assert await ended_after_alert(reader)
        writer.close()
        await eventually(lambda: pages.refused("handshake") == 1)

    run(body, certificates)


async def ended_after_alert(reader: asyncio.StreamReader) -> bool:
    try:
        return len(await reader.read()) < 100
    except ConnectionResetError:
        return True
