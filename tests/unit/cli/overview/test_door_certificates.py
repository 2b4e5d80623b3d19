"""The certificates of servers, as they show them in a handshake."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from tests.certificates import DAY_S, CertificateFolder
from triplicate.cli.overview.core.cluster_facts import ClusterFacts, DoorCertificate, Listed
from triplicate.cli.overview.core.cluster_problems import problems_of
from triplicate.cli.overview.door_certificates import POSTGRES_SSL_REQUEST, certificate_of_bookie, certificate_of_node
from triplicate.config import SecuritySettings
from triplicate.runtime import Host, TaskScope, real_host
from triplicate.security import ClientCertificates, TlsIdentity
from triplicate.wire import StartTlsRequest, StartTlsResponse, Status, v3

BOOKIE_REQUEST = v3.encode_request(StartTlsRequest(), 1)
ACCEPTED = v3.encode_response(StartTlsResponse(Status.OK), 1)
REFUSED = v3.encode_response(StartTlsResponse(Status.BAD_REQUEST), 1)
LIMIT_S = 20.0


@dataclass
class Server(asyncio.Protocol):
    """Answers one request in clear, and then begins TLS if it has an identity."""

    host: Host
    scope: TaskScope
    request: bytes
    answer: bytes
    identity: TlsIdentity | None
    received: bytes = field(default=b"")
    transport: asyncio.Transport | None = None

    def __hash__(self) -> int:
        return id(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        assert self.transport is not None
        if self.received == self.request:
            self.transport.write(self.answer)
            if self.identity is not None:
                self.scope.spawn(self._protect(self.transport, self.identity), name="handshake")

    async def _protect(self, transport: asyncio.Transport, identity: TlsIdentity) -> None:
        context = identity.server_context(ClientCertificates.NONE)
        try:
            await self.host.network.start_tls(transport, self, context, limit_s=5.0, server_name=None)
        except OSError:
            return


@asynccontextmanager
async def serving(host: Host, request: bytes, answer: bytes, settings: SecuritySettings | None) -> AsyncIterator[str]:
    identity = None if settings is None else TlsIdentity(settings, host.clock, host.trace)
    scope = TaskScope("servers")
    listener = await host.network.listen(lambda: Server(host, scope, request, answer, identity), "127.0.0.1", 0)
    try:
        yield "{}:{}".format(*listener.address)
    finally:
        await listener.close()
        await scope.aclose()


def ask_bookie(client: SecuritySettings, server: SecuritySettings | None, answer: bytes = ACCEPTED) -> DoorCertificate | None:
    async def body() -> DoorCertificate | None:
        host = real_host("test")
        async with asyncio.timeout(LIMIT_S), serving(host, BOOKIE_REQUEST, answer, server) as address:
            return await certificate_of_bookie(host, TlsIdentity(client, host.clock, host.trace), "b1", address)

    return asyncio.run(body())


def ask_node(client: SecuritySettings, server: SecuritySettings | None, answer: bytes = b"S") -> DoorCertificate | None:
    async def body() -> DoorCertificate | None:
        host = real_host("test")
        async with asyncio.timeout(LIMIT_S), serving(host, POSTGRES_SSL_REQUEST, answer, server) as address:
            return await certificate_of_node(host, TlsIdentity(client, host.clock, host.trace), "n1", address)

    return asyncio.run(body())


Ask = Callable[[SecuritySettings, SecuritySettings | None], DoorCertificate | None]


@pytest.mark.parametrize(("ask", "door"), [(ask_bookie, "bookie b1"), (ask_node, "node n1")])
def test_the_end_of_a_certificate_comes_from_the_server_itself(tmp_path: Path, ask: Ask, door: str) -> None:
    folder = CertificateFolder(tmp_path)
    found = ask(folder.client_settings(), folder.settings("server", valid_s=3 * DAY_S))
    assert found is not None
    assert (found.place, found.failure) == (door, "")
    assert found.expires_s == pytest.approx(time.time() + 3 * DAY_S, abs=60)


@pytest.mark.parametrize("ask", [ask_bookie, ask_node])
def test_a_certificate_that_is_not_accepted_is_named_with_the_reason(tmp_path: Path, ask: Ask) -> None:
    folder, stranger = CertificateFolder(tmp_path / "one"), CertificateFolder(tmp_path / "another")
    for server in (
        folder.settings("late", valid_s=DAY_S, made_s_ago=2 * DAY_S),
        folder.settings("elsewhere", ("other.example",)),
        stranger.settings("foreign"),
    ):
        found = ask(folder.client_settings(), server)
        assert found is not None
        assert found.expires_s is None
        assert "handshake failed" in found.failure


def test_a_server_without_tls_has_no_certificate(tmp_path: Path) -> None:
    folder = CertificateFolder(tmp_path)
    assert ask_bookie(folder.client_settings(), None, REFUSED) is None
    assert ask_node(folder.client_settings(), None, b"N") is None


def test_another_answer_is_no_certificate(tmp_path: Path) -> None:
    client = CertificateFolder(tmp_path).client_settings()
    found = ask_bookie(client, None, b"HTTP/1.0 400 Bad Request\r\n\r\n")
    assert found is not None
    assert found.failure.startswith("it does not answer as a server of its kind")


def test_a_certificate_that_ends_soon_or_fails_is_a_problem() -> None:
    now_ms = 1_800_000_000_000
    certificates = (
        DoorCertificate("bookie b1", now_ms / 1000 + 20 * DAY_S),
        DoorCertificate("bookie b2", now_ms / 1000 + 10 * DAY_S),
        DoorCertificate("node n1", None, "the TLS handshake failed: expired"),
    )
    problems = problems_of(ClusterFacts("id", now_ms, certificates=Listed(certificates)))
    texts = [one.text for one in problems if "certificate" in one.text]
    assert texts == [
        "the certificate of bookie b2: expires in 10 days",
        "the certificate of node n1: the TLS handshake failed: expired",
    ]
