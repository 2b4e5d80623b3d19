"""Pages with TLS and a token, for tests: the listener, and a client that sends any request."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tests.certificates import CertificateFolder
from triplicate.runtime import Listener, Metrics, PageGuard, ProbeAnswer, real_host, serve_metrics
from triplicate.security import ClientCertificates, TlsIdentity
from triplicate.security.core.bearer_tokens import BearerTokens

TOKEN = "a-token-of-these-tests"
LIMIT_S = 30.0


@dataclass
class Pages:
    """Pages under test."""

    listener: Listener
    metrics: Metrics
    client: ssl.SSLContext | None
    traced: list[dict[str, object]] = field(default_factory=list)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self.listener.address
        return await asyncio.open_connection(host, port, ssl=self.client, server_hostname="localhost" if self.client else None)

    async def get(self, path: str, *headers: str, method: str = "GET") -> tuple[bytes, bytes]:
        """The status line and what follows it."""
        reader, writer = await self.connect()
        writer.write("\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode())
        answer = await reader.read()
        writer.close()
        status, _, rest = answer.partition(b"\r\n")
        return status, rest

    def refused(self, reason: str) -> float:
        text = self.metrics.expose().decode()
        found = [line for line in text.splitlines() if line.startswith(f'triplicate_page_requests_refused_total{{reason="{reason}"}}')]
        return float(found[0].rpartition(" ")[2]) if found else 0.0


def run(
    body: Callable[[Pages], Coroutine[Any, Any, None]],
    certificates: CertificateFolder | None,
    *,
    tokens: str = TOKEN,
    loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            traced: list[dict[str, object]] = []
            host = real_host("test", trace=lambda kind, /, **facts: traced.append({"kind": kind, **facts}))
            context = client = None
            if certificates is not None:
                identity = TlsIdentity(certificates.settings("server"), host.clock, host.trace)
                context = lambda: identity.server_context(ClientCertificates.NONE)  # noqa: E731
                client = TlsIdentity(certificates.client_settings(), host.clock, host.trace).client_context()
            metrics = Metrics()
            guard = PageGuard(context, BearerTokens(tokens).admits if tokens else None, frozenset(["/health"]))
            probes = {"/health": lambda: ProbeAnswer(True), "/ready": lambda: ProbeAnswer(True)}
            listener = await serve_metrics(host, metrics, 0, probes=probes, guard=guard)
            try:
                await body(Pages(listener, metrics, client, traced))
            finally:
                await listener.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(limited())


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True
