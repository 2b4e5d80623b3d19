"""The gate of a TLS handshake, without a handshake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from triplicate.runtime.handshake_gate import HandshakeGate


class Line(asyncio.Transport):
    """A transport whose state a test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = True
        self.closes = False
        self.protocol: asyncio.BaseProtocol | None = None

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.closes

    def abort(self) -> None:
        self.closes = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


class Hearer(asyncio.Protocol):
    """Notes what it hears; an error that it is given it raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.heard: list[object] = []
        self.error = error

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)
        if self.error is not None:
            raise self.error

    def eof_received(self) -> None:
        self.heard.append("end")

    def connection_lost(self, error: Exception | None) -> None:
        self.heard.append(error)

    def pause_writing(self) -> None:
        self.heard.append("full")

    def resume_writing(self) -> None:
        self.heard.append("room")


class Turns:
    """A loop whose next turn a test begins."""

    def __init__(self) -> None:
        self._due: list[tuple[Callable[..., None], tuple[object, ...]]] = []

    def call_soon(self, function: Callable[..., None], *args: object) -> None:
        self._due.append((function, args))

    def turn(self) -> None:
        due, self._due = self._due, []
        for function, args in due:
            function(*args)


class Rig:
    def __init__(self, error: Exception | None = None) -> None:
        self.plain, self.protected, self.turns = Line(), Line(), Turns()
        self.hearer = Hearer(error)
        self.gate = HandshakeGate(self.hearer, self.plain)

    def release(self) -> None:
        self.gate.release(self.protected, cast("asyncio.AbstractEventLoop", self.turns))


def test_a_protocol_takes_its_place_at_once_if_nothing_has_arrived() -> None:
    rig = Rig()
    rig.release()
    assert rig.protected.protocol is rig.hearer
    assert rig.hearer.heard == []


def test_what_arrives_before_the_release_comes_in_order_after_it() -> None:
    rig = Rig()
    loss = ConnectionResetError("the peer has left")
    rig.gate.data_received(b"one ")
    rig.release()
    rig.gate.data_received(b"two")
    rig.gate.eof_received()
    rig.gate.connection_lost(loss)
    assert rig.hearer.heard == []
    assert rig.protected.protocol is None
    rig.turns.turn()
    assert rig.hearer.heard == [b"one two", "end", loss]
    assert rig.protected.protocol is rig.hearer


def test_nothing_more_is_read_while_bytes_wait() -> None:
    rig = Rig()
    rig.gate.data_received(b"x")
    assert not rig.plain.reads
    rig.release()
    assert not rig.plain.reads
    rig.turns.turn()
    assert rig.plain.reads


def test_a_connection_that_the_peer_has_ended_delivers_what_it_sent_before() -> None:
    rig = Rig()
    rig.gate.data_received(b"x")
    rig.gate.eof_received()
    rig.protected.closes = True
    rig.release()
    rig.plain.closes = True
    rig.turns.turn()
    rig.gate.connection_lost(None)
    assert rig.hearer.heard == [b"x", "end", None]
    assert rig.protected.protocol is None, "a closed transport takes no protocol"


def test_a_connection_that_its_owner_has_closed_delivers_its_end_only() -> None:
    rig = Rig()
    rig.gate.data_received(b"x")
    rig.release()
    rig.protected.closes = True
    rig.turns.turn()
    assert rig.plain.reads, "the end of TLS is read"
    rig.gate.connection_lost(None)
    assert rig.hearer.heard == [None]


def test_an_error_of_the_protocol_ends_the_connection() -> None:
    rig = Rig(ValueError("a fault"))
    rig.gate.data_received(b"x")
    rig.release()
    with pytest.raises(ValueError, match="a fault"):
        rig.turns.turn()
    assert rig.protected.closes


def test_limits_of_writing_are_passed_on_at_once() -> None:
    rig = Rig()
    rig.gate.data_received(b"x")
    rig.release()
    rig.gate.pause_writing()
    rig.gate.resume_writing()
    assert rig.hearer.heard == ["full", "room"]
