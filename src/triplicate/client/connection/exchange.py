"""The differences between the protocol's versions on a connection: the encoding of requests, and the matching of answers to them.

Over v3 an answer carries the number of its request. Over v2 an answer to a read carries only its ledger and entry, and only batch reads
are numbered. Answers without a pending request are ignored. Source: BookKeeper `PerChannelBookieClient`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from triplicate.errors import BookieError, ProtocolError
from triplicate.wire import (
    AddAnswerRun,
    AuthRequest,
    AuthResponse,
    BatchAnswer,
    BatchReadRequest,
    BookieInfoRequest,
    BookieInfoResponse,
    ForceRequest,
    ForceResponse,
    ListEntriesRequest,
    ListEntriesResponse,
    ReadLacRequest,
    ReadLacResponse,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    StartTlsRequest,
    StartTlsResponse,
    Status,
    V3AddAnswerRun,
    WriteLacRequest,
    WriteLacResponse,
    decode_answer,
    encode_request,
    gather_add_responses,
    is_v3,
    scan_add_responses,
    scan_v3_add_responses,
    v3,
)

Callback = Callable[[Any, Any, BookieError | None], None]
"""Called once with the token of the request and either the answer or the error."""

Answer = Response | BatchAnswer

Gathered = dict[int, int | list[int]]
"""Ledger id → the entry id, or entry ids, that a bookie stored."""

ANSWERS: dict[type, type] = {
    ReadRequest: ReadResponse,
    BatchReadRequest: BatchAnswer,
    ReadLacRequest: ReadLacResponse,
    WriteLacRequest: WriteLacResponse,
    ForceRequest: ForceResponse,
    ListEntriesRequest: ListEntriesResponse,
    BookieInfoRequest: BookieInfoResponse,
    AuthRequest: AuthResponse,
}
"""Request class → answer class. Adds are matched by entry, in bulk (`connection.bookie_channel`)."""

_WORDS: dict[type, str] = {
    ReadLacRequest: "read of the last-add-confirmed",
    WriteLacRequest: "write of the last-add-confirmed",
    ForceRequest: "force",
    ListEntriesRequest: "list of the entries",
}


def describe(request: Request) -> str:
    """A request in words, for messages."""
    if isinstance(request, ReadRequest):
        return f"read of entry {request.entry_id} of ledger {request.ledger_id}"
    if isinstance(request, BatchReadRequest):
        return f"read of {request.max_count} entries from {request.start_entry_id} on of ledger {request.ledger_id}"
    words = _WORDS.get(type(request))
    return f"{words} of ledger {getattr(request, 'ledger_id', '?')}" if words else "request for its disk space"


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request that waits for its answer."""

    request: Request
    callback: Callback
    token: Any
    sent_at: float
    timeout_s: float

    def is_overdue(self, now: float) -> bool:
        """Whether the answer is overdue at `now`, in seconds of the monotonic clock."""
        return self.sent_at + self.timeout_s <= now


class Exchange(Protocol):
    """The requests of one connection that wait for answers."""

    def __len__(self) -> int:
        """Number of requests that may still be answered, including those that timed out."""

    def submit(self, pending: PendingRequest) -> bytes | None:
        """The frame to send for a request; None when it waits behind another one.

        Raises:
            ArgumentError: this version cannot carry the request.
        """

    def encode_token(self, request: AuthRequest) -> bytes:
        """The frame of an authentication token; its answer is handled by `Handshake`."""

    def encode_start_tls(self) -> bytes:
        """The frame that requests TLS, always of version 3; its answer is handled by `Handshake`."""

    def scan_adds(self, buffer: bytes, position: int, end: int) -> AddAnswerRun | V3AddAnswerRun | None:
        """The run of answers to adds at `position`; None if the frame there is something else."""

    def gather_adds(self, buffer: bytes, position: int, end: int, gathered: Gathered) -> int:
        """Collect successful answers to adds, of any ledgers in turn, and return where they end (`position` if there are none).

        Args:
            gathered: ledger → entries in the order of their answers; the found entries are added to it.
        """

    def decode(self, buffer: bytes, start: int = 0, stop: int | None = None) -> tuple[int, Answer]:
        """(number of the request if the version has one, answer) of the body that stands in a buffer from `start` to `stop`.

        Raises:
            ProtocolError: not an answer.
        """

    def match(self, number: int, response: Answer, now: float) -> tuple[list[PendingRequest], bytes | None]:
        """The requests that the answer belongs to, and a frame that must be sent now that it is here."""

    def overdue(self, now: float) -> list[PendingRequest]:
        """Remove and return the requests that are overdue."""

    def owed_since(self, now: float) -> float:
        """The time at which the oldest request that blocks another one was sent; `now` if no request blocks another."""

    def drain(self) -> list[PendingRequest]:
        """Remove and return all requests, since the connection is gone."""


