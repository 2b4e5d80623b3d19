"""The two protocol versions as a connection sees them: adds in bulk, other requests one by one, answers to frames.

The version of a connection is detected as in BookKeeper's `RequestDecoder`: version 3 until a body is not of version 3, from then on
version 2 and its predecessors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from triplicate.errors import ProtocolError
from triplicate.wire import (
    AddRun,
    AuthRequest,
    AuthResponse,
    BookieInfoRequest,
    OversizedAdd,
    Request,
    Response,
    StartTlsRequest,
    Status,
    Unserved,
    decode_request,
    encode_add_responses,
    encode_response,
    encode_v3_add_responses,
    oversized_v2_add,
    oversized_v3_add,
    scan_adds,
    scan_v3_adds,
    v2,
    v3,
)


class Adds(NamedTuple):
    """Consecutive adds of one ledger with one key and the same flags, as frames of version 2, which is the journal's form."""

    run: AddRun
    """Its offsets point into `source`."""
    source: bytes
    txn_ids: Sequence[int]
    """Transactions of version 3; empty for version 2."""
    deferred_sync: bool
    end: int
    """Where the adds end in the connection's buffer."""


class Dialect(Protocol):
    """See the module's text."""

    def scan_adds(self, buffer: bytes, position: int, end: int, most: int) -> Adds | None:
        """The adds that begin at `position`; None if something else, or no whole frame, stands there."""

    def encode_adds(self, ledger_id: int, entry_ids: Sequence[int], txn_ids: Sequence[int], status: Status = Status.OK) -> bytes:
        """The answers to adds."""

    def decode(self, body: bytes) -> tuple[Request, int] | bytes:
        """(request, tag), or the frame that refuses a request which is not served.

        Raises:
            ProtocolError: not a request of this version.
        """

    def oversized_add(self, head: bytes) -> OversizedAdd | None:
        """The add that begins with these bytes and is over the frame limit; None if it is no add of this version."""

    def encode(self, response: Response, tag: int) -> bytes:
        """The frame of the answer to the request with this tag."""


NUMBERED_VERSIONS = range(1, 4)
NUMBERED_OPERATIONS = range(1, 13)
UNSERVED_OPERATIONS = tuple(number for number in NUMBERED_OPERATIONS if number not in tuple(v3.OperationType))
"""Ranges and batch reads, which have numbers but no messages in version 3."""
_WITHOUT_PART: dict[int, Request] = {
    v3.OperationType.AUTH: AuthRequest("", b""),
    v3.OperationType.BOOKIE_INFO: BookieInfoRequest(0),
    v3.OperationType.START_TLS: StartTlsRequest(),
}
"""Operations that are refused without decoding their part."""


class V2Dialect:
    """Version 2 and its predecessors. The tag is the request's version, which the answer repeats."""

    def scan_adds(self, buffer: bytes, position: int, end: int, most: int) -> Adds | None:
        run = scan_adds(buffer, position, end, most)
        return None if run is None else Adds(run, buffer, (), False, run.offsets[-1])

    def encode_adds(self, ledger_id: int, entry_ids: Sequence[int], txn_ids: Sequence[int], status: Status = Status.OK) -> bytes:
        return encode_add_responses(ledger_id, entry_ids, status)

    def decode(self, body: bytes) -> tuple[Request, int] | bytes:
        try:
            request = decode_request(body)
        except Unserved as error:
            if error.answer is not None:
                return encode_response(error.answer, error.version)
            # The version of a token is not checked. Anything else of an unknown version is no request.
            request = decode_request(bytes([v2.CURRENT_VERSION]) + body[1:])
        return request, body[0]

    def oversized_add(self, head: bytes) -> OversizedAdd | None:
        return oversized_v2_add(head)

    def encode(self, response: Response, tag: int) -> bytes:
        if isinstance(response, AuthResponse):
            # BookKeeper's bookie answers with the current version here, not with that of the request.
            return encode_response(response)
        return encode_response(response, tag)


class V3Dialect:
    """Version 3. The tag is the transaction.

    A good message that BookKeeper's bookie cannot read is no request here either: numbers that the protocol's enumerations do not have, an
    operation without its part. Measured with Apache's bookie 4.18.

    Args:
        knows_unknown_state: whether clients understand status 507; an unknown status makes the whole answer unreadable for them.
    """

    def __init__(self, knows_unknown_state: bool = True) -> None:
        self._knows_unknown_state = knows_unknown_state

    def scan_adds(self, buffer: bytes, position: int, end: int, most: int) -> Adds | None:
        run = scan_v3_adds(buffer, position, end, most)
        if run is None:
            return None
        source, as_v2 = run.as_v2(buffer)
        return Adds(as_v2, source, run.txn_ids, run.deferred_sync, run.end)

    def encode_adds(self, ledger_id: int, entry_ids: Sequence[int], txn_ids: Sequence[int], status: Status = Status.OK) -> bytes:
        return encode_v3_add_responses(ledger_id, entry_ids, txn_ids, status)

    def decode(self, body: bytes) -> tuple[Request, int] | bytes:
        envelope = v3.decode_request(body)
        if envelope.version not in NUMBERED_VERSIONS or envelope.operation not in NUMBERED_OPERATIONS:
            raise ProtocolError(f"version {envelope.version}, operation {envelope.operation}: a number that is none of the protocol's")
        request = envelope.request or _WITHOUT_PART.get(envelope.operation)
        if request is None:
            if envelope.operation in UNSERVED_OPERATIONS:
                return v3.encode_unknown_operation(envelope)
            raise ProtocolError(f"a request for operation {envelope.operation} without the part that says what is wanted")
        if isinstance(request, AuthRequest | BookieInfoRequest | StartTlsRequest):
            # These are answered for any header.
            return request, envelope.txn_id
        if envelope.refusal is not None:
            return v3.encode_refusal(envelope, envelope.refusal)
        return request, envelope.txn_id

    def oversized_add(self, head: bytes) -> OversizedAdd | None:
        return oversized_v3_add(head)

    def encode(self, response: Response, tag: int) -> bytes:
        if response.status is Status.UNKNOWN_LEDGER_STATE and not self._knows_unknown_state:
            response.status = Status.IO_ERROR
        return v3.encode_response(response, tag)
