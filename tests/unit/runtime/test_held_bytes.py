"""Bytes that a peer sends before its TLS handshake may begin."""

from __future__ import annotations

import asyncio

from triplicate.runtime.held_bytes import HELD_BYTES_MAX, HeldBytes


class Line(asyncio.Transport):
    """A transport that notes whether it reads."""

    reads = True

    def pause_reading(self) -> None:
        self.reads = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


def test_they_are_kept_in_order_and_a_peer_that_sends_much_is_read_no_more() -> None:
    line, lost = Line(), list[Exception | None]()
    held = HeldBytes(line, lost.append)
    assert line.protocol is held
    held.data_received(b"hello")
    held.data_received(b" and more")
    assert (held.take(), line.reads) == (b"hello and more", True)
    held.data_received(bytes(HELD_BYTES_MAX))
    assert not line.reads
    held.connection_lost(None)
    assert lost == [None]
