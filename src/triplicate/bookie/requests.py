"""What a bookie does with each request, whatever protocol version carried it. The add fast path (`adds`) shares `admit`.

Everything here is synchronous on the loop: a fence takes effect between two adds, never within one.
Source of the rules: BookKeeper `BookieImpl`, `LedgerDescriptorImpl`, `ReadEntryProcessor`, `WriteEntryProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from triplicate.bookie.ledgers import LedgerHandle, Verification
from triplicate.bookie.metrics import BookieMetrics
from triplicate.bookie.reads import Reader, ReadingRequest, Reads, refusal
from triplicate.bookie.storage import Storage
from triplicate.bookie.verification import DigestChecks
from triplicate.config import BookieSettings
from triplicate.runtime import Host
from triplicate.wire import (
    LAST_ENTRY,
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    BookieInfoRequest,
    BookieInfoResponse,
    ForceRequest,
    ForceResponse,
    ListEntriesRequest,
    ReadLacRequest,
    ReadRequest,
    Request,
    Response,
    StartTlsRequest,
    StartTlsResponse,
    Status,
    WriteLacRequest,
    WriteLacResponse,
)

AUTH_DISABLED = "AuthDisabledPlugin"
LAC_RECORD_BYTES_MIN = 16


class Peer(Reader, Protocol):
    """A connection as requests see it."""

    def send(self, response: Response) -> None:
        """Answer."""

    def add(self, request: AddRequest, handle: LedgerHandle) -> None:
        """Take a single add."""


class ServerState(Protocol):
    """What may change while the bookie runs."""

    @property
    def read_only(self) -> bool: ...

    @property
    def takes_high_priority(self) -> bool:
        """Whether a read-only bookie has room for the adds of a recovery."""


class Requests:
    """See the module's text."""

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        storage: Storage,
        reads: Reads,
        checks: DigestChecks,
        state: ServerState,
        metrics: BookieMetrics,
    ) -> None:
        self.storage = storage
        self.reads = reads
        self.checks = checks
        self.metrics = metrics
        self._host = host
        self._settings = settings
        self._state = state

    def ledger_of(self, request: Request) -> int | None:
        """The ledger whose handle must be in memory before `handle` is called."""
        if isinstance(request, AuthRequest | BookieInfoRequest | ForceRequest | StartTlsRequest):
            return None
        return request.ledger_id

    def handle(self, request: Request, peer: Peer, handle: LedgerHandle | None) -> None:
        """Do what is asked; the answer goes to `peer`, now or later."""
        if isinstance(request, AddRequest):
            assert handle is not None
            peer.add(request, handle)
        elif isinstance(request, ReadRequest | BatchReadRequest):
            assert handle is not None
            self._read(request, peer, handle)
        elif isinstance(request, ReadLacRequest | ListEntriesRequest):
            assert handle is not None
            self._answer_read(request, peer, handle)
        elif isinstance(request, WriteLacRequest):
            assert handle is not None
            self._write_lac(request, peer, handle)
        else:
            self._without_ledger(request, peer)

    def refuse(self, request: Request, peer: Peer, status: Status) -> None:
        """Answer a request about a ledger without having done anything."""
        if isinstance(request, AddRequest):
            peer.send(AddResponse(status, request.ledger_id, request.entry_id))
        elif isinstance(request, WriteLacRequest):
            peer.send(WriteLacResponse(status, request.ledger_id))
        elif isinstance(request, ReadRequest | BatchReadRequest | ReadLacRequest | ListEntriesRequest):
            peer.respond(refusal(request, status))

    def _without_ledger(self, request: AuthRequest | ForceRequest | BookieInfoRequest | StartTlsRequest, peer: Peer) -> None:
        self.metrics.other_requests.labels(type(request).__name__).inc()
        if isinstance(request, AuthRequest):
            peer.send(AuthResponse(Status.OK, AUTH_DISABLED, b""))
        elif isinstance(request, ForceRequest):
            ledger_id = request.ledger_id
            self._after_sync(
                lambda then: self.storage.journal_barrier(ledger_id, then), peer, lambda status: ForceResponse(status, ledger_id)
            )
        elif isinstance(request, BookieInfoRequest):
            peer.send(self._bookie_info())
        else:
            peer.send(StartTlsResponse(Status.BAD_REQUEST))

    # Adds.

    def admit(self, handle: LedgerHandle, master_key: bytes, *, recovery: bool, high_priority: bool) -> Status:
        """Whether adds with this key and these flags are taken now; creates the ledger. The version was checked by whoever decoded them.

        The order of checks is BookKeeper's: version, read-only, key, fence, store.
        """
        if self._state.read_only and not (high_priority and self._state.takes_high_priority):
            return Status.READ_ONLY
        if handle.master_key is None:
            if self.storage.ledgers.was_fenced_and_deleted(handle.ledger_id):
                return Status.FENCED
            if self.storage.full:
                return Status.TOO_MANY_REQUESTS
            handle.master_key = master_key
            self.storage.ledgers.touch_state(handle)
        elif handle.master_key != master_key:
            return Status.UNAUTHORIZED
        if handle.fenced and not recovery:
            return Status.FENCED
        if self.storage.full:
            return Status.TOO_MANY_REQUESTS
        if handle.verification is Verification.UNKNOWN:
            self.checks.ask(handle)
        return Status.OK

    # Reads.

    def _read(self, request: ReadRequest | BatchReadRequest, peer: Peer, handle: LedgerHandle) -> None:
        entry_id = request.start_entry_id if isinstance(request, BatchReadRequest) else request.entry_id
        if entry_id < 0 and (isinstance(request, BatchReadRequest) or entry_id != LAST_ENTRY):
            peer.respond(refusal(request, Status.BAD_REQUEST))
        elif request.fence:
            self._fencing_read(request, peer, handle)
        else:
            self._answer_read(request, peer, handle)

    def _fencing_read(self, request: ReadRequest | BatchReadRequest, peer: Peer, handle: LedgerHandle) -> None:
        """Key and fence are journaled together and synced before any answer, also when that is 'no entry' (trap 13 of the protocol)."""
        self.metrics.fences.inc()
        if request.master_key is None or (handle.master_key is not None and handle.master_key != request.master_key):
            peer.respond(refusal(request, Status.UNAUTHORIZED))
            return
        if handle.master_key is None and self.storage.ledgers.was_fenced_and_deleted(handle.ledger_id):
            peer.respond(refusal(request, Status.NO_LEDGER))
            return
        self._fence(handle, request.master_key)
        if handle.fence_durable:
            self._answer_read(request, peer, handle)
            return

        def then(synced: bool) -> None:
            if synced:
                handle.fence_durable = True
                self._answer_read(request, peer, handle)
            else:
                peer.respond(refusal(request, Status.IO_ERROR))

        self._journal_fence(handle, then)

    def _fence(self, handle: LedgerHandle, master_key: bytes) -> None:
        """From here on only recovery may add."""
        handle.master_key = master_key
        if not handle.fenced:
            handle.fenced = True
            self._host.trace("bookie.fenced", ledger_id=handle.ledger_id)

    def _journal_fence(self, handle: LedgerHandle, then: Callable[[bool], None]) -> None:
        try:
            self.storage.journal_state(handle, then)
        except OSError:
            then(False)

    def _answer_read(self, request: ReadingRequest, peer: Peer, handle: LedgerHandle) -> None:
        response = self.reads.cached(request, handle)
        if response is not None:
            peer.respond(response)
        else:
            self.reads.queue(peer, request, handle)

    # Explicit last-add-confirmed and the rest.

    def _write_lac(self, request: WriteLacRequest, peer: Peer, handle: LedgerHandle) -> None:
        self.metrics.other_requests.labels(type(request).__name__).inc()
        ledger_id = request.ledger_id
        status = Status.OK
        if self._state.read_only:
            status = Status.READ_ONLY
        elif handle.master_key is not None and handle.master_key != request.master_key:
            status = Status.UNAUTHORIZED
        elif handle.master_key is None and self.storage.ledgers.was_fenced_and_deleted(ledger_id):
            status = Status.NO_LEDGER
        elif len(request.body) < LAC_RECORD_BYTES_MIN:
            status = Status.BAD_REQUEST
        if status is not Status.OK:
            peer.send(WriteLacResponse(status, ledger_id))
            return
        handle.master_key = request.master_key
        handle.explicit_lac = request.body
        # The record may be newer than the request's own field, so the number is taken from the record (trap 17 of the protocol).
        handle.max_lac = max(handle.max_lac, int.from_bytes(request.body[8:16], "big", signed=True))
        self._after_sync(lambda then: self.storage.journal_state(handle, then), peer, lambda synced: WriteLacResponse(synced, ledger_id))

    def _after_sync(self, submit: Callable[[Callable[[bool], None]], None], peer: Peer, response: Callable[[Status], Response]) -> None:
        def then(synced: bool) -> None:
            peer.send(response(Status.OK if synced else Status.IO_ERROR))

        try:
            submit(then)
        except OSError:
            then(False)

    def _bookie_info(self) -> BookieInfoResponse:
        spaces: dict[tuple[int, int], None] = {}
        try:
            for directory in self._settings.ledger_directories:
                # Directories on one file system show the same figures and count once.
                spaces[self._host.disk.free_space(directory)] = None
        except OSError:
            return BookieInfoResponse(Status.IO_ERROR)
        return BookieInfoResponse(Status.OK, sum(total for _, total in spaces), sum(free for free, _ in spaces))
