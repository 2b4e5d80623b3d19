"""Handles requests of either protocol version. `AddProcessor` handles adds in bulk beside this.

Everything here is synchronous on the loop: a fence takes effect between two adds, never within one. Source of the rules: BookKeeper
`BookieImpl`, `LedgerDescriptorImpl`, `ReadEntryProcessor`, `WriteEntryProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.core.ledger_table import LedgerHandle, Verification
from triplicate.bookie.digest_checks import DigestChecks
from triplicate.bookie.server.long_polls import LongPolls
from triplicate.bookie.server.read_processor import ReadProcessor
from triplicate.bookie.server.request_context import Peer, RequestContext
from triplicate.bookie.storage.storage import Storage
from triplicate.config import BookieSettings
from triplicate.runtime import Host, fault_point
from triplicate.wire import (
    LAST_ENTRY,
    AddRequest,
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
    Status,
    WriteLacRequest,
    WriteLacResponse,
    v3,
)

LAC_RECORD_BYTES_MIN = 16
LAC_RECORD_BYTES_MAX = 64
"""The longest digest makes records of 36 bytes. Records are kept in memory, journaled, and flushed with the state of every ledger."""


class ServerState(Protocol):
    """State that changes while the bookie runs."""

    @property
    def read_only(self) -> bool: ...

    @property
    def accepts_high_priority(self) -> bool:
        """Whether a read-only bookie has room for the adds of a recovery."""


class RequestProcessor:
    """See the module's text."""

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        storage: Storage,
        reads: ReadProcessor,
        long_polls: LongPolls,
        checks: DigestChecks,
        state: ServerState,
        metrics: BookieMetrics,
    ) -> None:
        self.storage = storage
        self.reads = reads
        self.long_polls = long_polls
        self.checks = checks
        self.metrics = metrics
        self._host = host
        self._settings = settings
        self._state = state

    @property
    def read_only(self) -> bool:
        """Whether normal adds are refused."""
        return self._state.read_only

    @property
    def journals_behind(self) -> bool:
        """Whether a journal is so far behind that adds would be refused because of it."""
        limit = 2 * self._settings.journal_queue_bytes
        return any(journal.waiting_bytes >= limit for journal in self.storage.journals)

    def forget(self, peer: Peer) -> None:
        """Forget a connection that is gone."""
        self.reads.forget(peer)
        self.long_polls.forget(peer)

    def handle(self, context: RequestContext) -> None:
        """Handle a request other than an add. The answer goes to the peer, now or later."""
        request = context.request
        if isinstance(request, ReadRequest | BatchReadRequest):
            self._read(context, request)
        elif isinstance(request, ReadLacRequest | ListEntriesRequest):
            self.reads.serve(context)
        else:
            self.metrics.other_requests.labels(type(request).__name__).inc()
            if isinstance(request, WriteLacRequest):
                self._write_lac(context, request)
            elif isinstance(request, AuthRequest):
                context.answer(AuthResponse(Status.OK, v3.AUTH_DISABLED, b""))
            elif isinstance(request, ForceRequest):
                # The ledger need not exist, and a read-only bookie forces too.
                self._after_sync(
                    context,
                    lambda then: self.storage.journal_barrier(request.ledger_id, then),
                    lambda status: ForceResponse(status, request.ledger_id),
                )
            elif isinstance(request, BookieInfoRequest):
                context.answer(self._bookie_info())
            else:
                context.refuse(Status.BAD_REQUEST)

    # Adds.

    def admit(self, handle: LedgerHandle, master_key: bytes, *, recovery: bool, high_priority: bool) -> Status:
        """Check whether adds with this key and these flags are accepted now; creates the ledger. The decoder has checked the version.

        The order of checks is BookKeeper's: version, read-only, key, fence, store.
        """
        if self._state.read_only and not (high_priority and self._state.accepts_high_priority):
            return Status.READ_ONLY
        if handle.limbo and not recovery:
            # The fence that would stop an old writer may be lost. A living writer replaces this bookie.
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
            self.checks.request(handle)
        return Status.OK

    # Reads.

    def _read(self, context: RequestContext, request: ReadRequest | BatchReadRequest) -> None:
        entry_id = request.start_entry_id if isinstance(request, BatchReadRequest) else request.entry_id
        if entry_id < 0 and (isinstance(request, BatchReadRequest) or entry_id != LAST_ENTRY):
            context.refuse(Status.BAD_REQUEST)
        elif request.fence:
            self._fencing_read(context, context.ledger, request.master_key)
        elif isinstance(request, ReadRequest) and request.previous_lac is not None:
            self.long_polls.admit(context, request)
        else:
            self.reads.serve(context)

    def _fencing_read(self, context: RequestContext, handle: LedgerHandle, master_key: bytes | None) -> None:
        """Key and fence are journaled together and synced before any answer, also before 'no entry' (trap 13 of the protocol)."""
        self.metrics.fences.inc()
        if master_key is None or (handle.master_key is not None and handle.master_key != master_key):
            context.refuse(Status.UNAUTHORIZED)
            return
        if handle.master_key is None and self.storage.ledgers.was_fenced_and_deleted(handle.ledger_id):
            context.refuse(Status.NO_LEDGER)
            return
        self._fence(handle, master_key)
        if handle.fence_durable:
            self.reads.serve(context)
            return

        def then(synced: bool) -> None:
            if synced:
                handle.fence_durable = True
                self.reads.serve(context)
            else:
                context.refuse(Status.IO_ERROR)

        self._journal_fence(handle, then)

    def _fence(self, handle: LedgerHandle, master_key: bytes) -> None:
        """Fence the ledger: from now on only recovery may add."""
        handle.master_key = master_key
        if not handle.fenced:
            handle.fenced = True
            self._host.trace("bookie.fenced", ledger_id=handle.ledger_id)
            if handle.wake is not None:
                handle.wake(False)

    @fault_point("bookie.fence")
    def _journal_fence(self, handle: LedgerHandle, then: Callable[[bool], None]) -> None:
        try:
            self.storage.journal_state(handle, then)
        except OSError:
            then(False)

    # Explicit last-add-confirmed and the rest.

    def _write_lac(self, context: RequestContext, request: WriteLacRequest) -> None:
        handle, ledger_id = context.ledger, request.ledger_id
        status = Status.OK
        if self._state.read_only:
            status = Status.READ_ONLY
        elif handle.master_key is not None and handle.master_key != request.master_key:
            status = Status.UNAUTHORIZED
        elif handle.master_key is None and self.storage.ledgers.was_fenced_and_deleted(ledger_id):
            status = Status.NO_LEDGER
        elif not LAC_RECORD_BYTES_MIN <= len(request.body) <= LAC_RECORD_BYTES_MAX:
            status = Status.BAD_REQUEST
        elif self.storage.full:
            status = Status.TOO_MANY_REQUESTS
        elif handle.verifier is not None and not handle.verifier.verify_lac(request.body):
            # Polls pass on the number without the record, so a reader could not detect a damaged record.
            self.metrics.digest_mismatches.inc()
            self._host.trace("bookie.lac_record_mismatch", ledger_id=ledger_id, size_bytes=len(request.body))
            status = Status.IO_ERROR if self.checks.refuses else Status.OK
        if status is not Status.OK:
            context.refuse(status)
            return
        handle.master_key = request.master_key
        handle.accept_explicit_lac(request.body)

        def submit(then: Callable[[bool], None]) -> None:
            def synced(done: bool) -> None:
                if done:
                    # Not earlier: a reader that has seen the record must find it after every crash (decision 29).
                    # The record may be newer than the request's own field, so the number is taken from it (trap 17 of the protocol).
                    handle.publish_explicit_lac(request.body)
                then(done)

            self.storage.journal_state(handle, synced)

        self._after_sync(context, submit, lambda status: WriteLacResponse(status, ledger_id))

    def _after_sync(
        self, context: RequestContext, submit: Callable[[Callable[[bool], None]], None], response: Callable[[Status], Response]
    ) -> None:
        def then(synced: bool) -> None:
            context.answer(response(Status.OK if synced else Status.IO_ERROR))

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


def ledger_of(request: Request) -> int | None:
    """The ledger whose handle a request must come with."""
    if isinstance(request, AuthRequest | BookieInfoRequest | ForceRequest | StartTlsRequest):
        return None
    return request.ledger_id


def changes_ledger(request: Request) -> bool:
    """Whether a request makes its ledger if there is none."""
    return isinstance(request, AddRequest | WriteLacRequest) or (isinstance(request, ReadRequest | BatchReadRequest) and request.fence)


def is_journaled(request: Request) -> bool:
    """Whether a request waits for the journal and occupies room there."""
    return isinstance(request, ForceRequest) or changes_ledger(request)


def writes(request: Request) -> bool:
    """Whether a request needs the right to write: it changes a ledger, or has the journal synced."""
    return is_journaled(request)


def reads(request: Request) -> bool:
    """Whether a request needs the right to read, if none to write. A token and START_TLS need none; they are answered as ever."""
    return not isinstance(request, AuthRequest | StartTlsRequest)
