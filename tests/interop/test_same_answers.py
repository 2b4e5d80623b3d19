"""The same requests to our bookie and to Apache's with either storage get the same answers.

The ledgers exist in the metadata, on all bookies, so that none is garbage-collected meanwhile.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.interop.bookies import DATABASE, ApacheBookie, BookieProcess
from tests.interop.stand import Stand
from triplicate import DigestType
from triplicate.ledger import EntryCodec, decode_availability
from triplicate.wire import (
    LAST_ENTRY,
    AddRequest,
    AuthRequest,
    BatchReadRequest,
    BookieInfoRequest,
    BookieInfoResponse,
    ForceRequest,
    FrameBuffer,
    ListEntriesRequest,
    ListEntriesResponse,
    ReadLacRequest,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    StartTlsRequest,
    WriteLacRequest,
    v2,
    v3,
)

PASSWORD = b"same"
STRANGER = b"other"
LIMIT_S = 10.0
CLOSED = "closed"
UNKNOWN_LEDGER = 7_000_000_000


class Talk:
    """One connection to one bookie, one request at a time."""

    def __init__(self, bookie: BookieProcess, wire: str) -> None:
        self._wire = wire
        self._connection = socket.create_connection(("127.0.0.1", bookie.port), timeout=LIMIT_S)
        self._frames = FrameBuffer()
        self._txn_id = 0

    def ask(self, request: Request) -> Response | str:
        self._txn_id += 1
        if self._wire == "v2":
            body = self.send(v2.encode_request(request))
            return CLOSED if body is None else comparable(v2.decode_response(body))
        body = self.send(v3.encode_request(request, self._txn_id))
        if body is None:
            return CLOSED
        txn_id, response = v3.decode_response(body)
        assert txn_id == self._txn_id
        return comparable(response)

    def send(self, data: bytes) -> bytes | None:
        """Send a frame; return the body of the answer, or None if the bookie closes the connection."""
        self._connection.sendall(data)
        return next(self._bodies(), None)

    def _bodies(self) -> Iterator[bytes]:
        while True:
            try:
                data = self._connection.recv(1 << 16)
            except ConnectionError:
                return
            if not data:
                return
            yield from map(bytes, self._frames.bodies(data))

    def patience(self, limit_s: float) -> None:
        self._connection.settimeout(limit_s)

    def close(self) -> None:
        self._connection.close()


def comparable(response: Response) -> Response:
    """The answer without the parts that differ between bookies: time, disks, and the grouping of runs of entries."""
    if isinstance(response, ReadResponse):
        return replace(response, lac_update_ms=None, body=None if response.body is None else bytes(response.body))
    if isinstance(response, BookieInfoResponse):
        return replace(response, total_bytes=1, free_bytes=1)
    if isinstance(response, ListEntriesResponse) and response.availability is not None:
        found = decode_availability(response.availability)
        return replace(response, availability=repr([entry_id for entry_id in range(64) if entry_id in found]).encode())
    return response


class Ledgers:
    """Requests for two ledgers: one is written, the other only fenced."""

    def __init__(self, stand: Stand, digest_type: DigestType = DigestType.CRC32C) -> None:
        cluster = stand.cluster("mixed")
        client = stand.our_client(cluster, "v2")
        ids = []
        for _ in range(2):
            writer = stand.run(client.create(ensemble_size=4, write_quorum=4, digest_type=digest_type, password=PASSWORD))
            ids.append(writer.ledger_id)
        self.written, self.fenced_only = ids
        self.codec = EntryCodec(self.written, digest_type, PASSWORD)
        self.stranger = EntryCodec(self.written, digest_type, STRANGER)

    @property
    def key(self) -> bytes:
        return self.codec.master_key

    def add(self, entry_id: int, last_add_confirmed: int, *, recovery: bool = False, deferred_sync: bool = False) -> AddRequest:
        body = self.codec.encode(entry_id, last_add_confirmed, entry_id + 1, bytes([entry_id]) * 40)
        return AddRequest(self.written, entry_id, self.key, body, recovery=recovery, high_priority=recovery, deferred_sync=deferred_sync)

    def read(self, entry_id: int) -> ReadRequest:
        return ReadRequest(self.written, entry_id)

    def common(self) -> list[tuple[str, Request]]:
        wrong = replace(self.add(1, 0), master_key=self.stranger.master_key)
        other = EntryCodec(self.fenced_only, self.codec.digest_type, PASSWORD)
        late = AddRequest(self.fenced_only, 0, other.master_key, other.encode(0, -1, 1, b"x"))
        return [
            ("read before anything", self.read(0)),
            ("read of the last before anything", self.read(LAST_ENTRY)),
            ("first add", self.add(0, -1)),
            ("second add", self.add(1, 0)),
            ("first add again", self.add(0, -1)),
            ("add with another key", wrong),
            ("read", self.read(0)),
            ("read of the second", self.read(1)),
            ("read beyond", self.read(5)),
            ("read of the last", self.read(LAST_ENTRY)),
            ("add behind a gap", self.add(7, 1)),
            ("read in the gap", self.read(4)),
            ("read of the last behind a gap", self.read(LAST_ENTRY)),
            ("fencing with another key", ReadRequest(self.written, 0, fence=True, master_key=self.stranger.master_key)),
            ("add after a fence that was refused", self.add(8, 1)),
            ("fencing", ReadRequest(self.written, LAST_ENTRY, fence=True, master_key=self.key)),
            ("fencing again", ReadRequest(self.written, 30, fence=True, master_key=self.key, high_priority=True)),
            ("add when fenced", self.add(9, 1)),
            ("recovery's add when fenced", self.add(9, 1, recovery=True)),
            ("read when fenced", self.read(9)),
            ("read of the last when fenced", self.read(LAST_ENTRY)),
            ("fencing of an unknown ledger", ReadRequest(self.fenced_only, 0, fence=True, master_key=self.key)),
            ("read of a ledger that was only fenced", ReadRequest(self.fenced_only, 0)),
            ("add to a ledger that was only fenced", late),
            ("read of no ledger", ReadRequest(UNKNOWN_LEDGER, 0)),
            ("authentication where there is none", AuthRequest("sasl", b"\x01")),
        ]

    def version_2(self) -> list[tuple[str, Request]]:
        def batch(start: int, count: int, size: int, ledger_id: int | None = None) -> BatchReadRequest:
            return BatchReadRequest(self.written if ledger_id is None else ledger_id, start, 5, count, size)

        return [
            ("batch", batch(0, 10, 1 << 20)),
            ("batch of one", batch(1, 1, 1 << 20)),
            ("batch without limits", batch(0, 0, 1 << 20)),
            ("batch of few bytes", batch(7, 10, 1)),
            ("batch up to a gap", batch(7, 10, 1 << 20)),
            ("batch from a gap", batch(3, 10, 1 << 20)),
            ("batch of no ledger", batch(0, 10, 1 << 20, UNKNOWN_LEDGER)),
        ]

    def version_3(self) -> list[tuple[str, Request]]:
        def poll(previous: int, ledger_id: int | None = None) -> ReadRequest:
            known = self.written if ledger_id is None else ledger_id
            return ReadRequest(known, LAST_ENTRY, previous_lac=previous, timeout_ms=200, piggyback=True)

        return [
            ("explicit before any", ReadLacRequest(self.written)),
            ("long poll that has passed", poll(0)),
            ("long poll for what is confirmed but not here", poll(1)),
            ("long poll in vain", poll(40)),
            ("long poll of no ledger", poll(0, UNKNOWN_LEDGER)),
            ("explicit", WriteLacRequest(self.written, 7, self.key, self.codec.encode_lac(7))),
            ("explicit with another key", WriteLacRequest(self.written, 7, self.stranger.master_key, self.codec.encode_lac(7))),
            ("explicit after it", ReadLacRequest(self.written)),
            ("long poll after it", poll(6)),
            ("read after it", self.read(0)),
            ("explicit of no ledger", ReadLacRequest(UNKNOWN_LEDGER)),
            ("deferred add when fenced", self.add(12, 1, deferred_sync=True)),
            ("force", ForceRequest(self.written)),
            ("force of no ledger", ForceRequest(UNKNOWN_LEDGER)),
            ("list of no ledger", ListEntriesRequest(UNKNOWN_LEDGER)),
            ("bookie info", BookieInfoRequest()),
            ("TLS where there is none", StartTlsRequest()),
        ]


@pytest.mark.parametrize("wire", ["v2", "v3"])
def test_bookies_answer_the_same(stand: Stand, wire: str) -> None:
    ledgers = Ledgers(stand)
    requests = ledgers.common() + (ledgers.version_2() if wire == "v2" else ledgers.version_3())
    found: dict[str, dict[str, Response | str]] = {}
    for bookie in stand.cluster("mixed").bookies[1:]:
        talk = Talk(bookie, wire)
        found[bookie.name] = {what: talk.ask(request) for what, request in requests}
        talk.close()
    ours, *theirs = found
    for name in theirs:
        assert {what: (found[ours][what], found[name][what]) for what in found[ours] if found[ours][what] != found[name][what]} == {}


def test_bookies_list_the_same_entries(stand: Stand) -> None:
    """Apache's DbLedgerStorage cannot list entries, and does not answer such a request."""
    ledgers = Ledgers(stand)
    found: dict[str, list[Response | str]] = {}
    for bookie in stand.cluster("mixed").bookies[1:]:
        talk = Talk(bookie, "v3")
        for request in (ledgers.add(0, -1), ledgers.add(1, 0), ledgers.add(7, 1), ledgers.add(9, 1)):
            talk.ask(request)
        talk.ask(ReadRequest(ledgers.fenced_only, 0, fence=True, master_key=ledgers.key))
        if isinstance(bookie, ApacheBookie) and bookie.storage == DATABASE:
            talk.patience(1.0)
            with pytest.raises(TimeoutError):
                talk.ask(ListEntriesRequest(ledgers.written))
        else:
            lists = (ListEntriesRequest(ledgers.written), ListEntriesRequest(ledgers.fenced_only))
            found[bookie.name] = [talk.ask(request) for request in lists]
        talk.close()
    ours, theirs = found.values()
    assert ours == theirs
    assert isinstance(ours[0], ListEntriesResponse)
    assert ours[0].availability == b"[0, 1, 7, 9]"


