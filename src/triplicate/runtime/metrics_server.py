"""``/metrics`` and the health probes: a small HTTP/1.0 responder on the network port, so that no second server stack is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from triplicate.runtime.metrics import CONTENT_TYPE, Metrics
from triplicate.runtime.ports import Host, Listener, Timer

REQUEST_BYTES_MAX = 8192
REQUEST_TIMEOUT_S = 5.0
CONNECTIONS_MAX = 32
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


async def serve_metrics(
    host: Host, metrics: Metrics, port: int, address: str = "127.0.0.1", probes: Mapping[str, Probe] | None = None
) -> Listener:
    """Answer GET and HEAD of ``/metrics`` and of the probes' paths until the listener is closed; any other path is 404.

    A request may have `REQUEST_BYTES_MAX` bytes; request and answer together may take `REQUEST_TIMEOUT_S`.

    Args:
        port: 0 for a free one; see `Listener.address`.
        address: loopback by default; an IPv6 address has no brackets.
        probes: by path, such as ``/health``.

    Raises:
        OSError: the port is in use, or the address is not this machine's.
    """
    open_connections: dict[int, None] = {}
    pages = dict(probes or {})
    return await host.network.listen(lambda: _MetricsConnection(host, metrics, pages, open_connections), address, port)


class _MetricsConnection(asyncio.Protocol):
    """One request, one answer, then the connection is closed."""

    def __init__(self, host: Host, metrics: Metrics, probes: Mapping[str, Probe], open_connections: dict[int, None]) -> None:
        self._host = host
        self._metrics = metrics
        self._probes = probes
        self._open = open_connections
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._timer: Timer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast and not a check: the transports of uvloop do not derive from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        clock = self._host.clock
        self._timer = clock.call_at(clock.monotonic() + REQUEST_TIMEOUT_S, self._transport.abort)
        if len(self._open) >= CONNECTIONS_MAX:
            self._answer("503 Service Unavailable", b"too many connections\n")
            return
        self._open[id(self)] = None

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
        words = bytes(self._received[:end]).split(b"\r\n", 1)[0].split()
        if len(words) != 3:
            self._answer("400 Bad Request", b"this is no HTTP request\n")
        elif words[0] not in METHODS:
            self._answer("405 Method Not Allowed", b"only GET and HEAD\n", more="Allow: GET, HEAD\r\n")
        else:
            self._answer_path(words[1].split(b"?", 1)[0].decode("latin-1"), send_body=words[0] == b"GET")

    def connection_lost(self, error: Exception | None) -> None:
        self._open.pop(id(self), None)
        if self._timer is not None:
            self._timer.cancel()

    def _answer_path(self, path: str, *, send_body: bool) -> None:
        if path == "/metrics":
            self._answer("200 OK", self._metrics.expose(), CONTENT_TYPE, send_body=send_body)
        elif path in self._probes:
            found = self._probes[path]()
            status = "200 OK" if found.well else "503 Service Unavailable"
            body = json.dumps(found.facts, ensure_ascii=False).encode() + b"\n"
            self._answer(status, body, "application/json", send_body=send_body, more="Cache-Control: no-store\r\n")
        else:
            there = ", ".join(["/metrics", *self._probes])
            self._answer("404 Not Found", f"only {there}\n".encode(), send_body=send_body)

    def _answer(
        self, status: str, body: bytes, content_type: str = "text/plain; charset=utf-8", *, send_body: bool = True, more: str = ""
    ) -> None:
        assert self._transport is not None
        head = f"HTTP/1.0 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{more}Connection: close\r\n\r\n"
        self._transport.write(head.encode() + (body if send_body else b""))
        self._transport.close()
