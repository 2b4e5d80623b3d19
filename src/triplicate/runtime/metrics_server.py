"""``/metrics`` and the health probes: a small HTTP/1.0 responder on the network port, so that no second server stack is needed.

Source of the bearer token in the header and of the answer 401: RFC 6750.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from triplicate.runtime.eager import start_eagerly
from triplicate.runtime.metrics import CONTENT_TYPE, Metrics
from triplicate.runtime.ports import Host, Listener, Timer
from triplicate.runtime.task_scope import TaskScope

if TYPE_CHECKING:
    import ssl

REQUEST_BYTES_MAX = 8192
REQUEST_TIMEOUT_S = 5.0
CONNECTIONS_MAX = 32
REFUSALS_TRACED_INTERVAL_S = 1.0
"""Refused requests are all counted, and traced at most once in this time: who is refused must not fill the log."""
METHODS = (b"GET", b"HEAD")


@dataclass(frozen=True)
class ProbeAnswer:
    """The result of a probe."""

    well: bool
    """Answered with status 200, else with 503."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """The body, as one JSON object."""


Probe = Callable[[], ProbeAnswer]
"""Called on the loop for each request; it must not block."""


@dataclass(frozen=True)
class PageGuard:
    """How the pages are protected."""

    context: Callable[[], ssl.SSLContext] | None = None
    """The present context of a server, for each connection; None: connections are plain."""
    admits: Callable[[str], bool] | None = None
    """Whether a bearer token is right; None: no token is asked for."""
    free: frozenset[str] = frozenset()
    """Paths that need no token."""


class PagesListener:
    """The listener of the pages. `close` also ends handshakes that are under way."""

    def __init__(self, listener: Listener, scope: TaskScope) -> None:
        self._listener = listener
        self._scope = scope

    @property
    def address(self) -> tuple[str, int]:
        return self._listener.address

    async def close(self) -> None:
        try:
            await self._listener.close()
        finally:
            await self._scope.aclose()


async def serve_metrics(
    host: Host,
    metrics: Metrics,
    port: int,
    address: str = "127.0.0.1",
    probes: Mapping[str, Probe] | None = None,
    guard: PageGuard | None = None,
) -> Listener:
    """Answer GET and HEAD of ``/metrics`` and of the probes' paths until the listener is closed; any other path is 404.

    A request may have `REQUEST_BYTES_MAX` bytes; handshake, request and answer together may take `REQUEST_TIMEOUT_S`. With a guard, a
    request without the right token is answered 401, for every path and method.

    Args:
        port: 0 for a free one; see `Listener.address`.
        address: loopback by default; an IPv6 address has no brackets.
        probes: by path, such as ``/health``.
        guard: None: plain connections, and no token.

    Raises:
        OSError: the port is in use, or the address is not this machine's.
    """
    scope = TaskScope("pages")
    server = _PagesServer(host, metrics, dict(probes or {}), guard or PageGuard(), scope)
    return PagesListener(await host.network.listen(lambda: _MetricsConnection(server), address, port), scope)


class _PagesServer:
    """The state that the connections of one listener share."""

    def __init__(self, host: Host, metrics: Metrics, probes: Mapping[str, Probe], guard: PageGuard, scope: TaskScope) -> None:
        self.host = host
        self.metrics = metrics
        self.probes = probes
        self.guard = guard
        self.scope = scope
        self.open: dict[int, None] = {}
        """Ids of the connections that count towards the limit."""
        protected = guard.context is not None or guard.admits is not None
        help_text = "Requests to this page that were refused: their handshake failed, or their token was missing or wrong."
        self._refused = metrics.counter("triplicate_page_requests_refused", help_text, ("reason",)) if protected else None
        self._traced_at = -REFUSALS_TRACED_INTERVAL_S

    def refuse(self, reason: str, peer: object, error: str = "") -> None:
        """Count a refusal, and trace it unless another was traced a moment ago."""
        assert self._refused is not None
        self._refused.labels(reason).inc()
        now = self.host.clock.monotonic()
        if now - self._traced_at >= REFUSALS_TRACED_INTERVAL_S:
            self._traced_at = now
            self.host.trace("pages.refused", reason=reason, peer=peer, error=error)


class _MetricsConnection(asyncio.Protocol):
    """One request, one answer, then the connection is closed."""

    def __init__(self, server: _PagesServer) -> None:
        self._server = server
        self._host = server.host
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._timer: Timer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast and not a check: the transports of uvloop do not derive from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        clock = self._host.clock
        context = self._server.guard.context
        if len(self._server.open) >= CONNECTIONS_MAX:
            if context is None:
                self._answer("503 Service Unavailable", b"too many connections\n")
            else:
                self._transport.abort()
            return
        deadline = clock.monotonic() + REQUEST_TIMEOUT_S
        self._server.open[id(self)] = None
        if context is None:
            self._timer = clock.call_at(deadline, self._transport.abort)
        else:
            # At once and not in a task of its own: bytes of the handshake that arrive before would be lost.
            start_eagerly(
                self._protect(self._transport, context(), deadline), lambda work: self._server.scope.spawn(work, name="handshake")
            )

    async def _protect(self, plain: asyncio.Transport, context: ssl.SSLContext, deadline: float) -> None:
        peer = plain.get_extra_info("peername")
        try:
            protected = await self._host.network.start_tls(plain, self, context, limit_s=REQUEST_TIMEOUT_S, server_name=None)
        except OSError as error:
            self._server.refuse("handshake", peer, str(error))
            self._forget()
            return
        except BaseException:
            self._forget()
            raise
        self._transport = protected
        self._timer = self._host.clock.call_at(deadline, protected.abort)

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0 and len(self._received) <= REQUEST_BYTES_MAX:
            return
        if end < 0 or end > REQUEST_BYTES_MAX:
            self._answer("431 Request Header Fields Too Large", b"request too large\n")
            return
        first, *headers = bytes(self._received[:end]).split(b"\r\n")
        words = first.split()
        if len(words) != 3:
            self._answer("400 Bad Request", b"this is no HTTP request\n")
        elif not self._is_admitted(words[1], headers):
            self._server.refuse("token", self._transport.get_extra_info("peername"))
            body = b"a bearer token is needed: send it in the header Authorization\n"
            self._answer("401 Unauthorized", body, more="WWW-Authenticate: Bearer\r\n")
        elif words[0] not in METHODS:
            self._answer("405 Method Not Allowed", b"only GET and HEAD\n", more="Allow: GET, HEAD\r\n")
        else:
            self._answer_path(_path_of(words[1]), send_body=words[0] == b"GET")

    def connection_lost(self, error: Exception | None) -> None:
        self._forget()

    def _forget(self) -> None:
        self._server.open.pop(id(self), None)
        if self._timer is not None:
            self._timer.cancel()

    def _is_admitted(self, target: bytes, headers: Sequence[bytes]) -> bool:
        guard = self._server.guard
        if guard.admits is None or _path_of(target) in guard.free:
            return True
        tokens = [token for token in map(_bearer_token, headers) if token is not None]
        return len(tokens) == 1 and guard.admits(tokens[0])

    def _answer_path(self, path: str, *, send_body: bool) -> None:
        if path == "/metrics":
            self._answer("200 OK", self._server.metrics.expose(), CONTENT_TYPE, send_body=send_body)
        elif path in self._server.probes:
            found = self._server.probes[path]()
            status = "200 OK" if found.well else "503 Service Unavailable"
            body = json.dumps(found.facts, ensure_ascii=False).encode() + b"\n"
            self._answer(status, body, "application/json", send_body=send_body, more="Cache-Control: no-store\r\n")
        else:
            there = ", ".join(["/metrics", *self._server.probes])
            self._answer("404 Not Found", f"only {there}\n".encode(), send_body=send_body)

    def _answer(
        self, status: str, body: bytes, content_type: str = "text/plain; charset=utf-8", *, send_body: bool = True, more: str = ""
    ) -> None:
        assert self._transport is not None
        head = f"HTTP/1.0 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{more}Connection: close\r\n\r\n"
        self._transport.write(head.encode() + (body if send_body else b""))
        self._transport.close()


def _path_of(target: bytes) -> str:
    return target.split(b"?", 1)[0].decode("latin-1")


def _bearer_token(header: bytes) -> str | None:
    """The token of a header ``Authorization: Bearer …``; empty if it has another scheme, None for any other header."""
    name, _, value = header.partition(b":")
    if name.strip().lower() != b"authorization":
        return None
    scheme, _, token = value.strip().partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""
