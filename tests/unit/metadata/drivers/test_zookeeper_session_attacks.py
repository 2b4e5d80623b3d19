"""Attacks on a secured ZooKeeper, and on processes of ours by a false one.

Source of the server's answers: ZooKeeper `NettyServerCnxnFactory`, `NettyServerCnxn`, `ZooKeeperServer.processSasl`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import pytest
from puresasl.client import SASLClient

from tests.certificates import context_of_old_tls
from tests.flood import Flood
from tests.unit.metadata.stores import run
from tests.waiting import PLAY_LIMIT_S, wait_until
from tests.zookeeper.secured import PASSWORD, SecuredZooKeeper
from triplicate.errors import AccessRefused, TriplicateError
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
from triplicate.runtime import real_host

LIMIT_S = 15.0
CONNECTIONS_MAX = 20
ATTACKER = "127.0.0.2"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    secured = SecuredZooKeeper(tmp_path_factory.mktemp("attacked"), maxClientCnxns=CONNECTIONS_MAX)
    secured.server.start()
    yield secured
    secured.server.stop()


async def opened(zookeeper: SecuredZooKeeper, address: str = "") -> ZooKeeperTree:
    return await ZooKeeperTree.open(address or zookeeper.server.address, real_host("test"), limit_s=LIMIT_S, access=zookeeper.access())


def test_a_recorded_login_is_worthless_on_another_connection(zookeeper: SecuredZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: list[bytes] = []
    process = SASLClient.process

    def recorded(self: SASLClient, challenge: bytes | None = None) -> bytes:
        token: bytes = process(self, challenge)
        tokens.append(token or b"")
        return token

    async def body() -> None:
        monkeypatch.setattr(SASLClient, "process", recorded)
        tree = await opened(zookeeper)
        await tree.close()
        login = max(tokens, key=len)
        assert b"response=" in login
        # The same user once more: the nonce of the server is another one, so the recorded proof does not fit.
        monkeypatch.setattr(SASLClient, "process", lambda self, challenge=None: login if challenge else b"")
        with pytest.raises(AccessRefused, match="refuses user triplicate"):
            await (await opened(zookeeper)).close()
        monkeypatch.setattr(SASLClient, "process", process)
        await (await opened(zookeeper)).close()

    run(body(), 3 * LIMIT_S)


def test_a_process_that_requires_tls_sends_nothing_to_a_server_without(zookeeper: SecuredZooKeeper) -> None:
    """Somebody stands in the place of the server and speaks in clear, so that the process may follow."""

    async def body() -> None:
        received = bytearray()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            received.extend(await reader.read(4096))
            writer.write(bytes([0, 0, 0, 37]) + bytes(37))  # The answer to a request for a session, in clear.
            received.extend(await reader.read(4096))
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            limited = ZooKeeperTree.open(f"{host}:{port}", real_host("test"), limit_s=2.0, access=zookeeper.access())
            with pytest.raises(TriplicateError) as told:
                await (await limited).close()
        assert "\n" not in str(told.value)
        assert received[:2] == b"\x16\x03", "the first record is not the hello of a TLS handshake"
        assert not any(secret in received for secret in (PASSWORD.encode(), b"triplicate", b"sasl", b"digest"))

    run(body(), 2 * LIMIT_S)


def test_an_old_version_of_tls_is_refused(zookeeper: SecuredZooKeeper) -> None:
    old = context_of_old_tls()
    security = zookeeper.client_security
    old.load_cert_chain(security.certificate_file, security.key_file)
    with socket.create_connection(("127.0.0.1", zookeeper.server.port), LIMIT_S) as plain, pytest.raises(OSError):
        old.wrap_socket(plain).recv(1)


def context_of(zookeeper: SecuredZooKeeper) -> ssl.SSLContext:
    """A client that shows a certificate of the authority, and verifies nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    security = zookeeper.client_security
    context.load_cert_chain(security.certificate_file, security.key_file)
    return context


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x10\x00\x00\x00"])
def test_an_oversized_first_request_ends_the_connection(zookeeper: SecuredZooKeeper, length: bytes) -> None:
    with (
        socket.create_connection(("127.0.0.1", zookeeper.server.port), LIMIT_S) as plain,
        context_of(zookeeper).wrap_socket(plain) as protected,
    ):
        protected.sendall(length + bytes(1000))
        with contextlib.suppress(ConnectionResetError):
            assert protected.recv(100) == b""


def test_a_flood_of_connections_keeps_no_process_out(zookeeper: SecuredZooKeeper) -> None:
    """ZooKeeper limits the connections of an address, and so those of an attacker, also before their handshake."""

    async def body() -> None:
        flood = Flood(("127.0.0.1", zookeeper.server.port), b"", 500, (ATTACKER,))
        try:
            await flood.attempt(500)
            await asyncio.to_thread(wait_until, lambda: flood.still_open() <= CONNECTIONS_MAX, PLAY_LIMIT_S, "the flood is bounded")
            tree = await opened(zookeeper)
            assert await tree.exists("/nothing") is None
            await tree.close()
        finally:
            flood.close()

    run(body(), 2 * PLAY_LIMIT_S)
