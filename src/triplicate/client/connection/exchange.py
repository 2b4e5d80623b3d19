"""What differs between the protocol's versions on a connection: how requests are written, and how an answer finds who asked.

Over v3 an answer carries the number of its request. Over v2 an answer to a read carries no more than its ledger and entry; only batch
reads are numbered. Answers that nobody waits for (any more) belong to nobody and do no harm. Source: BookKeeper `PerChannelBookieClient`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from triplicate.errors import BookieError
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
    V3AddAnswerRun,
    WriteLacRequest,
    WriteLacResponse,
    decode_answer,
    encode_request,
    gather_add_responses,
    scan_add_responses,
    scan_v3_add_responses,
    v3,
)

Callback = Callable[[Any, Any, BookieError | None], None]
"""Called once with the token of the request and either the answer or what went wrong."""

Answer = Response | BatchAnswer

Gathered = dict[int, int | list[int]]
"""Ledger → the entry, or entries, that a bookie stored."""

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
"""What answers what. Adds are not here: they are matched by entry, in bulk (`client.channel`)."""

_WORDS: dict[type, str] = {
    ReadLacRequest: "read of the last-add-confirmed",
    WriteLacRequest: "write of the last-add-confirmed",
    ForceRequest: "force",
    ListEntriesRequest: "question for the entries",
}


def describe(request: Request) -> str:
    """A request in words, for messages."""
    if isinstance(request, ReadRequest):
        return f"read of entry {request.entry_id} of ledger {request.ledger_id}"
    if isinstance(request, BatchReadRequest):
        return f"read of {request.max_count} entries from {request.start_entry_id} on of ledger {request.ledger_id}"
    words = _WORDS.get(type(request))
    return f"{words} of ledger {getattr(request, 'ledger_id', '?')}" if words else "question for its disk space"


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request that waits for its answer."""

    request: Request
    callback: Callback
    token: Any
    sent_at: float
    timeout_s: float

    def is_overdue(self, now: float) -> bool:
        """Whether the answer should be here by now."""
        return self.sent_at + self.timeout_s <= now


class Exchange(Protocol):
    """The requests of one connection that wait for answers."""

    def __len__(self) -> int:
        """Requests to which an answer may still come, also where nobody waits for it any more."""

    def submit(self, pending: PendingRequest) -> bytes | None:
        """The frame to send for a request; None when it waits behind another one.

        Raises:
            ArgumentError: this version cannot carry the request.
        """

    def encode_token(self, request: AuthRequest) -> bytes:
        """The frame of a request that nobody waits for here."""

    def scan_adds(self, buffer: bytes, position: int, end: int) -> AddAnswerRun | V3AddAnswerRun | None:
        """The run of answers to adds at `position`; None when something else stands there."""

    def gather_adds(self, buffer: bytes, position: int, end: int, gathered: Gathered) -> int:
        """Sort good answers to adds, of whatever ledgers in turn, and return where they end: perhaps where they began.

        Args:
            gathered: ledger → entries in the order of their answers; what is found is added.
        """

    def decode(self, buffer: bytes, start: int = 0, stop: int | None = None) -> tuple[int, Answer]:
        """(number of the request if the version has one, answer) of the body that stands in a buffer from `start` to `stop`.

        Raises:
            ProtocolError: not an answer.
        """

    def match(self, number: int, response: Answer, now: float) -> tuple[list[PendingRequest], bytes | None]:
        """Whose answer it is, and a frame that is to be sent now that it came."""

    def overdue(self, now: float) -> list[PendingRequest]:
        """Those whose time is up; they are forgotten."""

    def owed_since(self, now: float) -> float:
        """When the oldest request was sent that must be answered before another one can be."""

    def drain(self) -> list[PendingRequest]:
        """Everybody; the connection is gone, and no answer will come."""


@dataclass(slots=True)
class _EntryReads:
    """All reads of one entry. Answers to equal requests look alike, come late and overtake each other, so only one request is out
    at a time, and those who come meanwhile share the next. Else a "no entry" from before an add would answer a read made after it.
    """

    frame: bytes
    asked_at: float
    asked: list[PendingRequest]
    """For whom the request is out; empty once they all gave up."""
    waiting: list[PendingRequest]


class V2Exchange:
    """Version 2: `Exchange` by operation, ledger and entry.

    Args:
        numbers: for batch reads, which alone have one.
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

    def scan_adds(self, buffer: bytes, position: int, end: int) -> AddAnswerRun | None:
        """See `Exchange`."""
        return scan_add_responses(buffer, position, end)

    def gather_adds(self, buffer: bytes, position: int, end: int, gathered: Gathered) -> int:
        """See `Exchange`."""
        return gather_add_responses(buffer, position, end, gathered)

    def decode(self, buffer: bytes, start: int = 0, stop: int | None = None) -> tuple[int, Answer]:
        """See `Exchange`."""
        response = decode_answer(buffer, start, len(buffer) if stop is None else stop)
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
            # The answer is still owed, so the request stays known: whenever it comes, it belongs to nobody who asks from now on.
            found += [pending for pending in (*reads.asked, *reads.waiting) if pending.is_overdue(now)]
            reads.asked = [pending for pending in reads.asked if not pending.is_overdue(now)]
            reads.waiting = [pending for pending in reads.waiting if not pending.is_overdue(now)]
        return found + _take_overdue(self._batches, now)

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

    def scan_adds(self, buffer: bytes, position: int, end: int) -> V3AddAnswerRun | None:
        """See `Exchange`."""
        return scan_v3_add_responses(buffer, position, end)

    def gather_adds(self, buffer: bytes, position: int, end: int, gathered: Gathered) -> int:
        """See `Exchange`. Nothing is gained here: each answer must be taken apart by itself."""
        return position

    def decode(self, buffer: bytes, start: int = 0, stop: int | None = None) -> tuple[int, Answer]:
        """See `Exchange`."""
        return v3.decode_response(buffer[start:stop])

    def match(self, number: int, response: Answer, now: float) -> tuple[list[PendingRequest], bytes | None]:
        """See `Exchange`. An answer to another operation than was asked for under this number is nobody's."""
        pending = self._calls.get(number)
        if pending is None or type(response) is not ANSWERS[type(pending.request)]:
            return [], None
        del self._calls[number]
        return [pending], None

    def overdue(self, now: float) -> list[PendingRequest]:
        """See `Exchange`."""
        return _take_overdue(self._calls, now)

    def owed_since(self, now: float) -> float:
        """See `Exchange`. Nobody waits behind another here."""
        return now

    def drain(self) -> list[PendingRequest]:
        """See `Exchange`."""
        calls, self._calls = self._calls, {}
        return list(calls.values())


def _take_overdue(calls: dict[int, PendingRequest], now: float) -> list[PendingRequest]:
    overdue = {number: pending for number, pending in calls.items() if pending.is_overdue(now)}
    for number in overdue:
        del calls[number]
    return list(overdue.values())