@dataclass(slots=True)
class _EntryReads:
    """All pending reads of one entry. Nothing distinguishes the answers to equal requests, and they may come late or out of order.
        So only one request is in flight at a time; reads that are made meanwhile share the next one. Otherwise a "no entry" from before
    an add could answer a read that was made after it.
    """

    frame: bytes
    asked_at: float
    asked: list[PendingRequest]
    """Requests that the read in flight serves; empty when all have timed out."""
    waiting: list[PendingRequest]


class V2Exchange:
    """Version 2: `Exchange` by operation, ledger and entry.

    Args:
        numbers: for batch reads; other requests of version 2 have no number.
    """

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._reads: dict[tuple[int, int], _EntryReads] = {}
        self._batches: dict[int, PendingRequest] = {}

    def __len__(self) -> int:
        return len(self._reads) + len(self._batches)

    def submit(self, pending: PendingRequest) -> bytes | None:
        """See `Exchange`."""
        request = pending.request
        if isinstance(request, BatchReadRequest):
            number = next(self._numbers)
            frame = encode_request(replace(request, request_id=number))
            self._batches[number] = pending
            return frame
        frame = encode_request(request)
        assert isinstance(request, ReadRequest), "version 2 has reads and batch reads, and adds and tokens go other ways"
        key = (request.ledger_id, request.entry_id)
        reads = self._reads.get(key)
        if reads is not None:
            reads.waiting.append(pending)
            return None
        self._reads[key] = _EntryReads(frame, pending.sent_at, [pending], [])
        return frame

    def encode_token(self, request: AuthRequest) -> bytes:
        """See `Exchange`."""
        return encode_request(request)

    def encode_start_tls(self) -> bytes:
        """See `Exchange`."""
        return v3.encode_request(StartTlsRequest(), next(self._numbers))

    def scan_adds(self, buffer: bytes, position: int, end: int) -> AddAnswerRun | None:
        """See `Exchange`."""
        return scan_add_responses(buffer, position, end)

    def gather_adds(self, buffer: bytes, position: int, end: int, gathered: Gathered) -> int:
        """See `Exchange`."""
        return gather_add_responses(buffer, position, end, gathered)

    def decode(self, buffer: bytes, start: int = 0, stop: int | None = None) -> tuple[int, Answer]:
        """See `Exchange`."""
        stop = len(buffer) if stop is None else stop
        try:
            response = decode_answer(buffer, start, stop)
        except ProtocolError:
            if _refuses_tls(buffer[start:stop]):
                raise ProtocolError(
                    "it does not accept this client behind the TLS handshake: it requires a login, or a role in the client's certificate; "
                    "see client.user and security.certificate_file"
                ) from None
            raise
        return (response.request_id if isinstance(response, BatchAnswer) else 0), response

    def match(self, number: int, response: Answer, now: float) -> tuple[list[PendingRequest], bytes | None]:
        """See `Exchange`."""
        if isinstance(response, BatchAnswer):
            pending = self._batches.pop(number, None)
            return ([pending] if pending is not None else []), None
        if not isinstance(response, ReadResponse):
            return [], None
        key = (response.ledger_id, response.entry_id)
        reads = self._reads.pop(key, None)
        if reads is None:
            return [], None
        if not reads.waiting:
            return reads.asked, None
        self._reads[key] = _EntryReads(reads.frame, now, reads.waiting, [])
        return reads.asked, reads.frame

    def overdue(self, now: float) -> list[PendingRequest]:
        """See `Exchange`."""
        found: list[PendingRequest] = []
        for reads in self._reads.values():
            # The answer is still owed, so the read stays known: its late answer must not be taken for that of a later request.
            found += [pending for pending in (*reads.asked, *reads.waiting) if pending.is_overdue(now)]
            reads.asked = [pending for pending in reads.asked if not pending.is_overdue(now)]
            reads.waiting = [pending for pending in reads.waiting if not pending.is_overdue(now)]
        return found + _pop_overdue(self._batches, now)

    def owed_since(self, now: float) -> float:
        """See `Exchange`."""
        return min([reads.asked_at for reads in self._reads.values()], default=now)

    def drain(self) -> list[PendingRequest]:
        """See `Exchange`."""
        reads, self._reads = self._reads, {}
        batches, self._batches = self._batches, {}
        return [pending for entry in reads.values() for pending in (*entry.asked, *entry.waiting)] + list(batches.values())


