"""Adds of one connection: admitted, verified and stored in runs, journaled in few items, answered after the sync.

Deferred adds are answered after the write and before the sync. They are otherwise the same: they are in the same journal, in order of
arrival, so a force, which is a barrier in that journal, covers them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from triplicate.bookie.core.checksum import Buffer
from triplicate.bookie.core.chunk_entries import entries_of, is_most_of
from triplicate.bookie.core.journal_format import GroupType
from triplicate.bookie.core.ledger_table import LedgerHandle, Verification, lac_of_entry
from triplicate.bookie.journal.journal import Journal
from triplicate.bookie.journal.journal_item import JournalItem, ResponseSink
from triplicate.bookie.server.dialects import Adds, Dialect
from triplicate.bookie.server.request_context import RequestContext
from triplicate.bookie.server.request_processor import RequestProcessor
from triplicate.runtime import Trace
from triplicate.wire import AddRequest, AddResponse, Status, encode_alternating_add_responses, encode_request, iter_adds

DAMAGING_CLIENTS = "BookKeeper's Java clients 4.16.0 to 4.16.5 and 4.17.0 under load, with version 3 and pooled buffers"
ALIKE_MAX = 8
"""Number of consecutive adds of one ledger from which the path for runs is used, since it costs less per add."""

_Run = tuple[Callable[[Status], bytes], int]
"""How adds are answered, and their number."""


class AddPeer(ResponseSink, Protocol):
    """The connection that the adds came from."""

    peer: str
    """Its address, for messages."""

    def close(self) -> None: ...


class _Region:
    """Accepted adds of one chunk that go to the journal as one item: slices of the chunk, with adjacent ones joined."""

    __slots__ = ("answers", "buffers", "count", "early", "end", "journal", "runs", "size_bytes", "source", "start")

    def __init__(self, journal: Journal, early: bool, source: bytes, start: int) -> None:
        self.journal = journal
        self.early = early
        self.source = source
        self.start = start
        self.end = start
        self.count = 0
        self.size_bytes = 0
        self.buffers: list[Buffer] = []
        self.answers: list[bytes] = []
        self.runs: list[_Run] = []

    def cut(self, source: bytes, start: int) -> None:
        """The next add is not adjacent to the last one."""
        size = self.end - self.start
        if size == len(self.source):
            self.buffers.append(self.source)
        elif is_most_of(size, self.source):
            self.buffers.append(memoryview(self.source)[self.start : self.end])
        elif size:
            self.buffers.append(self.source[self.start : self.end])
        self.size_bytes += size
        self.source, self.start, self.end = source, start, start


class AddProcessor:
    """See the module's text."""

    def __init__(self, requests: RequestProcessor, peer: AddPeer, trace: Trace) -> None:
        self._requests = requests
        self._storage = requests.storage
        self._metrics = requests.metrics
        self._peer = peer
        self._trace = trace
        self._region: _Region | None = None

    def admit(self, adds: Adds, dialect: Dialect, handle: LedgerHandle) -> None:
        """Accept or refuse the adds of one run. Accepted ones are journaled by the next `submit`."""
        run = adds.run
        status = self._requests.admit(handle, run.master_key, recovery=run.recovery, high_priority=run.high_priority)
        if status is not Status.OK:
            self.refuse(adds, dialect, status)
            return
        entries, held_bytes = entries_of(adds.source, run.offsets)
        if handle.verifier is not None:
            if not handle.verifier.verify_all(entries):
                # Some entries will not be kept, so none may hold the chunk in memory.
                self._admit_verified(adds, dialect, handle, list(map(bytes, entries)))
                return
        elif self._requests.checks.enabled:
            self._metrics.unverified.inc(len(entries))
        self._storage.store(handle, run.entry_ids, entries, run.last_add_confirmed, held_bytes)
        self._add_to_open_region(adds, dialect, 0, len(entries))

    def _add_to_open_region(self, adds: Adds, dialect: Dialect, first: int, last: int) -> None:
        """Append the bytes of entries `first` to `last` - 1 of a run to the region."""
        run, source = adds.run, adds.source
        start, end = run.offsets[first], run.offsets[last]
        region = self._region_at(self._storage.journal_of(run.ledger_id), adds.deferred_sync, source, start)
        ids, txn_ids = run.entry_ids, adds.txn_ids
        if last - first != len(ids):
            ids, txn_ids = ids[first:last], txn_ids[first:last]
        region.end = end
        region.count += len(ids)
        region.answers.append(dialect.encode_adds(run.ledger_id, ids, txn_ids))
        region.runs.append((partial(dialect.encode_adds, run.ledger_id, ids, txn_ids), len(ids)))

    def _region_at(self, journal: Journal, early: bool, source: bytes, start: int) -> _Region:
        """The region for adds that begin at this offset: a new one unless the open region has the same kind."""
        region = self._region
        if region is None or region.journal is not journal or region.early is not early:
            self.submit()
            region = self._region = _Region(journal, early, source, start)
        elif region.source is not source or region.end != start:
            region.cut(source, start)
        return region

    def admit_alternating(self, buffer: bytes, position: int, end: int, most: int) -> int:
        """Accept the adds of version 2 that begin at `position`, of any ledgers, up to the first unusual one.

        For chunks in which ledgers alternate, where the cost of a run would arise for every entry. The path for runs handles the first add
        whose ledger is not in memory or does not accept it, whose header or digest is wrong, or whose digest was not requested yet, and
        everything behind it.

        Returns:
            the end of the accepted adds; `position` if there were none.
        """
        storage, requests = self._storage, self._requests
        if requests.read_only or storage.full:
            return position
        checks = requests.checks.enabled
        handle_of, store = storage.ledgers.get, storage.store_one
        ledger_ids: list[int] = []
        entry_ids: list[int] = []
        ends = [position]
        unverified = alike = 0
        before = -1
        for key, ledger_id, entry_id, last_add_confirmed, start, stop in iter_adds(buffer, position, end, most):
            alike = alike + 1 if ledger_id == before else 0
            before = ledger_id
            handle = handle_of(ledger_id)
            if handle is None or handle.master_key != key or handle.fenced or handle.limbo or alike == ALIKE_MAX:
                break
            entry = buffer[start:stop]
            verifier = handle.verifier
            if verifier is not None:
                if not verifier.is_right(entry):
                    break
            elif checks:
                if handle.verification is Verification.UNKNOWN:
                    break
                unverified += 1
            if last_add_confirmed >= entry_id:
                break
            store(handle, entry_id, entry, last_add_confirmed)
            ledger_ids.append(ledger_id)
            entry_ids.append(entry_id)
            ends.append(stop)
        self._metrics.unverified.inc(unverified)
        if ledger_ids:
            self._submit_to_journals(buffer, ledger_ids, entry_ids, ends)
        return ends[-1]

    def _submit_to_journals(self, buffer: bytes, ledger_ids: list[int], entry_ids: list[int], ends: list[int]) -> None:
        """Append these adjacent adds to regions, one for each journal."""
        journals = self._storage.journals
        if len(journals) == 1:
            self._add_to_region(journals[0], buffer, ledger_ids, entry_ids, [(ends[0], ends[-1])])
            return
        of_journal: dict[int, list[int]] = {}
        for index, ledger_id in enumerate(ledger_ids):
            of_journal.setdefault(ledger_id % len(journals), []).append(index)
        for number, indexes in of_journal.items():
            self._add_to_region(
                journals[number],
                buffer,
                [ledger_ids[index] for index in indexes],
                [entry_ids[index] for index in indexes],
                [(ends[index], ends[index + 1]) for index in indexes],
            )

    def _add_to_region(
        self, journal: Journal, buffer: bytes, ledger_ids: list[int], entry_ids: list[int], places: list[tuple[int, int]]
    ) -> None:
        region = self._region_at(journal, False, buffer, places[0][0])
        for start, end in places:
            if region.end != start:
                region.cut(buffer, start)
            region.end = end
        region.count += len(entry_ids)
        region.answers.append(encode_alternating_add_responses(ledger_ids, entry_ids))
        region.runs.append((partial(encode_alternating_add_responses, ledger_ids, entry_ids), len(entry_ids)))

    def _admit_verified(self, adds: Adds, dialect: Dialect, handle: LedgerHandle, entries: list[bytes]) -> None:
        """At least one digest is wrong: accept the other adds one by one."""
        verifier, run = handle.verifier, adds.run
        assert verifier is not None
        for index, entry in enumerate(entries):
            last_add_confirmed = lac_of_entry(entry)
            if not verifier.verify(entry):
                last_add_confirmed = -1
                self._mismatch(run.ledger_id, run.entry_ids[index], entry)
                if self._requests.checks.refuses:
                    self._refuse(dialect, run.ledger_id, run.entry_ids[index : index + 1], adds.txn_ids[index : index + 1], Status.IO_ERROR)
                    continue
            self._storage.store(handle, run.entry_ids[index : index + 1], [entry], last_add_confirmed, len(entry))
            self._add_to_open_region(adds, dialect, index, index + 1)

    def _mismatch(self, ledger_id: int, entry_id: int, entry: bytes) -> None:
        self._metrics.digest_mismatches.inc()
        facts = {"ledger_id": ledger_id, "entry_id": entry_id, "peer": self._peer.peer, "size_bytes": len(entry)}
        self._trace("bookie.digest_mismatch", **facts, known_cause=DAMAGING_CLIENTS)

    def refuse(self, adds: Adds, dialect: Dialect, status: Status) -> None:
        """Answer the adds of a run without storing any."""
        self._refuse(dialect, adds.run.ledger_id, adds.run.entry_ids, adds.txn_ids, status)

    def _refuse(self, dialect: Dialect, ledger_id: int, entry_ids: Sequence[int], txn_ids: Sequence[int], status: Status) -> None:
        self._count_refused(len(entry_ids), status)
        self._peer.answer(dialect.encode_adds(ledger_id, entry_ids, txn_ids, status))

    def _count_refused(self, count: int, status: Status) -> None:
        self._metrics.add_requests.inc(count)
        self._metrics.adds.labels(status.name).inc(count)
        if status is Status.TOO_MANY_REQUESTS:
            self._metrics.adds_refused.inc(count)

    def submit(self) -> None:
        """Submit the accepted adds to the journal, before the connection's next request, so that their order is kept."""
        region, self._region = self._region, None
        if region is None:
            return
        region.cut(b"", 0)
        answers = region.answers[0] if len(region.answers) == 1 else b"".join(region.answers)
        self._metrics.add_requests.inc(region.count)
        item = JournalItem(
            GroupType.ENTRIES,
            region.buffers,
            region.size_bytes,
            region.count,
            self._peer,
            answers,
            region.early,
            refused=partial(self._not_journaled, region.runs),
        )
        try:
            region.journal.submit(item)
        except OSError:
            # The journal has failed and the bookie is stopping: no answer, so the outcome is unknown.
            self._peer.close()

    def _not_journaled(self, runs: list[_Run]) -> None:
        """The journal had no space. The entries are in the cache and may still become durable: the outcome is unknown, so the answer is
        an error.
        """
        for encode, count in runs:
            self._metrics.adds.labels(Status.IO_ERROR.name).inc(count)
            self._peer.answer(encode(Status.IO_ERROR))

    def admit_one(self, context: RequestContext, request: AddRequest) -> None:
        """Handle a single add that the bulk scan did not accept: of an old version, with an unusual encoding, or with an impossible id."""
        handle = context.ledger
        status = self._status_of_one(request, handle)
        if status is not Status.OK:
            self._count_refused(1, status)
            context.refuse(status)
            return
        # The journal stores only the current form of v2, so the packet is encoded again.
        frame = encode_request(
            AddRequest(request.ledger_id, request.entry_id, request.master_key, request.body, request.recovery, request.high_priority)
        )
        last_add_confirmed = int.from_bytes(request.body[16:24], "big", signed=True)
        self._storage.store(handle, [request.entry_id], [request.body], last_add_confirmed, len(request.body))
        answer = context.dialect.encode(AddResponse(Status.OK, request.ledger_id, request.entry_id), context.tag)
        self._metrics.add_requests.inc()
        refused = partial(context.refuse, Status.IO_ERROR)
        item = JournalItem(GroupType.ENTRIES, [frame], len(frame), 1, self._peer, answer, request.deferred_sync, refused=refused)
        try:
            self._storage.journal_of(request.ledger_id).submit(item)
        except OSError:
            self._peer.close()

    def _status_of_one(self, request: AddRequest, handle: LedgerHandle) -> Status:
        if request.entry_id < 0:
            return Status.BAD_REQUEST
        status = self._requests.admit(handle, request.master_key, recovery=request.recovery, high_priority=request.high_priority)
        if status is Status.OK and handle.verifier is not None and not handle.verifier.verify(request.body):
            self._mismatch(request.ledger_id, request.entry_id, request.body)
            return Status.IO_ERROR if self._requests.checks.refuses else Status.OK
        return status
