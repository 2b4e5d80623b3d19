"""The TLS identity of a process, and connections that it protects, on both event loops."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from tests.certificates import CertificateFolder
from triplicate.config import SecuritySettings
from triplicate.errors import ConfigError
from triplicate.runtime import Host, real_host
from triplicate.security import ClientCertificates, TlsIdentity

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]
LIMIT_S = 20.0


class Peer(asyncio.Protocol):
    """One end of a connection: keeps what it receives."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.received: asyncio.Queue[bytes] = asyncio.Queue(100)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received.put_nowait(data)


def identity(host: Host, settings: SecuritySettings) -> TlsIdentity:
    return TlsIdentity(settings, host.clock, host.trace)


def run(body: Callable[[Host], Coroutine[Any, Any, None]], loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await body(real_host("test"))

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(limited())


async def handshake(
    host: Host, server: TlsIdentity, client: TlsIdentity, *, name: str = "localhost", clients: ClientCertificates = ClientCertificates.NONE
) -> dict[str, Any] | None:
    """Protect one connection and send a word each way. Returns the certificate of the client as the server sees it.

    Raises:
        OSError: a side refused the other. The error is that of the client, or of the server if the client has none.
    """
    accepted: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()

    class Server(Peer):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            accepted.set_result(self)

    listener = await host.network.listen(Server, "127.0.0.1", 0)
    try:
        plain, near = await host.network.connect(Peer, *listener.address)
        assert isinstance(near, Peer)
        far = await accepted
        assert far.transport is not None
        sides = await asyncio.gather(
            host.network.start_tls(plain, near, client.client_context(), limit_s=5.0, server_name=name),
            host.network.start_tls(far.transport, far, server.server_context(clients), limit_s=5.0, server_name=None),
            return_exceptions=True,
        )
        transports = [side for side in sides if not isinstance(side, BaseException)]
        try:
            for side in sides:
                if isinstance(side, BaseException):
                    raise side
            ours, theirs = transports
            ours.write(b"question")
            got = await asyncio.wait_for(far.received.get(), 5.0)
            assert got == b"question"
            theirs.write(b"answer")
            assert await asyncio.wait_for(near.received.get(), 5.0) == b"answer"
            return cast("dict[str, Any] | None", theirs.get_extra_info("peercert"))
        finally:
            for transport in transports:
                transport.abort()
            await asyncio.sleep(0)
    finally:
        await listener.close()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_connection_is_protected_and_both_sides_are_proven(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(host: Host) -> None:
        folder = CertificateFolder(tmp_path)
        server, client = identity(host, folder.settings("server")), identity(host, folder.settings("client", (), units=("writers",)))
        shown = await handshake(host, server, client, clients=ClientCertificates.REQUIRED)
        assert shown is not None
        assert (("commonName", "client"),) in shown["subject"]
        assert (("organizationalUnitName", "writers"),) in shown["subject"]

    run(body, loop)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("fault", ["other authority", "expired", "other host"])
def test_a_client_refuses_a_server_that_is_not_proven(tmp_path: Path, fault: str, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(host: Host) -> None:
        folder, other = CertificateFolder(tmp_path / "ours"), CertificateFolder(tmp_path / "theirs")
        match fault:
            case "other authority":
                settings = folder.trusting(other.settings("server"))
            case "expired":
                settings = folder.settings("server", valid_s=60.0, made_s_ago=3600.0)
            case _:
                settings = folder.settings("server", ("elsewhere.example",))
        reasons = {"other authority": "unable to get local issuer|self-signed", "expired": "expired", "other host": "localhost"}
        with pytest.raises(ssl.SSLCertVerificationError, match=reasons[fault]):
            await handshake(host, identity(host, settings), identity(host, folder.client_settings()))

    run(body, loop)


def test_a_client_that_does_not_verify_hosts_accepts_another_name_but_no_other_authority(tmp_path: Path) -> None:
    async def body(host: Host) -> None:
        folder, other = CertificateFolder(tmp_path / "ours"), CertificateFolder(tmp_path / "theirs")
        careless = identity(host, replace(folder.client_settings(), verify_host=False))
        await handshake(host, identity(host, folder.settings("server", ("elsewhere.example",))), careless)
        with pytest.raises(ssl.SSLCertVerificationError):
            await handshake(host, identity(host, folder.trusting(other.settings("server"))), careless)

    run(body)


@pytest.mark.parametrize("fault", ["none", "other authority", "expired"])
def test_a_server_that_requires_certificates_refuses_a_client_that_is_not_proven(tmp_path: Path, fault: str) -> None:
    async def body(host: Host) -> None:
        folder, other = CertificateFolder(tmp_path / "ours"), CertificateFolder(tmp_path / "theirs")
        match fault:
            case "none":
                settings = folder.client_settings()
            case "other authority":
                settings = folder.trusting(other.settings("client"))
            case _:
                settings = folder.settings("client", valid_s=60.0, made_s_ago=3600.0)
        with pytest.raises((OSError, TimeoutError)):
            await handshake(host, identity(host, folder.settings("server")), identity(host, settings), clients=ClientCertificates.REQUIRED)

    run(body)


def test_a_peer_that_does_not_speak_tls_fails_the_handshake(tmp_path: Path) -> None:
    async def body(host: Host) -> None:
        folder = CertificateFolder(tmp_path)

        class Talker(Peer):
            def data_received(self, data: bytes) -> None:
                assert self.transport is not None
                self.transport.write(b"what is this?")

        listener = await host.network.listen(Talker, "127.0.0.1", 0)
        plain, near = await host.network.connect(Peer, *listener.address)
        context = identity(host, folder.client_settings()).client_context()
        with pytest.raises(ssl.SSLError):
            await host.network.start_tls(plain, cast("Peer", near), context, limit_s=5.0, server_name="localhost")
        await listener.close()

    run(body)


def test_a_handshake_with_a_silent_peer_ends_at_its_limit(tmp_path: Path) -> None:
    async def body(host: Host) -> None:
        folder = CertificateFolder(tmp_path)
        listener = await host.network.listen(Peer, "127.0.0.1", 0)
        plain, near = await host.network.connect(Peer, *listener.address)
        context = identity(host, folder.client_settings()).client_context()
        with pytest.raises(OSError, match="longer than"):
            await host.network.start_tls(plain, cast("Peer", near), context, limit_s=0.05, server_name="localhost")
        await listener.close()

    run(body)


def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    async def body(host: Host) -> None:
        folder = CertificateFolder(tmp_path)
        settings = replace(folder.settings("client", ()), reload_interval_s=0.1)
        server, client = identity(host, folder.settings("server")), identity(host, settings)
        before = await handshake(host, server, client, clients=ClientCertificates.REQUIRED)
        folder.write("client", folder.authority.issue("renewed", (), time.time(), 3600.0))
        client._check_at = 0.0
        after = await handshake(host, server, client, clients=ClientCertificates.REQUIRED)
        assert before is not None
        assert after is not None
        assert (("commonName", "client"),) in before["subject"]
        assert (("commonName", "renewed"),) in after["subject"]

    run(body)


def test_a_half_written_certificate_leaves_the_former_one_in_use(tmp_path: Path) -> None:
    async def body(host: Host) -> None:
        told: list[str] = []
        folder = CertificateFolder(tmp_path)
        settings = folder.settings("client", ())
        client = TlsIdentity(settings, host.clock, lambda kind, /, **facts: told.append(kind))
        Path(settings.certificate_file).write_bytes(b"-----BEGIN CERT")
        client._check_at = 0.0
        await handshake(host, identity(host, folder.settings("server")), client, clients=ClientCertificates.REQUIRED)
        assert told == ["security.certificate_not_renewed"]

    run(body)


def test_an_identity_that_lacks_a_part_is_refused_with_the_setting(tmp_path: Path) -> None:
    async def body(host: Host) -> None:
        folder = CertificateFolder(tmp_path)
        whole = folder.settings("server")
        other = folder.settings("other")
        for settings, said in (
            (replace(whole, ca_file=""), r"security\.ca_file is not set"),
            (replace(whole, key_file=""), "belong together"),
            (replace(whole, ca_file=whole.key_file), r"security\.ca_file: .* holds no PEM"),
            (replace(whole, ca_file=str(tmp_path / "nothing")), "nothing: No such file"),
            (replace(whole, key_file=other.key_file), "no certificate with its key"),
        ):
            with pytest.raises(ConfigError, match=said):
                identity(host, settings)
        with pytest.raises(ConfigError, match=r"needs security\.certificate_file"):
            identity(host, folder.client_settings()).server_context(ClientCertificates.NONE)
        Path(whole.key_file).chmod(0o640)
        with pytest.raises(ConfigError, match="chmod 600"):
            identity(host, whole)
        assert TlsIdentity.open(SecuritySettings(), host.clock, host.trace) is None

    run(body)
