"""Bad input at a running bookie: it answers or closes as Apache's does, serves a good client meanwhile, and bounds its memory."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.process.bad_requests import ANSWERED_V2, ANSWERED_V3, CLOSING, KEY, MIB, UNKNOWN_LEDGER, add_request
from tests.process.running import TIMEOUT_S, Up
from triplicate import blocking
from triplicate.wire import (
    AddResponse,
    ReadLacRequest,
    ReadRequest,
    ReadResponse,
    Status,
    decode_response,
    encode_request,
    v3,
)

MORE_BYTES = 160 * MIB
"""Maximum growth of the bookie's memory. Its caches fill with the good client's entries: 64 MiB at their defaults."""
FLOOD_S = 240.0
"""Limit for a million requests on a busy machine, in seconds; an idle one with two cores needs some 15 s."""
BURST = 2000
PAUSE_S = 0.002
"""Of the good client after each entry, which leaves the bookie and the test a part of the processors."""


class Good:
    """A client that appends and reads on the bookie under attack."""

    def __init__(self, uri: str) -> None:
        self.appended = 0
        self.failure: BaseException | None = None
        self._uri = uri
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Good:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(TIMEOUT_S)

    def check(self) -> None:
        """Assert that it has appended further entries without an error."""
        before = self.appended
        deadline = time.monotonic() + TIMEOUT_S
        while self.appended < before + 20 and self.failure is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.failure is None, repr(self.failure)
        assert self.appended >= before + 20

    def _run(self) -> None:
        try:
            with blocking.connect(self._uri) as client:
                writer = client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
                while not self._stop.is_set():
                    writer.append(b"good %d" % self.appended)
                    self.appended += 1
                    self._stop.wait(PAUSE_S)
                writer.close()
                reader = client.open(writer.ledger_id)
                entries = reader.read(max(0, self.appended - 100), self.appended - 1)
                assert entries[-1].payload == b"good %d" % (self.appended - 1)
        except BaseException as error:
            self.failure = error


class Bookie:
    def __init__(self, up: Up) -> None:
        host, _, port = up.members["bookie-1"]["address"].rpartition(":")
        self.address = (host, int(port))
        self.uri = up.uri
        self.process = psutil.Process(up.members["bookie-1"]["pid"])
        self.at_start = self.memory()

    @contextlib.contextmanager
    def connection(self) -> Iterator[socket.socket]:
        with socket.create_connection(self.address, timeout=TIMEOUT_S) as connection:
            yield connection

    def said(self, *frames: bytes) -> list[bytes]:
        """Bodies of the bookie's answers until it closes the connection or answers a final good read."""
        last = encode_request(_last_read()) if frames[-1][4:5] != b"\x0a" else v3.encode_request(_last_read(), 7777)
        with self.connection() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(b"".join(frames) + last)
            found: list[bytes] = []
            with contextlib.suppress(ConnectionResetError):
                while (body := _next_body(connection)) is not None:
                    if body in LAST_ANSWERS:
                        return found
                    found.append(body)
            return [*found, CLOSED]

    def memory(self) -> int:
        return int(self.process.memory_info().rss)

    def is_alive(self) -> bool:
        return bool(self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE)


CLOSED = b"closed"


def _last_read() -> ReadRequest:
    return ReadRequest(UNKNOWN_LEDGER, 77)


LAST_ANSWERS = (
    b"\x02\x02\x00\x00" + struct.pack(">Iqq", 1, UNKNOWN_LEDGER, 77),
    v3.encode_response(ReadResponse(Status.NO_LEDGER, UNKNOWN_LEDGER, 77), 7777)[4:],
)


def _next_body(connection: socket.socket) -> bytes | None:
    head = _exactly(connection, 4)
    return None if head is None else _exactly(connection, int.from_bytes(head, "big"))


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = connection.recv(min(size, 65536))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bookie]:
    with Up(tmp_path_factory.mktemp("bad") / "c", "--bookies", "1", "--nodes", "0") as up:
        yield Bookie(up)


@pytest.fixture(scope="module")
def steady(bookie: Bookie) -> Iterator[Good]:
    """A client that appends during all tests, and reads its entries at the end."""
    with Good(bookie.uri) as client:
        yield client
    assert client.failure is None, repr(client.failure)


@pytest.fixture
def good(bookie: Bookie, steady: Good) -> Iterator[Good]:
    """A client that must append before and after the test; the bookie must be the same process with bounded memory."""
    steady.check()
    yield steady
    steady.check()
    assert bookie.is_alive()
    assert bookie.memory() < bookie.at_start + MORE_BYTES


