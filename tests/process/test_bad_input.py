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

from tests.process.running import TIMEOUT_S, Up
from triplicate import blocking
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import (
    BOOKIE_FRAME_BYTES,
    AddRequest,
    AddResponse,
    BatchReadRequest,
    ReadLacRequest,
    ReadRequest,
    ReadResponse,
    Status,
    decode_response,
    encode_frame,
    encode_request,
    v3,
)

MIB = 1024 * 1024
MORE_BYTES = 160 * MIB
"""Maximum growth of the bookie's memory. Its caches fill with the good client's entries: 64 MiB at their defaults."""
FLOOD_S = 240.0
"""Limit for a million requests on a busy machine, in seconds; an idle one with two cores needs some 15 s."""
BURST = 2000
KEY = EntryCodec(1, DigestType.CRC32C, b"").master_key
UNKNOWN_LEDGER = 2**40


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


def _entry(ledger_id: int, entry_id: int) -> bytes:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"").encode(entry_id, -1, 4, b"data")


def _add(ledger_id: int = 1, entry_id: int = 0) -> AddRequest:
    return AddRequest(ledger_id, entry_id, KEY, _entry(ledger_id, entry_id))


def _v2(word: int, rest: bytes) -> bytes:
    return encode_frame(struct.pack(">I", word) + rest)


def _v3(*fields: bytes) -> bytes:
    return encode_frame(b"".join(fields))


def _header(version: int = 3, operation: int = 1, txn_id: int = 5) -> bytes:
    return bytes([0x0A, 6, 0x08, version, 0x10, operation, 0x18, txn_id])


_IDS = struct.pack(">qq", 9, 4)

CLOSING: dict[str, bytes] = {
    "a frame over the limit": struct.pack(">I", BOOKIE_FRAME_BYTES) + b"\x02\x02\x00\x00",
    "a negative length": b"\xff\xff\xff\xff\x02\x02\x00\x00",
    "the least negative length": b"\x80\x00\x00\x00",
    "an empty frame": struct.pack(">I", 0),
    "a frame shorter than its header": encode_frame(b"\x02\x01"),
    "an add cut short in its key": _v2(0x02010000, KEY[:7]),
    "an add cut short in its ids": _v2(0x02010000, KEY + _entry(1, 0)[:15]),
    "a read cut short": _v2(0x02020000, _IDS[:9]),
    "a fencing read without its key": _v2(0x02020001, _IDS),
    "a batch read cut short": _v2(0x02070000, _IDS),
    "an unknown operation": _v2(0x02090000, _IDS),
    "an operation that has no older form": _v2(0x02040000, _IDS),
    "an unknown operation of an unknown version": _v2(0x09090000, _IDS),
    "garbage that begins as version 3 does": encode_frame(b"\x0a\xff\xff\xff\xff\xff garbage"),
    "a header of version 3 alone, cut short": encode_frame(b"\x0a\x06\x08\x03"),
    "version 3 without a transaction": _v3(b"\x0a\x04\x08\x03\x10\x01", b"\xa2\x06\x04\x08\x01\x10\x01"),
    "version 3 with a read that lacks its entry": _v3(_header(), b"\xa2\x06\x02\x08\x01"),
    "version 3 with a read whose length is negative": _v3(_header(), b"\xa2\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08\x01"),
    # Apache's bookie cannot parse these, although they are valid messages.
    "version 3 with an operation that does not exist": _v3(_header(operation=99)),
    "version 3 with a version that does not exist": _v3(_header(version=9), b"\xa2\x06\x04\x08\x09\x10\x04"),
    "version 3 with a read without its part": _v3(_header()),
    "an authentication of garbage": _v2(0x02030000, b"\xff\xff\xff"),
}


@pytest.mark.parametrize("name", CLOSING)
def test_an_unreadable_frame_closes_only_its_own_connection(bookie: Bookie, good: Good, name: str) -> None:
    before = ReadRequest(UNKNOWN_LEDGER, 1)
    first = v3.encode_request(before, 1) if "version 3" in name else encode_request(before)
    answers = bookie.said(first, CLOSING[name])
    assert len(answers) == 2
    assert answers[-1] == CLOSED
    assert bookie.said(CLOSING[name]) == [CLOSED]


