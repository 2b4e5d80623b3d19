"""Requests and responses of a bookie, without regard to the protocol version that carries them.

`wire.v2` and `wire.v3` convert packets to these messages and back. A field that one version cannot carry names the other version.
Ids are signed 64-bit; `body` is always a complete entry: 32 bytes of header, digest, payload.
Source: BookKeeper `BookieProtocol`, `BookkeeperProtocol.proto`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

LAST_ENTRY = -1
"""As an entry id in a read: the entry with the greatest id that this bookie stores for the ledger."""


class Status(IntEnum):
    """The status of an answer. The values are v3's; `wire.status` maps them to v2's and back."""

    OK = 0
    NO_LEDGER = 402
    NO_ENTRY = 403
    BAD_REQUEST = 404
    IO_ERROR = 501
    UNAUTHORIZED = 502
    BAD_VERSION = 503
    FENCED = 504
    READ_ONLY = 505
    TOO_MANY_REQUESTS = 506
    UNKNOWN_LEDGER_STATE = 507


@dataclass(slots=True)
class AddRequest:
    """Store one entry. Ledger and entry ids are those inside `body`."""

    ledger_id: int
    entry_id: int
    master_key: bytes
    body: bytes
    recovery: bool = False
    high_priority: bool = False
    deferred_sync: bool = False
    """v3 only: answer before the sync."""


@dataclass(slots=True)
class ReadRequest:
    """Read one entry, or the last (`LAST_ENTRY`)."""

    ledger_id: int
    entry_id: int
    fence: bool = False
    """Fence the ledger on this bookie before reading; needs `master_key`."""
    master_key: bytes | None = None
    high_priority: bool = False
    previous_lac: int | None = None
    """v3 only; its presence makes the read a long poll: wait until the last-add-confirmed passes it."""
    timeout_ms: int | None = None
    """v3 only: how long a long poll may wait."""
    piggyback: bool = False
    """v3 only: answer a long poll with entry `previous_lac` + 1."""


@dataclass(slots=True)
class BatchReadRequest:
    """Read consecutive entries; v2 only."""

    ledger_id: int
    start_entry_id: int
    request_id: int
    max_count: int
    max_bytes: int
    fence: bool = False
    master_key: bytes | None = None


@dataclass(slots=True)
class AuthRequest:
    """A token of an authentication plugin."""

    plugin: str
    payload: bytes


@dataclass(slots=True)
class WriteLacRequest:
    """Store an explicit last-add-confirmed; v3 only. `body` is the signed record."""

    ledger_id: int
    lac: int
    master_key: bytes
    body: bytes


@dataclass(slots=True)
class ReadLacRequest:
    """Read the explicit last-add-confirmed and the last entry; v3 only."""

    ledger_id: int


@dataclass(slots=True)
class ForceRequest:
    """Sync everything accepted before; v3 only."""

    ledger_id: int


@dataclass(slots=True)
class BookieInfoRequest:
    """Ask for total and free disk space; v3 only."""

    requested: int = 3


@dataclass(slots=True)
class ListEntriesRequest:
    """Ask which entries of a ledger the bookie holds; v3 only."""

    ledger_id: int


@dataclass(slots=True)
class StartTlsRequest:
    """Ask to upgrade the connection; v3 only."""


Request = (
    AddRequest
    | ReadRequest
    | BatchReadRequest
    | AuthRequest
    | WriteLacRequest
    | ReadLacRequest
    | ForceRequest
    | BookieInfoRequest
    | ListEntriesRequest
    | StartTlsRequest
)


@dataclass(slots=True)
class AddResponse:
    status: Status
    ledger_id: int
    entry_id: int


@dataclass(slots=True)
class ReadResponse:
    """`entry_id` echoes the request (so `LAST_ENTRY` stays -1 while `body` holds a real entry)."""

    status: Status
    ledger_id: int
    entry_id: int
    body: bytes | None = None
    max_lac: int | None = None
    """v3 only: the greatest last-add-confirmed that the bookie knows."""
    lac_update_ms: int | None = None
    """v3 only: when it advanced, milliseconds since the epoch."""


@dataclass(slots=True)
class BatchReadResponse:
    """`bodies` are consecutive entries from `start_entry_id` on; often fewer than requested.

    An encoder may pass `packed` instead: the entries as on the wire, each after its size as u32. A decoded response has `bodies`.
    """

    status: Status
    ledger_id: int
    start_entry_id: int
    request_id: int
    bodies: tuple[bytes, ...] = ()
    packed: tuple[bytes, ...] = ()


@dataclass(slots=True)
class AuthResponse:
    """`status` does not travel over v2."""

    status: Status
    plugin: str
    payload: bytes


@dataclass(slots=True)
class WriteLacResponse:
    status: Status
    ledger_id: int


@dataclass(slots=True)
class ReadLacResponse:
    status: Status
    ledger_id: int
    lac_body: bytes | None = None
    last_entry_body: bytes | None = None


@dataclass(slots=True)
class ForceResponse:
    status: Status
    ledger_id: int


@dataclass(slots=True)
class BookieInfoResponse:
    status: Status
    total_bytes: int | None = None
    free_bytes: int | None = None


@dataclass(slots=True)
class ListEntriesResponse:
    status: Status
    ledger_id: int
    availability: bytes | None = None


@dataclass(slots=True)
class StartTlsResponse:
    status: Status


Response = (
    AddResponse
    | ReadResponse
    | BatchReadResponse
    | AuthResponse
    | WriteLacResponse
    | ReadLacResponse
    | ForceResponse
    | BookieInfoResponse
    | ListEntriesResponse
    | StartTlsResponse
)