def bad_frames() -> list[tuple[str, bytes]]:
    def framed(body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + body

    read = struct.pack(">qq", 0, 0)
    return [
        ("an unknown operation of version 2", framed(struct.pack(">I", 0x02090000) + read)),
        ("a version to come", framed(struct.pack(">I", 0x05020000) + read)),
        ("a read that is cut short", framed(struct.pack(">I", 0x02020000) + b"\x00" * 5)),
        ("an add that is cut short", framed(struct.pack(">I", 0x02010000) + b"\x00" * 20)),
        ("garbage that begins like version 3", framed(b"\x0a" + b"\xff" * 20)),
        ("an empty frame", framed(b"")),
        ("a frame over the limit", struct.pack(">I", 6 * 1024 * 1024) + b"\x00" * 100),
        ("a negative length", struct.pack(">i", -5) + b"\x00" * 100),
    ]


@pytest.mark.parametrize(("what", "data"), bad_frames(), ids=lambda part: part.replace(" ", "-") if isinstance(part, str) else "")
def test_bookies_react_to_bad_frames_alike(stand: Stand, what: str, data: bytes) -> None:
    del what
    answers = {}
    for bookie in stand.cluster("mixed").bookies[1:]:
        talk = Talk(bookie, "v2")
        answers[bookie.name] = talk.send(data)
        talk.close()
        # The bookie serves the next connection.
        again = Talk(bookie, "v2")
        assert again.ask(ReadRequest(UNKNOWN_LEDGER, 0)) != CLOSED
        again.close()
    ours, *theirs = answers
    assert {name: answers[name] for name in theirs} == dict.fromkeys(theirs, answers[ours])
