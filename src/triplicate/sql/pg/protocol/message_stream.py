"""One client's connection as a stream of messages, with bounded buffers in both directions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

from triplicate.errors import ProtocolError
from triplicate.runtime import resolve
from triplicate.sql.pg.protocol.wire import ClientMessage, MessageBuffer, Startup, decode_message

OUT_BUFFER_BYTES = 64 * 1024
"""Outgoing messages are buffered up to this number of bytes before they are written to the socket."""


class MessageStream(asyncio.Protocol):
    """Splits incoming bytes into messages and buffers outgoing ones.

    Reading pauses while more than `limit_bytes` are buffered. `flush` waits while the client does not read.

    Args:
        limit_bytes: the largest message, and the bound on buffered messages.
        on_open: called once with the stream; starts the conversation.
    """

    def __init__(self, limit_bytes: int, on_open: Callable[[MessageStream], None]) -> None:
        self._buffer = MessageBuffer(limit_bytes)
        self._limit = limit_bytes
        self._on_open = on_open
        self._transport: asyncio.Transport | None = None
        self._inbox: deque[tuple[bytes, bytes]] = deque()
        self._inbox_bytes = 0
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._is_started = False
        self._is_lost = False
        self._is_writable = True
        self._is_reading = True
        self._waiter: asyncio.Future[None] | None = None
        self._failure: ProtocolError | None = None
        self.on_lost: Callable[[], None] | None = None
        """Called when the client disconnects, to interrupt its running statement."""

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._on_open(self)

    def data_received(self, data: bytes) -> None:
        self._buffer.feed(data)
        if self._is_started and self._failure is None:
            self._cut()
        self.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._is_writable = True
        if self.on_lost is not None:
            self.on_lost()
        self.wake()

    def pause_writing(self) -> None:
        self._is_writable = False

    def resume_writing(self) -> None:
        self._is_writable = True
        self.wake()

    def _cut(self) -> None:
        try:
            messages = self._buffer.next_messages()
        except ProtocolError as error:  # The conversation sends the error to the client and closes.
            self._failure = error
            return
        self._inbox.extend(messages)
        for _, body in messages:
            self._inbox_bytes += len(body)
        if self._inbox_bytes > self._limit and self._is_reading and self._transport is not None:
            self._is_reading = False
            self._transport.pause_reading()

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
    def is_lost(self) -> bool:
        return self._is_lost

    def next_startup(self) -> Startup | None:
        """The first packet; None if it is not complete yet."""
        return self._buffer.next_startup()

    def start(self) -> None:
        """Parse ordinary messages from now on, after the first packet."""
        self._is_started = True
        self._cut()

    def peek(self) -> bytes | None:
        """The letter of the next message, which stays in the queue; None if none is complete. Raises ProtocolError."""
        if self._inbox:
            return self._inbox[0][0]
        if self._failure is not None:
            raise self._failure
        return None

    def next_message(self) -> ClientMessage | None:
        """Remove and decode the next message; None if none is complete.

        Raises:
            ProtocolError: the client broke the protocol.
            SqlError: 22021 if a text in the message is not UTF-8.
        """
        if not self._inbox:
            if self._failure is not None:
                raise self._failure
            return None
        letter, body = self._inbox.popleft()
        self._inbox_bytes -= len(body)
        if not self._is_reading and self._inbox_bytes <= self._limit // 2 and self._transport is not None:
            self._is_reading = True
            self._transport.resume_reading()
        return decode_message(letter, body)

    def write(self, data: bytes) -> None:
        """Buffer a message until the next `flush`."""
        self._out.append(data)
        self._out_bytes += len(data)

    @property
    def wants_flush(self) -> bool:
        return self._out_bytes >= OUT_BUFFER_BYTES

    async def flush(self) -> None:
        """Write the buffered messages to the socket and wait while the client does not read."""
        self.flush_nowait()
        while not self._is_writable and not self._is_lost:
            await self.wait()

    def flush_nowait(self) -> None:
        if self._out and not self._is_lost and self._transport is not None:
            self._transport.write(b"".join(self._out))
        self._out.clear()
        self._out_bytes = 0

    def close(self) -> None:
        """Send the buffered messages and close."""
        self.flush_nowait()
        if self._transport is not None:
            self._transport.close()
