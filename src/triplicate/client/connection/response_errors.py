"""Exceptions for the answers of bookies, and for missing answers."""

from __future__ import annotations

from collections.abc import Mapping

from triplicate.errors import (
    BookieError,
    BookieReadOnly,
    BookieUnavailable,
    ConnectionBroken,
    CopyUnreadable,
    EntryTooLarge,
    LedgerFenced,
    RequestTimeout,
    TooManyRequests,
    TriplicateError,
    Unauthorized,
)
from triplicate.wire import MAX_FRAME_BYTES, TOO_LARGE, Status

EXPLICIT_NEGATIVES = (Status.NO_ENTRY, Status.NO_LEDGER)
"""The only answers that deny an entry. Every other answer, including "fenced", leaves its existence unknown."""

SIZE_REFUSALS = (TOO_LARGE, Status.BAD_REQUEST)
"""Answers to an add that may mean that its frame exceeds the bookie's limit."""


KINDS: dict[Status, type[BookieError]] = {Status.READ_ONLY: BookieReadOnly, Status.TOO_MANY_REQUESTS: TooManyRequests}
KINDS_OF_READS = {**KINDS, Status.IO_ERROR: CopyUnreadable}


def error_for_status(
    status: Status, bookie_id: str, ledger_id: int, what: str, kinds: Mapping[Status, type[BookieError]] = KINDS
) -> TriplicateError:
    """The exception for a status other than OK.

    Args:
        what: names the request, for example ``add of entry 7``.
    """
    text = f"bookie {bookie_id} answered {status.name} to the {what} of ledger {ledger_id}"
    if status == Status.FENCED:
        fenced = LedgerFenced(f"{text}: another client is recovering the ledger")
        fenced.ledger_id = ledger_id
        return fenced
    if status == Status.UNAUTHORIZED:
        refused = Unauthorized(
            f"{text}: the password is not the ledger's, the bookie requires authentication or TLS that this client lacks (client.user, "
            "client.bookie_tls, or the role of its user or certificate), or the frame exceeds its limit"
        )
        refused.ledger_id = ledger_id
        return refused
    return bookie_error(kinds.get(status, BookieError), bookie_id, text)


def too_large(status: Status, bookie_id: str, ledger_id: int, entry_id: int, frame_bytes: int) -> TriplicateError | None:
    """The exception for a refusal because an add's frame exceeds the bookie's limit; None if the refusal means something else.

    The protocol has no status for this: our bookies answer "unauthorized", the only status that ends Apache's writers. A frame within
    the default limit of bookies is never refused for its size.
    """
    if frame_bytes <= MAX_FRAME_BYTES or status not in SIZE_REFUSALS:
        return None
    error = EntryTooLarge(
        f"bookie {bookie_id} refused entry {entry_id} of ledger {ledger_id} ({status.name}), whose frame of {frame_bytes} bytes exceeds "
        f"the {MAX_FRAME_BYTES} bytes that every bookie accepts by default: raise bookie.frame_limit_bytes, or lower "
        "client.frame_limit_bytes to the bookies'; if theirs is not smaller, the password is wrong"
    )
    error.ledger_id = ledger_id
    return error


def bookie_error(kind: type[BookieError], bookie_id: str, text: str) -> BookieError:
    """An error of one bookie that names it."""
    error = kind(text)
    error.bookie_id = bookie_id
    return error


def bookie_unavailable(bookie_id: str, why: str) -> BookieError:
    """No connection to the bookie."""
    return bookie_error(BookieUnavailable, bookie_id, f"bookie {bookie_id} is unavailable: {why}")


def connection_broken(bookie_id: str, why: str) -> BookieError:
    """The connection ended while the request was in flight."""
    return bookie_error(ConnectionBroken, bookie_id, f"bookie {bookie_id} is unavailable: {why}")


def owes_too_much(bookie_id: str, requests: int) -> BookieError:
    """The bookie owes too many answers, so the request is not sent."""
    return bookie_error(
        TooManyRequests, bookie_id, f"bookie {bookie_id} owes {requests} answers, and is sent no more requests until some of them arrive"
    )


def request_timeout(bookie_id: str, what: str, seconds: float) -> BookieError:
    """No answer in time."""
    return bookie_error(RequestTimeout, bookie_id, f"bookie {bookie_id} did not answer the {what} within {seconds:g} s")
