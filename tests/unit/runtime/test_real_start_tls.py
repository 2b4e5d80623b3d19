"""Bytes that come in one segment with the end of a TLS handshake, on both event loops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from tests.certificates import CertificateFolder
from tests.tls_flight import TlsFlight, raw_socket
from tests.waiting import LIMIT_S, PLAY_LIMIT_S, eventually
from triplicate.runtime import HeldBytes, Host, close_transport, real_host
from triplicate.security import ClientCertificates, TlsIdentity

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
SIZES = [1, 700_000]
on_both_loops = pytest.mark.parametrize("loop", LOOPS)
with_both_versions = pytest.mark.parametrize("version", VERSIONS)


class Side(asyncio.Protocol):
    """One end of a connection. Notes what its protocol hears, and whether `start_tls` had returned."""

    def __init__(self) -> None:
        self.plain: asyncio.Transport | None = None
        self.protected: asyncio.Transport | None = None
        self.received = bytearray()
        self.heard: list[str] = []
        self.early: list[str] = []
        """Those before it had the transport over TLS."""

    def _hear(self, event: str) -> None:
        self.heard.append(event)
        if self.protected is None:
            self.early.append(event)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.plain = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self.received:
            self._hear("data")
        self.received += data
        if self.protected is not None and not self.protected.is_closing():
            self.protected.write(b"!")

    def eof_received(self) -> None:
        self._hear("end")

    def connection_lost(self, error: Exception | None) -> None:
        self._hear("loss")

    async def protect(self, host: Host, context: ssl.SSLContext, server_name: str | None, *, received: bytes = b"") -> asyncio.Transport:
        assert self.plain is not None
        self.protected = await host.network.start_tls(self.plain, self, context, limit_s=20.0, server_name=server_name, received=received)
        return self.protected


def run(body: Callable[[Host], Coroutine[Any, Any, None]], loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(PLAY_LIMIT_S):
            await body(real_host("test"))

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(limited())


def contexts(tmp_path: Path, host: Host, version: ssl.TLSVersion) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Those of a server and of a client."""
    folder = CertificateFolder(tmp_path)
    server = TlsIdentity(folder.settings("server"), host.clock, host.trace).server_context(ClientCertificates.NONE)
    client = TlsIdentity(folder.client_settings(), host.clock, host.trace).client_context()
    client.maximum_version = version
    return server, client


@asynccontextmanager
async def accepted(host: Host) -> AsyncIterator[tuple[Side, socket.socket]]:
    """A connection that the port has accepted, and the client's socket."""
    sides: list[Side] = []

    def accept() -> Side:
        sides.append(Side())
        return sides[-1]

    listener = await host.network.listen(accept, "127.0.0.1", 0)
    try:
        with await raw_socket(*listener.address) as near:
            await eventually(lambda: bool(sides) and sides[0].plain is not None)
            yield sides[0], near
            for transport in (sides[0].protected, sides[0].plain):
                if transport is not None and not transport.is_closing():
                    transport.abort()
            await asyncio.sleep(0)
    finally:
        await listener.close()


