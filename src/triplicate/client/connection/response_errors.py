"""What a bookie's refusal means to a client, as an exception."""

from __future__ import annotations

from triplicate.errors import (
    BookieError,
    BookieReadOnly,
    BookieUnavailable,
    ConnectionBroken,
    EntryTooLarge,
    LedgerFenced,
    RequestTimeout,
    TooManyRequests,
    TriplicateError,
    Unauthorized,
)
from triplicate.wire import MAX_FRAME_BYTES, TOO_LARGE, Status

EXPLICIT_NEGATIVES = (Status.NO_ENTRY, Status.NO_LEDGER)
"""The only answers that say "it is not here". Every other one, a fenced answer included, leaves that unknown."""

SIZE_REFUSALS = (TOO_LARGE, Status.BAD_REQUEST)
"""Answers to an add that may mean that its frame passes the bookie's limit."""


def error_for_status(status: Status, bookie_id: str, ledger_id: int, what: str) -> TriplicateError:
    """The exception for a status other than OK.

    Args:
        what: what was asked, for example ``add of entry 7``.
    """
    text = f"bookie {bookie_id} answered {status.name} to the {what} of ledger {ledger_id}"
    if status == Status.FENCED:
        fenced = LedgerFenced(f"{text}: another client is recovering the ledger")
        fenced.ledger_id = ledger_id
        return fenced
    if status == Status.UNAUTHORIZED:
        refused = Unauthorized(
            f"{text}: the password is not the ledger's, the bookie wants an authentication first, or the entry passes its frame limit"
        )
        refused.ledger_id = ledger_id
        return refused
    kinds: dict[Status, type[BookieError]] = {Status.READ_ONLY: BookieReadOnly, Status.TOO_MANY_REQUESTS: TooManyRequests}
    return bookie_error(kinds.get(status, BookieError), bookie_id, text)


def too_large(status: Status, bookie_id: str, ledger_id: int, entry_id: int, frame_bytes: int) -> TriplicateError | None:
    """The exception for a refusal by which bookies say that an add's frame passes their limit; None where it says something else.

    The protocol has no status of its own for that: our bookies say "unauthorized", which is the only one that ends Apache's writers.
    A frame within the limit that every bookie has by default is never refused for its size.
    """
    if frame_bytes <= MAX_FRAME_BYTES or status not in SIZE_REFUSALS:
        return None
    error = EntryTooLarge(
        f"bookie {bookie_id} refused entry {entry_id} of ledger {ledger_id} ({status.name}), whose frame of {frame_bytes} bytes passes the "
        f"{MAX_FRAME_BYTES} bytes that every bookie takes by default: raise bookie.frame_limit_bytes, or lower client.frame_limit_bytes to "
        "the bookies'; if theirs is no smaller, the password is not the ledger's"
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
    """There was a connection, and it ended while the request was on the way."""
    return bookie_error(ConnectionBroken, bookie_id, f"bookie {bookie_id} is unavailable: {why}")


def owes_too_much(bookie_id: str, requests: int) -> BookieError:
    """Nothing more is sent to a bookie that owes so many answers."""
    return bookie_error(
        TooManyRequests, bookie_id, f"bookie {bookie_id} owes {requests} answers, and no more is asked of it before some came"
    )


def request_timeout(bookie_id: str, what: str, seconds: float) -> BookieError:
    """No answer in time."""
    return bookie_error(RequestTimeout, bookie_id, f"bookie {bookie_id} did not answer the {what} within {seconds:g} s")
