"""One client's connection: received requests and outgoing replies, with bounded buffers in both directions."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from functools import partial
from typing import cast

from triplicate.kv.resp.core.replies import ReplyWriter
from triplicate.kv.resp.core.resp_requests import RequestBuffer, WordLimits
from triplicate.runtime import Clock, HeldBytes, Network, ProgressWatch, close_transport, resolve

OUT_BUFFER_BYTES = 64 * 1024
"""Replies are collected up to this number of bytes before they are written to the socket."""
IN_BUFFER_BYTES = 256 * 1024
"""While requests are being served, reading pauses when more bytes than this wait. One chunk of asyncio has this size."""

_LOG = logging.getLogger(__name__)


class ClientStream(asyncio.Protocol):
    """Receives requests and sends replies.

    A client that does not read, or that leaves a request incomplete, for `stall_s` without any progress loses its connection. A client
    that is idle between two requests keeps it.

    Args:
        limits: of a request, until the client has logged in.
        stall_s: limit on the time without progress, seconds.
        on_open: called once with the stream.
    """

    def __init__(self, limits: WordLimits, stall_s: float, clock: Clock, on_open: Callable[[ClientStream], None]) -> None:
        self.buffer = RequestBuffer(limits)
        self.writer = ReplyWriter()
        self._on_open = on_open
        self._transport: asyncio.Transport | None = None
        self.peer = ""
        """Address and port of the client."""
        self.address = ""
        """The address alone; empty if it has none."""
        self.tls: ssl.SSLObject | None = None
        """The connection's TLS; None in the clear. A transport forgets it when it is closed."""
        self.is_lost = False
        """Whether the connection has ended."""
        self._held: HeldBytes | None = None
        self._is_closed = False
        self._is_writable = True
        self._is_reading = True
        self._is_awaiting = True
        """Whether the next request is awaited, and none is being served."""
        self._received_chunks = 0
        self._drained: asyncio.Future[None] | None = None
        self._sending = ProgressWatch(clock, stall_s, self._unsent_bytes, self._end_unread)
        self._receiving = ProgressWatch(clock, stall_s, self._incomplete_chunks, self._end_incomplete)
        self.on_input: Callable[[], None] | None = None
        """Called when bytes have arrived, or the connection is lost."""

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername")
        if name:
            self.address = str(name[0])
            self.peer = f"[{name[0]}]:{name[1]}" if ":" in self.address else f"{name[0]}:{name[1]}"
        self._on_open(self)

    def data_received(self, data: bytes) -> None:
        if self._is_closed:
            return
        self.buffer.feed(data)
        self._received_chunks += 1
        if self.on_input is not None:
            self.on_input()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = self._is_writable = True
        self._sending.stop()
        self._receiving.stop()
        self._wake()
        if self.on_input is not None:
            self.on_input()

    def pause_writing(self) -> None:
        self._is_writable = False
        self._sending.start()

    def resume_writing(self) -> None:
        self._is_writable = True
        self._wake()

    def _wake(self) -> None:
        if self._drained is not None:
            resolve(self._drained, None)

    def _live_transport(self) -> asyncio.Transport:
        assert self._transport is not None, "the connection was opened"
        return self._transport

    def hold(self) -> None:
        """Keep the first bytes for `protect`, to which they belong. To be called in `on_open`."""
        self._held = HeldBytes(self._live_transport(), self.connection_lost)

    async def wait(self) -> None:
        """Return when the connection is lost. For one caller, between `hold` and `protect`."""
        waiter = asyncio.get_running_loop().create_future()
        self.on_input = partial(resolve, waiter, None)
        try:
            if not self.is_lost:
                await waiter
        finally:
            self.on_input = None

    async def protect(self, network: Network, context: ssl.SSLContext, limit_s: float) -> None:
        """Begin with the TLS handshake. To be called in `on_open` or after `hold`.

        Raises:
            OSError: it failed, and the connection is lost.
        """
        plain, held, self._held = self._live_transport(), self._held, None
        received = b"" if held is None else held.take()
        try:
            self._transport = await network.start_tls(plain, self, context, limit_s=limit_s, server_name=None, received=received)
        except BaseException:
            self.connection_lost(None)  # The protocol may not hear of it.
            raise
        self.tls = self._transport.get_extra_info("ssl_object")

    # The end of a client that stalls.

    def _unsent_bytes(self) -> int | None:
        unsent = self._live_transport().get_write_buffer_size()
        return unsent if unsent and (self._is_closed or not self._is_writable) else None

    def _incomplete_chunks(self) -> int | None:
        is_awaited = self.buffer.is_begun and self._is_awaiting and not self._is_closed
        return self._received_chunks if is_awaited else None

    def _end_unread(self) -> None:
        _LOG.warning("a client has read nothing for %g s and is disconnected", self._sending.limit_s)
        self._live_transport().abort()

    def _end_incomplete(self) -> None:
        _LOG.warning("a client has left a request incomplete for %g s and is disconnected", self._receiving.limit_s)
        self.abort()

    # The conversation's side.

    def begin_serving(self) -> None:
        """Requests are being served."""
        self._is_awaiting = False

    def await_more(self) -> None:
        """All requests that have arrived are served."""
        self._is_awaiting = True
        if self.buffer.is_begun:
            self._receiving.start()
        if not self._is_reading and not self._is_closed and not self.is_lost:
            self._is_reading = True
            self._live_transport().resume_reading()

    def limit_input(self) -> None:
        """Pause reading if much has arrived while requests are being served."""
        if self._is_reading and not self.is_lost and self.buffer.size > IN_BUFFER_BYTES:
            self._is_reading = False
            self._live_transport().pause_reading()

    @property
    def must_wait(self) -> bool:
        """Whether replies have piled up, so that `drain` must come before the next request."""
        return not self._is_writable or len(self.writer.out) >= OUT_BUFFER_BYTES

    def flush(self) -> None:
        """Write the replies to the socket."""
        writer = self.writer
        if writer.out:
            # The transport may keep the buffer itself, so the next replies need another one.
            out, writer.out = writer.out, bytearray()
            if self._transport is not None and not self.is_lost and not self._is_closed:
                self._transport.write(out)

    async def drain(self) -> None:
        """Write the replies, and wait while the client does not read. For one caller at a time besides notifications."""
        self.flush()
        while not self._is_writable and not self.is_lost:
            if self._drained is None or self._drained.done():
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    def abort(self) -> None:
        """Close at once."""
        if not self._is_closed:
            self._is_closed = True
            self._live_transport().abort()

    def close(self) -> None:
        """Send the replies and close. Idempotent."""
        self.flush()
        if self._transport is not None and not self._is_closed:
            self._is_closed = True
            has_unsent = not self.is_lost and self._transport.get_write_buffer_size() > 0
            close_transport(self._transport)
            if has_unsent:
                self._sending.start()