ANSWERED_V2: dict[str, tuple[bytes, bytes]] = {
    "an add of an unknown version": (_v2(0x09010000, KEY + _entry(9, 4)), struct.pack(">II", 0x09010000, 103) + _IDS),
    "a read of an unknown version": (_v2(0x7F020000, _IDS), struct.pack(">II", 0x7F020000, 103) + _IDS),
    "a read of a negative version": (_v2(0xFF020000, _IDS), struct.pack(">II", 0xFF020000, 103) + _IDS),
    "a read with unknown flags": (_v2(0x0202FFF8, _IDS), struct.pack(">II", 0x02020000, 1) + _IDS),
    "a read of a negative ledger": (
        encode_request(ReadRequest(-9, 4)),
        struct.pack(">IIqq", 0x02020000, 1, -9, 4),
    ),
    "an add cut short in its entry": (_v2(0x02010000, KEY + _entry(9, 4)[:20]), struct.pack(">II", 0x02010000, 100) + _IDS),
    "an add to a negative ledger": (encode_request(_add(-9, 4)), struct.pack(">IIqq", 0x02010000, 100, -9, 4)),
    "a batch read of an unknown ledger": (
        encode_request(BatchReadRequest(UNKNOWN_LEDGER, 0, 42, -1, -1)),
        struct.pack(">IIqqq", 0x02070000, 1, UNKNOWN_LEDGER, 0, 42),
    ),
}


@pytest.mark.parametrize("name", ANSWERED_V2)
def test_an_unsupported_version_2_request_is_answered_with_its_reason(bookie: Bookie, good: Good, name: str) -> None:
    asked, answer = ANSWERED_V2[name]
    assert [body.hex() for body in bookie.said(asked, asked)] == [answer.hex()] * 2


def _refused_add(status: Status) -> bytes:
    return v3.encode_response(AddResponse(status, 9, 4), 5)[4:]


ANSWERED_V3: dict[str, tuple[bytes, bytes]] = {
    "an operation that no bookie serves": (_v3(_header(operation=3)), bytes.fromhex("0a06080310031805109403")),
    "a read of version 2": (
        _v3(_header(version=2), b"\xa2\x06\x04\x08\x09\x10\x04"),
        v3.encode_response(ReadResponse(Status.BAD_VERSION, 9, 4), 5)[4:],
    ),
    "an add with a key of one byte": (
        _v3(_header(operation=2), b"\xaa\x06", bytes([9 + len(_entry(9, 4))]), b"\x08\x09\x10\x04\x1a\x01k\x22", bytes([40]), _entry(9, 4)),
        _refused_add(Status.UNAUTHORIZED),
    ),
    "an add whose entry is another one": (
        _v3(
            _header(operation=2),
            bytes([0xAA, 0x06, 28 + len(_entry(9, 5)), 0x08, 9, 0x10, 4, 0x1A, 20]),
            KEY,
            bytes([0x22, len(_entry(9, 5))]),
            _entry(9, 5),
        ),
        _refused_add(Status.BAD_REQUEST),
    ),
    "a read with an unknown flag": (
        _v3(_header(), b"\xa2\x06\x07\x08\x09\x10\x04\xa0\x06\x63"),
        v3.encode_response(ReadResponse(Status.NO_LEDGER, 9, 4), 5)[4:],
    ),
}


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


@pytest.mark.parametrize(("version", "count"), [(2, 1_000_000), (3, 250_000)])
def test_a_million_tiny_frames_are_served_in_bounded_time_and_memory(bookie: Bookie, good: Good, version: int, count: int) -> None:
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
            connection.sendall(encode_request(_add(UNKNOWN_LEDGER + 1, entry_id)))
            body = _next_body(connection)
            assert body is not None
            assert decode_response(body) == AddResponse(Status.OK, UNKNOWN_LEDGER + 1, entry_id)
