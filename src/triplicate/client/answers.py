"""What a bookie's refusal means to a client, as an exception."""

from __future__ import annotations

from triplicate.errors import (
    BookieError,
    BookieReadOnly,
    BookieUnavailable,
    ConnectionBroken,
    LedgerFenced,
    RequestTimeout,
    TooManyRequests,
    TriplicateError,
    Unauthorized,
)
from triplicate.wire import Status

EXPLICIT_NEGATIVES = (Status.NO_ENTRY, Status.NO_LEDGER)
"""The only answers that say "it is not here". Every other one, a fenced answer included, leaves that unknown."""


def error_of(status: Status, bookie_id: str, ledger_id: int, what: str) -> TriplicateError:
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
        refused = Unauthorized(f"{text}: the password is not the ledger's, or the bookie wants an authentication first")
        refused.ledger_id = ledger_id
        return refused
    kinds: dict[Status, type[BookieError]] = {Status.READ_ONLY: BookieReadOnly, Status.TOO_MANY_REQUESTS: TooManyRequests}
    return about_bookie(kinds.get(status, BookieError), bookie_id, text)


def about_bookie(kind: type[BookieError], bookie_id: str, text: str) -> BookieError:
    """An error of one bookie that names it."""
    error = kind(text)
    error.bookie_id = bookie_id
    return error


def unavailable(bookie_id: str, why: str) -> BookieError:
    """No connection to the bookie."""
    return about_bookie(BookieUnavailable, bookie_id, f"bookie {bookie_id} is unavailable: {why}")


def broken(bookie_id: str, why: str) -> BookieError:
    """There was a connection, and it ended while the request was on the way."""
    return about_bookie(ConnectionBroken, bookie_id, f"bookie {bookie_id} is unavailable: {why}")


def overloaded(bookie_id: str, requests: int) -> BookieError:
    """Nothing more is sent to a bookie that owes so many answers."""
    return about_bookie(
        TooManyRequests, bookie_id, f"bookie {bookie_id} owes {requests} answers, and no more is asked of it before some came"
    )


def timed_out(bookie_id: str, what: str, seconds: float) -> BookieError:
    """No answer in time."""
    return about_bookie(RequestTimeout, bookie_id, f"bookie {bookie_id} did not answer the {what} within {seconds:g} s")