@on_both_loops
@pytest.mark.parametrize("size_bytes", SIZES)
def test_a_server_hears_a_client_that_sends_at_once_after_it_has_the_transport(
    tmp_path: Path, size_bytes: int, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(host: Host) -> None:
        server, client = contexts(tmp_path, host, ssl.TLSVersion.TLSv1_3)
        request = bytes(number % 251 for number in range(size_bytes))
        async with accepted(host) as (far, near):
            flight = TlsFlight(near, client, "localhost")
            await asyncio.gather(far.protect(host, server, None), flight.shake_hands(request))
            await eventually(lambda: len(far.received) == size_bytes)
            assert far.early == []
            assert await flight.receive(1) == b"!"
            await flight.send(b"more")
            await eventually(lambda: len(far.received) == size_bytes + 4)
            assert bytes(far.received) == request + b"more"

    run(body, loop)


@on_both_loops
def test_a_server_hears_a_client_of_tls_1_2_that_takes_up_a_session_after_it_has_the_transport(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(host: Host) -> None:
        server, client = contexts(tmp_path, host, ssl.TLSVersion.TLSv1_2)
        async with accepted(host) as (far, near):
            first = TlsFlight(near, client, "localhost")
            await asyncio.gather(far.protect(host, server, None), first.shake_hands())
        async with accepted(host) as (far, near):
            flight = TlsFlight(near, client, "localhost", first.tls.session)
            await asyncio.gather(far.protect(host, server, None), flight.shake_hands(b"question"))
            assert flight.tls.session_reused
            await eventually(lambda: bool(far.received))
            assert (bytes(far.received), far.early) == (b"question", [])
            assert await flight.receive(1) == b"!"

    run(body, loop)


@on_both_loops
@with_both_versions
@pytest.mark.parametrize("size_bytes", SIZES)
def test_a_client_hears_a_server_that_sends_at_once_after_it_has_the_transport(
    tmp_path: Path, size_bytes: int, version: ssl.TLSVersion, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(host: Host) -> None:
        server, client = contexts(tmp_path, host, version)
        greeting = bytes(number % 251 for number in range(size_bytes))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            _, protocol = await host.network.connect(Side, *listening.getsockname())
            near = cast("Side", protocol)
            far, _ = await asyncio.get_running_loop().sock_accept(listening)
            with far:
                flight = TlsFlight(far, server, None)
                protected, _ = await asyncio.gather(near.protect(host, client, "localhost"), flight.shake_hands(greeting))
                await eventually(lambda: len(near.received) == size_bytes)
                assert near.early == []
                assert bytes(near.received) == greeting
                assert await flight.receive(1) == b"!"
                protected.abort()
                await eventually(lambda: near.heard[-1] == "loss")

    run(body, loop)


@on_both_loops
def test_a_client_that_sends_and_leaves_at_once_is_heard_in_order(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(host: Host) -> None:
        server, client = contexts(tmp_path, host, ssl.TLSVersion.TLSv1_3)
        async with accepted(host) as (far, near):
            flight = TlsFlight(near, client, "localhost")
            await asyncio.gather(far.protect(host, server, None), flight.shake_hands(b"goodbye", says_goodbye=True))
            await eventually(lambda: "loss" in far.heard)
            assert (far.heard, bytes(far.received), far.early) == (["data", "end", "loss"], b"goodbye", [])

    run(body, loop)


@on_both_loops
def test_a_connection_that_its_owner_aborts_at_once_receives_nothing(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(host: Host) -> None:
        server, client = contexts(tmp_path, host, ssl.TLSVersion.TLSv1_3)
        async with accepted(host) as (far, near):

            async def protect_and_abort() -> None:
                (await far.protect(host, server, None)).abort()

            await asyncio.gather(protect_and_abort(), TlsFlight(near, client, "localhost").shake_hands(b"question"))
            await eventually(lambda: bool(far.heard))
            assert far.heard == ["loss"]

    run(body, loop)


@on_both_loops
def test_a_handshake_whose_first_bytes_were_held_is_completed(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(host: Host) -> None:
        server, client = contexts(tmp_path, host, ssl.TLSVersion.TLSv1_3)
        async with accepted(host) as (far, near):
            assert far.plain is not None
            held = HeldBytes(far.plain, far.connection_lost)
            flight = TlsFlight(near, client, "localhost")
            shaking = asyncio.ensure_future(flight.shake_hands(b"question"))
            await eventually(lambda: len(held.take()) > 100)
            await asyncio.gather(far.protect(host, server, None, received=held.take()), shaking)
            await eventually(lambda: bool(far.received))
            assert (bytes(far.received), far.early) == (b"question", [])
            assert await flight.receive(1) == b"!"

    run(body, loop)


@on_both_loops
def test_a_cancelled_handshake_leaves_no_connection_and_delivers_nothing(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(host: Host) -> None:
        server, client = contexts(tmp_path, host, ssl.TLSVersion.TLSv1_3)
        async with accepted(host) as (far, near):
            protecting = asyncio.ensure_future(far.protect(host, server, None))
            await asyncio.sleep(0)
            protecting.cancel()
            with pytest.raises(OSError):
                await TlsFlight(near, client, "localhost").shake_hands(b"question")
            with pytest.raises(asyncio.CancelledError):
                await protecting
            assert "data" not in far.heard

    run(body, loop)


@on_both_loops
def test_a_handshake_over_a_connection_that_has_ended_fails_at_once(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Otherwise it lasts for its limit in asyncio, and for ever in uvloop."""

    async def body(host: Host) -> None:
        server, _ = contexts(tmp_path, host, ssl.TLSVersion.TLSv1_3)
        async with accepted(host) as (far, near):
            near.close()
            await eventually(lambda: "loss" in far.heard)
            async with asyncio.timeout(LIMIT_S):
                with pytest.raises(ConnectionResetError, match="closed before the TLS handshake"):
                    await far.protect(host, server, None)

    run(body, loop)


@on_both_loops
@with_both_versions
@pytest.mark.parametrize("waiting", [b"", b"y" * 70_000], ids=["nothing waits", "bytes wait"])
def test_a_connection_that_the_peer_ended_while_it_was_paused_closes(
    tmp_path: Path, waiting: bytes, version: ssl.TLSVersion, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(host: Host) -> None:
        server, client = contexts(tmp_path, host, version)
        async with accepted(host) as (far, near):
            flight = TlsFlight(near, client, "localhost")
            protected, _ = await asyncio.gather(far.protect(host, server, None), flight.shake_hands())
            protected.pause_reading()
            if waiting:
                await flight.send(waiting)
            near.shutdown(socket.SHUT_WR)
            # asyncio shows the end nowhere as long as the connection is paused; these turns of the loop are enough to process it.
            await asyncio.sleep(0.05)
            close_transport(protected)
            await eventually(lambda: "loss" in far.heard)

    run(body, loop)


@on_both_loops
def test_what_was_written_before_a_close_arrives(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(host: Host) -> None:
        async with accepted(host) as (far, near):
            assert far.plain is not None
            far.plain.pause_reading()
            far.plain.write(b"z" * 10_000_000)
            close_transport(far.plain)
            close_transport(far.plain)
            received = 0
            while chunk := await asyncio.get_running_loop().sock_recv(near, 1 << 20):
                received += len(chunk)
            assert received == 10_000_000
            await eventually(lambda: "loss" in far.heard)

    run(body, loop)
