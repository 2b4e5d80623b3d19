"""Bytes that arrive with the end of a TLS handshake wait for the new transport.

A peer may send its first bytes in one segment with its last message of the handshake. asyncio passes them to the protocol before the task
that awaits the handshake goes on; uvloop does where one read fills its buffer of 256 KiB and another follows at once. The protocol would
answer through the transport that it had before, which means in clear.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple


class _Loss(NamedTuple):
    """The end of the connection."""

    error: Exception | None


class HandshakeGate(asyncio.Protocol):
    """Stands for a connection's protocol during a TLS handshake. Where the handshake fails, the protocol hears nothing.

    Its memory is limited: at the first bytes it stops reading from the socket, so it keeps those of one read.

    Args:
        protocol: receives what has waited.
        plain: the transport under TLS.
    """

    def __init__(self, protocol: asyncio.Protocol, plain: asyncio.Transport) -> None:
        self._protocol = protocol
        self._plain = plain
        self._received: list[bytes] | None = []
        """Bytes that wait; None once the gate is open."""
        self._has_ended = False
        """Whether the peer ended TLS behind these bytes."""
        self._loss: _Loss | None = None

    def release(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """The handshake is complete, and the task that awaits it runs: open the gate once it has the transport.

        Args:
            transport: the one over TLS.
        """
        if not (self._received or self._has_ended or self._loss is not None):
            self._open(transport, False)
        else:
            # The caller does not have the transport yet, so a transport that closes was closed by the peer.
            loop.call_soon(self._open, transport, transport.is_closing())

    def _open(self, transport: asyncio.Transport, is_closed_by_peer: bool) -> None:
        received, self._received = self._received or [], None
        is_closing = transport.is_closing()
        if not is_closing:
            transport.set_protocol(self._protocol)
        try:
            # Nothing is received on a connection that the caller has closed.
            if is_closed_by_peer or not is_closing:
                if received:
                    self._protocol.data_received(b"".join(received))
                if self._has_ended:
                    self._protocol.eof_received()
            if self._loss is not None:
                self._protocol.connection_lost(self._loss.error)
        except BaseException:
            transport.abort()
            raise
        finally:
            if not self._plain.is_closing():
                self._plain.resume_reading()

    # Callbacks of the TLS connection. A connection that closes keeps the gate, which then passes its end on.

    def data_received(self, data: bytes) -> None:
        if self._received is None:
            self._protocol.data_received(data)
        else:
            self._received.append(data)
            self._plain.pause_reading()

    def eof_received(self) -> None:
        if self._received is None:
            self._protocol.eof_received()
        else:
            self._has_ended = True

    def connection_lost(self, error: Exception | None) -> None:
        if self._received is None:
            self._protocol.connection_lost(error)
        else:
            self._loss = _Loss(error)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()
