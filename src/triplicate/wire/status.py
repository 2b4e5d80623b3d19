"""Status codes of the two protocol versions. Source: BookKeeper `BookieProtocol`, `BookkeeperProtocol.proto`."""

from __future__ import annotations

from triplicate.wire.messages import Status

V2_CODES: dict[Status, int] = {
    Status.OK: 0,
    Status.NO_LEDGER: 1,
    Status.NO_ENTRY: 2,
    Status.BAD_REQUEST: 100,
    Status.IO_ERROR: 101,
    Status.UNAUTHORIZED: 102,
    Status.BAD_VERSION: 103,
    Status.FENCED: 104,
    Status.READ_ONLY: 105,
    Status.TOO_MANY_REQUESTS: 106,
    # 107 exists, but Apache's v2 client does not know it and closes its connection.
    Status.UNKNOWN_LEDGER_STATE: 101,
}
"""The v2 code that is sent for each status."""

_STATUSES: dict[int, Status] = {code: status for status, code in V2_CODES.items() if status is not Status.UNKNOWN_LEDGER_STATE}
_STATUSES[107] = Status.UNKNOWN_LEDGER_STATE


def status_to_v2(status: Status) -> int:
    """The v2 code of a status; never 107."""
    return V2_CODES[status]


def status_from_v2(code: int) -> Status:
    """The status of a v2 code. A code that this release does not know is an I/O error: it says nothing about the entry."""
    return _STATUSES.get(code, Status.IO_ERROR)


_OF_V3 = {status.value: status for status in Status}


def status_from_v3(code: int) -> Status:
    """The status of a v3 code, which is its value. A code that this release does not know is an I/O error, as in v2."""
    return _OF_V3.get(code, Status.IO_ERROR)