class V3Exchange:
    """Version 3: `Exchange` by the number of the transaction.

    Args:
        numbers: a number of its own for each request.
    """

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._calls: dict[int, PendingRequest] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def submit(self, pending: PendingRequest) -> bytes | None:
        """See `Exchange`."""
        number = next(self._numbers)
        frame = v3.encode_request(pending.request, number)
        self._calls[number] = pending
        return frame

    def encode_token(self, request: AuthRequest) -> bytes:
        """See `Exchange`."""
        return v3.encode_request(request, next(self._numbers))

    def encode_start_tls(self) -> bytes:
        """See `Exchange`."""
        return v3.encode_request(StartTlsRequest(), next(self._numbers))

    def scan_adds(self, buffer: bytes, position: int, end: int) -> V3AddAnswerRun | None:
        """See `Exchange`."""
        return scan_v3_add_responses(buffer, position, end)

    def gather_adds(self, buffer: bytes, position: int, end: int, gathered: Gathered) -> int:
        """See `Exchange`. A bulk form gains nothing over version 3: each answer must be decoded by itself."""
        return position

    def decode(self, buffer: bytes, start: int = 0, stop: int | None = None) -> tuple[int, Answer]:
        """See `Exchange`."""
        return v3.decode_response(buffer[start:stop])

    def match(self, number: int, response: Answer, now: float) -> tuple[list[PendingRequest], bytes | None]:
        """See `Exchange`. An answer of another operation than the request of this number is ignored."""
        pending = self._calls.get(number)
        if pending is None or type(response) is not ANSWERS[type(pending.request)]:
            return [], None
        del self._calls[number]
        return [pending], None

    def overdue(self, now: float) -> list[PendingRequest]:
        """See `Exchange`."""
        return _pop_overdue(self._calls, now)

    def owed_since(self, now: float) -> float:
        """See `Exchange`. No request waits behind another one here."""
        return now

    def drain(self) -> list[PendingRequest]:
        """See `Exchange`."""
        calls, self._calls = self._calls, {}
        return list(calls.values())


def _refuses_tls(body: bytes) -> bool:
    """Whether a frame of version 3 refuses START_TLS after it was accepted, as Apache's bookies do with clients that they do not admit."""
    if not is_v3(body):
        return False
    try:
        _, response = v3.decode_response(body)
    except ProtocolError:
        return False
    return isinstance(response, StartTlsResponse) and response.status is not Status.OK


def _pop_overdue(calls: dict[int, PendingRequest], now: float) -> list[PendingRequest]:
    overdue = {number: pending for number, pending in calls.items() if pending.is_overdue(now)}
    for number in overdue:
        del calls[number]
    return list(overdue.values())
