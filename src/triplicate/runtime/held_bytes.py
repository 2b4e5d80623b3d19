"""The first bytes of a peer whose TLS handshake has to wait for its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

HELD_BYTES_MAX = 16 * 1024
"""Reading pauses from here. A first message of TLS is shorter, and a peer sends no more before it is answered."""


class HeldBytes(asyncio.Protocol):
    """Stands for a connection's protocol until its handshake begins, and keeps what arrives, of one read beyond `HELD_BYTES_MAX` at most.

    The transport is not paused at first, so the end of the connection is noticed. Nor could it be: uvloop reads from a new connection
    even if its protocol has paused it.

    Args:
        lost: called when the connection has ended.
    """

    def __init__(self, transport: asyncio.Transport, lost: Callable[[Exception | None], None]) -> None:
        self._transport = transport
        self._lost = lost
        self._received = bytearray()
        transport.set_protocol(self)

    def take(self) -> bytes:
        """The bytes, for `Network.start_tls`."""
        return bytes(self._received)

    # Callbacks of asyncio.

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) >= HELD_BYTES_MAX:
            self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost(error)
