"""``GET /metrics``: a tiny HTTP/1.0 responder over the network port, so that it needs no second server stack."""

from __future__ import annotations

import asyncio
from typing import cast

from triplicate.runtime.metrics import CONTENT_TYPE, Metrics
from triplicate.runtime.ports import Host, Listener, Timer

REQUEST_BYTES_MAX = 8192
REQUEST_TIMEOUT_S = 5.0
CONNECTIONS_MAX = 32


async def serve_metrics(host: Host, metrics: Metrics, port: int, address: str = "127.0.0.1") -> Listener:
    """Answer ``GET /metrics`` until the listener is closed.

    Args:
        port: 0 takes a free one; see `Listener.address`.
        address: loopback unless the caller says otherwise.

    Raises:
        OSError: the port is in use.
    """
    open_connections: dict[int, None] = {}
    return await host.network.listen(lambda: _MetricsConnection(host, metrics, open_connections), address, port)


class _MetricsConnection(asyncio.Protocol):
    """One request, one answer, then the connection is closed."""

    def __init__(self, host: Host, metrics: Metrics, open_connections: dict[int, None]) -> None:
        self._host = host
        self._metrics = metrics
        self._open = open_connections
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._timer: Timer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast and not a check: the transports of uvloop do not derive from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        if len(self._open) >= CONNECTIONS_MAX:
            self._answer("503 Service Unavailable", b"too many connections\n")
            return
        self._open[id(self)] = None
        clock = self._host.clock
        self._timer = clock.call_at(clock.monotonic() + REQUEST_TIMEOUT_S, self._transport.abort)

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
        if len(words) < 2 or words[0] not in (b"GET", b"HEAD"):
            self._answer("405 Method Not Allowed", b"only GET\n")
        elif words[1].split(b"?", 1)[0] != b"/metrics":
            self._answer("404 Not Found", b"only /metrics is here\n")
        else:
            self._answer("200 OK", self._metrics.expose(), CONTENT_TYPE, send_body=words[0] == b"GET")

    def connection_lost(self, error: Exception | None) -> None:
        self._open.pop(id(self), None)
        if self._timer is not None:
            self._timer.cancel()

    def _answer(self, status: str, body: bytes, content_type: str = "text/plain; charset=utf-8", *, send_body: bool = True) -> None:
        assert self._transport is not None
        head = f"HTTP/1.0 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._transport.write(head.encode() + (body if send_body else b""))
        self._transport.close()