@pytest.mark.parametrize("name", CLOSING)
def test_an_unreadable_frame_closes_only_its_own_connection(bookie: Bookie, good: Good, name: str) -> None:
    before = ReadRequest(UNKNOWN_LEDGER, 1)
    first = v3.encode_request(before, 1) if "version 3" in name else encode_request(before)
    answers = bookie.said(first, CLOSING[name])
    assert len(answers) == 2
    assert answers[-1] == CLOSED
    assert bookie.said(CLOSING[name]) == [CLOSED]


@pytest.mark.parametrize("name", ANSWERED_V2)
def test_an_unsupported_version_2_request_is_answered_with_its_reason(bookie: Bookie, good: Good, name: str) -> None:
    asked, answer = ANSWERED_V2[name]
    assert [body.hex() for body in bookie.said(asked, asked)] == [answer.hex()] * 2


@pytest.mark.parametrize("name", ANSWERED_V3)
def test_an_unsupported_version_3_request_is_answered_with_its_reason(bookie: Bookie, good: Good, name: str) -> None:
    asked, answer = ANSWERED_V3[name]
    assert [body.hex() for body in bookie.said(asked, asked)] == [answer.hex()] * 2


def test_version_3_after_version_2_closes_the_connection(bookie: Bookie, good: Good) -> None:
    frames = [encode_request(ReadRequest(9, 4)), v3.encode_request(ReadLacRequest(9), 1)]
    assert len(bookie.said(*frames)) == 2
    assert bookie.said(*frames)[-1] == CLOSED


def test_unfinished_frames_on_many_connections_use_little_memory(bookie: Bookie, good: Good) -> None:
    half = struct.pack(">I", 64 * 1024) + b"\x02\x01\x00\x00" + KEY + bytes(16 * 1024)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(bookie.connection()) for _ in range(300)]
        for index, connection in enumerate(connections):
            connection.sendall(half[: 1 + index * 61 % len(half)])
        good.check()
        for connection in connections[::2]:
            # A few more bytes now and then, as from a peer that only keeps its connection alive.
            connection.sendall(b"\x00\x00")
        good.check()


LONG = [pytest.param(2, 1_000_000, marks=pytest.mark.deep), pytest.param(3, 250_000, marks=pytest.mark.deep)]


@pytest.mark.parametrize(("version", "count"), [(2, 100_000), (3, 100_000), *LONG])
def test_a_flood_of_tiny_frames_is_served_in_bounded_time_and_memory(bookie: Bookie, good: Good, version: int, count: int) -> None:
    most = 0
    burst = _burst(version)
    with bookie.connection() as connection:
        answers = threading.Thread(target=_drain, args=(connection, count))
        answers.start()
        started = time.monotonic()
        for _ in range(count // BURST):
            connection.sendall(burst)
            most = max(most, bookie.memory())
        answers.join(FLOOD_S)
        assert not answers.is_alive()
        assert time.monotonic() - started < FLOOD_S
    assert most < bookie.at_start + MORE_BYTES
    good.check()


def _burst(version: int) -> bytes:
    """`BURST` reads of a thousand missing ledgers."""
    reads = [ReadRequest(UNKNOWN_LEDGER + number % 1000, number) for number in range(BURST)]
    if version == 2:
        return b"".join(map(encode_request, reads))
    return b"".join(v3.encode_request(read, number) for number, read in enumerate(reads))


def _drain(connection: socket.socket, frames: int) -> None:
    """Read `frames` answers from a connection."""
    held = b""
    with contextlib.suppress(OSError):
        while frames:
            data = connection.recv(MIB)
            if not data:
                return
            held += data
            position = 0
            while frames and len(held) >= position + 4:
                stop = position + 4 + int.from_bytes(held[position : position + 4], "big")
                if stop > len(held):
                    break
                position = stop
                frames -= 1
            held = held[position:]


def test_the_bookie_stops_reading_a_peer_that_never_reads_answers(bookie: Bookie, good: Good) -> None:
    most, sent = 0, 0
    burst = _burst(2)
    with bookie.connection() as connection:
        connection.settimeout(3.0)
        with contextlib.suppress(TimeoutError):
            while sent < 1024 * MIB:
                connection.sendall(burst)
                sent += len(burst)
                most = max(most, bookie.memory())
        assert sent < 1024 * MIB
        good.check()
    assert max(most, bookie.memory()) < bookie.at_start + MORE_BYTES


def test_garbage_on_other_connections_does_not_affect_answers(bookie: Bookie, good: Good) -> None:
    """Bad and good connections alternate: the good ones get their own answers."""
    with bookie.connection() as connection:
        for entry_id in range(50):
            bookie.said(CLOSING["an unknown operation"])
            connection.sendall(encode_request(add_request(UNKNOWN_LEDGER + 1, entry_id)))
            body = _next_body(connection)
            assert body is not None
            assert decode_response(body) == AddResponse(Status.OK, UNKNOWN_LEDGER + 1, entry_id)
