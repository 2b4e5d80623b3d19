"""One client's connection as a stream of messages, with bounded buffers in both directions."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

from triplicate.errors import ProtocolError
from triplicate.runtime import Clock, Network, ProgressWatch, close_transport, resolve
from triplicate.sql.pg.protocol.login_messages import ENCRYPTION_ACCEPTED
from triplicate.sql.pg.protocol.rounds import RoundBuffer
from triplicate.sql.pg.protocol.wire import Startup

OUT_BUFFER_BYTES = 64 * 1024
"""Outgoing messages are buffered up to this number of bytes before they are written to the socket."""
IN_BUFFER_BYTES = 256 * 1024
"""Reading pauses while more bytes than this are buffered and begin with a complete message. One chunk of asyncio has this size."""

_LOG = logging.getLogger(__name__)


class _Origin(NamedTuple):
    """Where a connection comes from. A transport forgets it when it is closed."""

    address: str
    tls: ssl.SSLObject | None


class MessageStream(asyncio.Protocol):
    """Splits incoming bytes into messages and buffers outgoing ones.

    A client that does not read, or that leaves a message incomplete, for `stall_s` without any progress loses its connection. A client
    that is idle between two messages keeps it.

    Args:
        limit_bytes: the largest message.
        stall_s: limit on the time without progress, seconds.
        clock: measures `stall_s`.
        on_open: called once with the stream; starts the conversation.
    """

    def __init__(self, limit_bytes: int, stall_s: float, clock: Clock, on_open: Callable[[MessageStream], None]) -> None:
        self._buffer = RoundBuffer(limit_bytes)
        self.find_round = self._buffer.find_round
        self.skip_round = self._buffer.skip
        self._on_open = on_open
        self._transport: asyncio.Transport | None = None
        self._out = bytearray()
        self._is_due = False
        """Whether the client waits for a message in the buffer."""
        self.is_lost = False
        """Whether the client has disconnected."""
        self._origin = _Origin("", None)
        self._is_closed = False
        self._is_upgrading = False
        """Whether a TLS handshake runs, in which nothing else may be sent."""
        self._is_writable = True
        self._is_reading = True
        self._waiter: asyncio.Future[None] | None = None
        self._failure: ProtocolError | None = None
        self._received_chunks = 0
        self._sending = ProgressWatch(clock, stall_s, self._unsent_bytes, self._end_unread)
        self._receiving = ProgressWatch(clock, stall_s, self._incomplete_chunks, self._end_incomplete)
        self.on_input: Callable[[], None] | None = None
        """Called when messages have arrived or the connection is lost. None before the conversation begins and after it has ended."""
        self.on_lost: Callable[[], None] | None = None
        """Called when the client disconnects, to interrupt its running statement."""

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername")
        self._origin = _Origin(str(name[0]) if name else "", None)
        self._on_open(self)

    def data_received(self, data: bytes) -> None:
        if self._is_closed:
            return
        self._buffer.feed(data)
        self._received_chunks += 1
        if self.on_input is not None:
            self.on_input()
        else:
            self.limit_input()
            self.wake()

    @property
    def address(self) -> str:
        """The address that the client connects from, once the connection is open; empty if it has none."""
        return self._origin.address

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The connection's TLS; None in the clear."""
        return self._origin.tls

    async def start_tls(self, network: Network, context: ssl.SSLContext, limit_s: float) -> None:
        """Answer a request for encryption, and protect the connection.

        Raises:
            ProtocolError: the client has sent more behind its request. It was not encrypted, and might be taken for what the client says
                under TLS (CVE-2021-23214).
            OSError: the handshake failed, and the connection is lost.
        """
        if self._buffer.is_begun:
            raise ProtocolError("received unencrypted data after SSL request: the client, or somebody between, breaks the protocol")
        self.write(ENCRYPTION_ACCEPTED)
        self.flush_nowait()
        transport = self._live_transport()
        self._is_upgrading = True
        try:
            self._transport = await network.start_tls(transport, self, context, limit_s=limit_s, server_name=None)
        except BaseException:
            self.connection_lost(None)  # The protocol may not hear of it.
            raise
        finally:
            self._is_upgrading = False
        self._origin = _Origin(self.address, self._transport.get_extra_info("ssl_object"))

    @contextmanager
    def limited(self, limit_bytes: int) -> Iterator[None]:
        """Refuse longer messages meanwhile."""
        self._buffer.limit_bytes, before = limit_bytes, self._buffer.limit_bytes
        try:
            yield
        finally:
            self._buffer.limit_bytes = before

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._is_writable = True
        self._sending.stop()
        self._receiving.stop()
        if self.on_lost is not None:
            self.on_lost()
        self._notify()

    def pause_writing(self) -> None:
        self._is_writable = False
        self._sending.start()

    def resume_writing(self) -> None:
        self._is_writable = True
        self.wake()

    def _live_transport(self) -> asyncio.Transport:
        assert self._transport is not None, "the connection was opened"
        return self._transport

    def _notify(self) -> None:
        if self.on_input is not None:
            self.on_input()
        else:
            self.wake()

    # The end of a client that stalls.

    def _unsent_bytes(self) -> int | None:
        """The measure of progress in sending."""
        unsent = self._live_transport().get_write_buffer_size()
        return unsent if unsent and (self._is_closed or not self._is_writable) else None

    def _incomplete_chunks(self) -> int | None:
        """The measure of progress in receiving the rest of a message."""
        is_awaited = self._buffer.size and self._is_reading and not self._is_closed
        return self._received_chunks if is_awaited and self._is_incomplete() else None

    def _is_incomplete(self) -> bool:
        try:
            return self._buffer.peek() is None
        except ProtocolError:
            return False  # The conversation meets the same error when it gets there.

    def _end_unread(self) -> None:
        unsent = self._unsent_bytes()
        _LOG.warning("a client has read nothing for %g s and is disconnected; %s bytes were waiting for it", self._sending.limit_s, unsent)
        self._live_transport().abort()

    def _end_incomplete(self) -> None:
        _LOG.warning("a client has left a message incomplete for %g s and is disconnected", self._sending.limit_s)
        self._failure = ProtocolError(f"the rest of a message has not arrived for {self._sending.limit_s:g} s")
        self._notify()

    # The conversation's side.

    def wake(self) -> None:
        """Wake the task in `wait`."""
        if self._waiter is not None:
            resolve(self._waiter, None)

    async def wait(self) -> None:
        """Return after the next `wake`."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    @property
    def is_drained(self) -> bool:
        """Whether no byte is left of a client that is connected and may send more."""
        return not (self._buffer.is_begun or self.is_lost) and self._is_reading and self._failure is None

    def next_startup(self) -> Startup | None:
        """The first packet; None if it is not complete yet."""
        startup = self._buffer.next_startup()
        if startup is None:
            self._resume_reading()
        return startup

    def peek(self) -> bytes | None:
        """The letter of the next message, which stays in the buffer; None if it is not complete. Raises ProtocolError."""
        letter = self._buffer.peek()
        if letter is None:
            self._await_more()
        return letter

    def next_message(self) -> tuple[bytes, bytes] | None:
        """Remove the next message: (letter, body); None if it is not complete.

        Raises:
            ProtocolError: the client broke the protocol, or left the message incomplete for too long.
        """
        message = self._buffer.next_message()
        if message is None and (self._failure is not None or not self._is_reading or self._buffer.is_begun):
            self._await_more()
        return message

    def next_body(self, letter: bytes) -> bytes | None:
        """Remove the next message if it is complete and has this letter; returns its body. Raises as `next_message`."""
        return self._buffer.next_body(letter)

    def _await_more(self) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._is_reading:
            self._resume_reading()
        if self._buffer.is_begun:
            self._receiving.start()

    def limit_input(self) -> None:
        """Pause reading if more has arrived than the conversation can use before it has served some of it."""
        if (
            self._is_reading
            and not self.is_lost
            and self._buffer.size > IN_BUFFER_BYTES
            and (self.on_input is None or not self._is_incomplete())
        ):
            self._is_reading = False
            self._live_transport().pause_reading()

    def _resume_reading(self) -> None:
        if not self._is_reading and not self._is_closed and not self.is_lost:
            self._is_reading = True
            self._live_transport().resume_reading()

    def write(self, data: bytes) -> None:
        """Buffer a message until the next `flush`."""
        self._out += data

    def mark_due(self) -> None:
        """The client waits for the messages written so far: send them before the conversation waits for anything."""
        self._is_due = True

    @property
    def wants_flush(self) -> bool:
        return len(self._out) >= OUT_BUFFER_BYTES

    @property
    def must_wait(self) -> bool:
        """Whether answers have piled up, so that `flush` must come before the next message."""
        return not self._is_writable or len(self._out) >= OUT_BUFFER_BYTES

    async def flush(self) -> None:
        """Write the buffered messages to the socket and wait while the client does not read."""
        self.flush_nowait()
        while not self._is_writable and not self.is_lost:
            await self.wait()

    def flush_due(self) -> None:
        """Write the buffered messages if the client waits for one of them."""
        if self._is_due:
            self.flush_nowait()

    def flush_nowait(self) -> None:
        self._is_due = False
        if self._out:
            # The transport may keep the buffer itself, so the next messages need another one.
            out, self._out = self._out, bytearray()
            if self._transport is not None and not self.is_lost and not self._is_closed and not self._is_upgrading:
                self._transport.write(out)

    def abort(self) -> None:
        """Close at once. A TLS handshake that runs fails."""
        self.on_input = None
        self._is_closed = True
        self._live_transport().abort()

    def close(self) -> None:
        """Send the buffered messages and close."""
        if self._is_upgrading:
            self.abort()
            return
        self.flush_nowait()
        self.on_input = None
        if self._transport is not None and not self._is_closed:
            self._is_closed = True
            has_unsent = not self.is_lost and self._transport.get_write_buffer_size() > 0
            close_transport(self._transport)
            if has_unsent:
                self._sending.start()
