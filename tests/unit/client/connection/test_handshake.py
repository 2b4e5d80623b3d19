"""A client that requires TLS: it proves the bookie before anything is sent, never goes on in clear, and names the reason of a failure."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from tests.certificates import CertificateFolder
from tests.tls_flight import TlsFlight
from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import PLAY_LIMIT_S
from triplicate.client import Client
from triplicate.config import ClientSettings, SecuritySettings
from triplicate.errors import ArgumentError, ConfigError, HandleClosed, NotEnoughBookies, ReadFailed
from triplicate.metadata import bookie_service
from triplicate.security import ClientCertificates, TlsIdentity
from triplicate.wire import AddRequest, ReadResponse, StartTlsResponse, Status, v3

WIRES = ("v2", "v3")
TLS = replace(QUICK, bookie_tls="required", connect_timeout_s=5.0)
PAYLOADS = [b"%d" % number for number in range(300)]
LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


@asynccontextmanager
async def secured(
    bookies: SecuritySettings, names: str = "abc", clients: ClientCertificates = ClientCertificates.NONE
) -> AsyncIterator[FakeCluster]:
    """A cluster whose bookies have TLS with one certificate."""
    async with fake_cluster(names) as cluster:
        for bookie in cluster.bookies.values():
            bookie.tls = TlsIdentity(bookies, cluster.host.clock, cluster.host.trace)
            bookie.clients = clients
        yield cluster


def client_of(cluster: FakeCluster, security: SecuritySettings | None, settings: ClientSettings = TLS) -> Client:
    return Client(cluster.host, cluster.metadata, settings, security=security)


async def refusals(cluster: FakeCluster, security: SecuritySettings, settings: ClientSettings = TLS) -> tuple[str, str]:
    """The errors of a writer and of a reader that meet only bookies that they do not accept; nothing is stored."""
    async with client_of(cluster, security, settings) as client:
        writer = await client.create()
        with pytest.raises(NotEnoughBookies) as of_writer:
            await writer.append(b"x")
        with pytest.raises(ReadFailed) as of_reader:
            await client.open(writer.ledger_id)
    for bookie in cluster.bookies.values():
        assert bookie.ledgers == {}
        assert bookie.seen == [], "a request was sent to a bookie that was not proven"
    assert "\n" not in str(of_writer.value) + str(of_reader.value)
    return str(of_writer.value), str(of_reader.value)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("wire", WIRES)
def test_entries_are_written_and_read_over_tls(tmp_path: Path, wire: str, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        security, settings = folder.client_settings(), replace(TLS, wire=wire)
        async with secured(folder.settings("bookie")) as cluster, client_of(cluster, security, settings) as client:
            async with await client.create() as writer:
                assert await writer.append_many(PAYLOADS) == range(len(PAYLOADS))
                await writer.force()
            async with await client.open(writer.ledger_id) as reader:
                assert [entry.payload for entry in await reader.read(0, len(PAYLOADS) - 1)] == PAYLOADS
            connections = [each for bookie in cluster.bookies.values() for each in bookie.connections]
            assert connections
            assert all(each.protected for each in connections)

    async def limited() -> None:
        async with asyncio.timeout(PLAY_LIMIT_S):
            await main()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(limited())


@pytest.mark.parametrize("wire", WIRES)
def test_a_bookie_without_tls_is_not_used_in_clear(tmp_path: Path, wire: str) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        async with fake_cluster() as cluster:
            for error in await refusals(cluster, folder.client_settings(), replace(TLS, wire=wire)):
                assert "its answer to START_TLS is BAD_REQUEST" in error
                assert "client.bookie_tls requires it" in error

    run(main())


def test_a_bookie_that_answers_start_tls_and_goes_on_in_clear_is_not_used(tmp_path: Path) -> None:
    """Someone between the two could add to the bytes in clear, and the client would take them for protected ones."""

    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        async with secured(folder.settings("bookie")) as cluster:
            for bookie in cluster.bookies.values():
                bookie.start_tls_tail = v3.encode_response(ReadResponse(Status.NO_ENTRY, 0, 0), 2)
            for error in await refusals(cluster, folder.client_settings()):
                assert "more in clear than its answer to START_TLS" in error

    run(main())


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("other authority", "of an authority that is not in security.ca_file"),
        ("expired", "has expired, or a clock is off"),
        ("other host", "does not name this"),
        ("no authority for servers", "cannot be verified"),
    ],
)
def test_a_bookie_that_is_not_proven_is_refused_with_the_reason(tmp_path: Path, fault: str, told: str) -> None:
    async def main() -> None:
        folder, other = CertificateFolder(tmp_path / "ours"), CertificateFolder(tmp_path / "theirs")
        settings = {
            "other authority": folder.trusting(other.settings("bookie")),
            "expired": folder.settings("expired", valid_s=60.0, made_s_ago=3600.0),
            "other host": folder.settings("elsewhere", ("elsewhere.example",)),
            "no authority for servers": folder.settings("no-server", ()),
        }[fault]
        async with secured(settings) as cluster:
            for error in await refusals(cluster, folder.client_settings()):
                assert "the TLS handshake failed" in error
                assert told in error

    run(main())


def test_the_certificate_must_name_the_host_under_which_the_bookie_is_registered(tmp_path: Path) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        async with secured(folder.settings("bookie", ("localhost",)), "a") as cluster:
            async with client_of(cluster, folder.client_settings()) as client:
                writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
                with pytest.raises(NotEnoughBookies, match="does not name this address"):
                    await writer.append(b"x")
            await cluster.metadata.bookies.register("a", bookie_service("localhost", cluster.ports["a"]))
            async with (
                client_of(cluster, folder.client_settings()) as client,
                await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1) as writer,
            ):
                assert await writer.append(b"x") == 0

    run(main())


def test_hosts_are_not_checked_if_the_settings_say_so(tmp_path: Path) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        async with (
            secured(folder.settings("bookie", ("elsewhere.example",))) as cluster,
            client_of(cluster, replace(folder.client_settings(), verify_host=False)) as client,
            await client.create() as writer,
        ):
            assert await writer.append(b"x") == 0

    run(main())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", ["none", "other authority", "expired"])
def test_a_client_that_the_bookies_do_not_accept_hears_of_its_certificate(tmp_path: Path, fault: str, wire: str) -> None:
    async def main() -> None:
        folder, other = CertificateFolder(tmp_path / "ours"), CertificateFolder(tmp_path / "theirs")
        security = {
            "none": folder.client_settings(),
            "other authority": folder.trusting(other.settings("client")),
            "expired": folder.settings("expired", valid_s=60.0, made_s_ago=3600.0),
        }[fault]
        async with secured(folder.settings("bookie"), clients=ClientCertificates.REQUIRED) as cluster:
            for error in await refusals(cluster, security, replace(TLS, wire=wire)):
                assert "certificate" in error

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_a_client_shows_its_certificate(tmp_path: Path, wire: str) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        async with (
            secured(folder.settings("bookie"), clients=ClientCertificates.REQUIRED) as cluster,
            client_of(cluster, folder.settings("client", ()), replace(TLS, wire=wire)) as client,
            await client.create() as writer,
        ):
            assert await writer.append(b"x") == 0

    run(main())


def test_a_silent_bookie_is_not_waited_for_beyond_the_limit_of_the_connection(tmp_path: Path) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        ended = asyncio.Event()

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(4096):
                pass
            writer.close()
            ended.set()

        silent = await asyncio.start_server(listen, "127.0.0.1", 0)
        async with fake_cluster("a") as cluster, silent:
            port = silent.sockets[0].getsockname()[1]
            await cluster.metadata.bookies.register("a", bookie_service("127.0.0.1", port))
            async with client_of(cluster, folder.client_settings(), replace(TLS, connect_timeout_s=0.2)) as client:
                writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
                with pytest.raises(NotEnoughBookies, match=r"no connection within 0\.2 s, which waited for its answer to START_TLS"):
                    await writer.append(b"x")
            await ended.wait()

    run(main())


def test_the_client_closes_in_the_middle_of_a_handshake(tmp_path: Path) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        arrived = asyncio.Event()
        gone = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked = v3.decode_request(await reader.readexactly(int.from_bytes(await reader.readexactly(4))))
            assert asked.request is not None
            writer.write(v3.encode_response(v3.refusal_of(asked.request, Status.OK), asked.txn_id))
            await reader.readexactly(1)  # The client's hello.
            arrived.set()
            while await reader.read(4096):
                pass
            gone.set()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with fake_cluster("a") as cluster, server:
            await cluster.metadata.bookies.register("a", bookie_service("127.0.0.1", server.sockets[0].getsockname()[1]))
            client = client_of(cluster, folder.client_settings())
            writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
            appending = asyncio.ensure_future(writer.append(b"x"))
            await arrived.wait()
            await client.aclose()
            await gone.wait()  # Nothing holds the connection open.
            with pytest.raises(HandleClosed):
                await appending

    run(main())


def test_settings_that_lack_a_part_are_refused_before_any_connection(tmp_path: Path) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        password = tmp_path / "password"
        password.touch(mode=0o600)
        password.write_text("secret\n")
        login = replace(TLS, user="writer", password_file=str(password))
        async with fake_cluster("a") as cluster:
            for settings, security, told in (
                (TLS, None, r"needs security\.ca_file"),
                (TLS, SecuritySettings(), r"needs security\.ca_file"),
                (replace(login, password_file=""), folder.client_settings(), r"needs client\.password_file"),
                (replace(login, password_file=str(tmp_path / "no")), folder.client_settings(), "cannot be read"),
                (replace(login, user=""), folder.client_settings(), r"needs client\.user"),
                (replace(login, bookie_tls="off", mechanism="PLAIN"), None, "PLAIN needs TLS"),
                (replace(login, bookie_tls="off", mechanism="SCRAM-SHA-256-PLUS"), None, "PLUS needs TLS"),
            ):
                with pytest.raises(ConfigError, match=told):
                    client_of(cluster, security, settings)
            with pytest.raises(ArgumentError, match="use one of them"):
                Client(cluster.host, cluster.metadata, login, authenticate=_Other(), security=folder.client_settings())

    run(main())


class _Other:
    plugin = "other"

    def first_token(self) -> bytes:
        return b""

    def answer(self, token: bytes) -> bytes | None:
        return None


def test_a_refusal_behind_the_handshake_has_its_reason_over_version_2_too(tmp_path: Path) -> None:
    """Apache's bookie refuses START_TLS once more, in version 3, when it does not admit a client whose handshake is complete."""

    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        async with secured(folder.settings("bookie"), "a") as cluster, client_of(cluster, folder.client_settings()) as client:
            cluster["a"].refuses_behind_tls = True
            cluster["a"].when(AddRequest, "drop")
            writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
            with pytest.raises(NotEnoughBookies, match=r"it requires a login, or a role"):
                await writer.append(b"x")

    run(main())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bytes_in_one_segment_with_the_end_of_the_handshake_are_understood(
    tmp_path: Path, version: ssl.TLSVersion, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """In TLS 1.2 the server sends last."""

    async def serve(listening: socket.socket, context: ssl.SSLContext) -> None:
        refusal = v3.encode_response(StartTlsResponse(Status.IO_ERROR), 1)
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            with connection:
                assert await asyncio.get_running_loop().sock_recv(connection, 1024)
                await asyncio.get_running_loop().sock_sendall(connection, v3.encode_response(StartTlsResponse(Status.OK), 1))
                flight = TlsFlight(connection, context, None)
                await flight.shake_hands(refusal[:5])
                assert await flight.receive(1), "the client sends a request"
                await flight.send(refusal[5:])
                await flight.receive(1 << 20)

    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        async with asyncio.timeout(PLAY_LIMIT_S), fake_cluster("a") as cluster:
            context = TlsIdentity(folder.settings("bookie"), cluster.host.clock, cluster.host.trace).server_context(ClientCertificates.NONE)
            context.maximum_version = version
            with socket.create_server(("127.0.0.1", 0)) as listening:
                listening.setblocking(False)
                serving = asyncio.ensure_future(serve(listening, context))
                try:
                    await cluster.metadata.bookies.register("a", bookie_service("127.0.0.1", listening.getsockname()[1]))
                    async with client_of(cluster, folder.client_settings()) as client:
                        writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
                        with pytest.raises(NotEnoughBookies, match=r"it requires a login, or a role"):
                            await writer.append(b"x")
                finally:
                    serving.cancel()
                    await asyncio.gather(serving, return_exceptions=True)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
