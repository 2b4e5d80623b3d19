"""Publishing: sealed ledgers become segments of a log in one compare-and-set, together with the publisher's name and batch number.

The same transaction changes the metadata of each ledger at the version that was read (see `staging_marks`). It therefore fails if a ledger
was deleted or published meanwhile. Whether a ledger is listed already is read from its own metadata and not from the whole list.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.errors import ArgumentError, LedgerVanished, LogOwned, NoNode, NoSuchLedger, NoSuchLog, OutcomeUnknown, Unauthorized
from triplicate.ledger import encode_metadata
from triplicate.log.core import head_changes
from triplicate.log.core.head import Head, LogSegment, Owner, PublisherState, PurposeKind, SegmentState, check_text, encode_publisher
from triplicate.log.core.publish_request import PublishRequest
from triplicate.log.core.quorums import reduced_quorums_of
from triplicate.log.publishing.publishers import check_not_forgotten, read_publisher
from triplicate.log.publishing.request_queue import RequestClient
from triplicate.log.publishing.staging import StagedLedger
from triplicate.log.store.head_store import HeadDecision, HeadStore, StoredHead
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.log_encryption import check_staging_mark
from triplicate.log.store.ownership import claim, live_owner, release
from triplicate.log.store.segments import count_segment, password_of
from triplicate.log.store.staging_marks import COMPONENT, PublishMark, mark_of, marked, promises_mark
from triplicate.log.writing.segment_transitions import take_over
from triplicate.metadata import CheckVersion, CreateNode, SetData, TreeOperation, Versioned, own_paths
from triplicate.runtime import fault_point, map_bounded, sleep

LEDGERS_MAXIMUM = 10_000
"""Ledgers of one publish. Their checks, the head and its new pages fit into one transaction of ZooKeeper, which is limited to 1 MiB."""
MARKS_BYTES_MAXIMUM = 768 * 1024
"""The share of the marks in one transaction; ledgers whose marks exceed it are announced first."""
MARK_OVERHEAD_BYTES = 200
"""The size of a mark in addition to the ledger's metadata, path included."""
ANNOUNCED_AT_ONCE = 250
READ_AT_ONCE = 16
"""Ledgers whose metadata are read concurrently."""


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of a publish.

    Args:
        first_offset, end_offset: the records of the batch. For a batch older than the last, both are the end of the last batch.
        already: True if the batch had been published before, and this call added nothing.
        batch: the application's last batch, -1 without application.
        by_writer: the log's living writer listed the batch at the request of this call.
    """

    first_offset: int
    end_offset: int
    already: bool
    batch: int
    by_writer: bool = False


def is_old_batch(state: PublisherState | None, batch: int) -> bool:
    """Whether a batch was published before: an application publishes its batches in ascending order."""
    return state is not None and batch <= state.batch


async def publish(
    client: LedgerClient,
    store: HeadStore,
    settings: LogClientSettings,
    name: str,
    ledgers: Sequence[int | StagedLedger],
    *,
    log_id: str,
    application: str | None,
    batch: int | None,
    publisher: str,
    wait_s: float,
) -> PublishResult:
    """See `Logs.publish`."""
    publication = Publication(client, store, settings, name, ledgers, application, batch)
    check_text("the publisher's name", publisher)
    last = await read_publisher(store, name, application)
    if last is not None and is_old_batch(last.state, publication.batch):
        return _already(last.state)
    await publication.read()
    request = PublishRequest(store.token(), publisher, application, batch, tuple(publication.segments), log_id)
    requests = RequestClient(store, name, wait_s)
    answer: list[PublishResult] = []
    attempts = 0

    async def decide(stored: StoredHead) -> HeadDecision | None:
        nonlocal attempts
        answer.clear()
        attempts += 1
        found = await publication.find(stored, attempted=attempts > 1, requested=requests.was_sent)
        if found is not None:
            answer.append(found)
            return None
        if stored.head.open is not None and publication.segments:
            await _free_head(client, store, settings, name, stored.head, request, requests)
            raise NoNode("the head has changed since it was read")
        change = head_changes.publish(stored.head, publication.segments, store.token(), store.limits)
        first = stored.head.closed_end
        answer.append(PublishResult(first, first + publication.records, False, publication.batch))
        return change, await publication.operations(stored, first)

    try:
        await store.change(name, decide, log_id=log_id)
    except LedgerVanished as error:
        raise NoSuchLedger(f"nothing was published: a ledger of the batch was deleted before; write the batch again ({error})") from error
    except NoSuchLedger as error:
        if application is not None:
            raise  # The publisher's node has just shown that the batch is not in the log.
        # A ledger is read again only after an attempt. The log may have listed it then, and a merge may have replaced it since.
        raise OutcomeUnknown(
            f"it is unknown whether log {name!r} has the batch: after an attempt to publish it, which may have succeeded, {error}. Search "
            "for its records before you write them again; a batch with an application's name and a number can be repeated safely"
        ) from error
    return answer[0]


def _already(state: PublisherState) -> PublishResult:
    return PublishResult(state.first_offset, state.end_offset, True, state.batch)


async def _free_head(
    client: LedgerClient,
    store: HeadStore,
    settings: LogClientSettings,
    name: str,
    head: Head,
    request: PublishRequest,
    requests: RequestClient,
) -> None:
    """Request the log's living writer to list the batch, or close the open segment of a dead one.

    Raises:
        LogOwned: the writer is alive and did not answer in time, or it serves no publishers since the log is reserved.
    """
    writer = await live_owner(store, name)
    if writer is not None and serves_publishers(head):
        await requests.submit(request, writer.name)
        return
    try:
        await _close_abandoned_segment(client, store, settings, name, head.log_id, request.publisher)
    except LogOwned:
        # Another writer has taken the log over meanwhile: the next attempt sends it the request.
        if not serves_publishers(head):
            raise


def serves_publishers(head: Head) -> bool:
    """Whether the writer of a log serves publish requests: only in logs that belong to users."""
    return head.purpose.kind is PurposeKind.USER


async def _close_abandoned_segment(
    client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str, log_id: str, publisher: str
) -> None:
    """Fence, count and close the open segment of a writer that has ended.

    Raises:
        LogOwned: the writer is alive; the message names it.
    """
    owner = Owner(publisher, store.token())
    await claim(store, name, log_id, owner, take_over=False)
    try:
        await take_over(client, store, settings, name, log_id, owner, open_next=False)
    finally:
        await release(store, name, owner)


@fault_point("log.describe_ledger")
async def describe(
    client: LedgerClient, store: HeadStore, settings: LogClientSettings, log: LogSettings, name: str, ledger: int | StagedLedger
) -> tuple[LogSegment, Versioned]:
    """The segment that a sealed ledger would become, without its first offset, and the ledger's metadata.

    Raises:
        ArgumentError: it is not closed, is no staging ledger for this log, or differs from its `StagedLedger`. NoSuchLedger.
    """
    ledger_id = ledger if isinstance(ledger, int) else ledger.ledger_id
    found = await store.ledgers.get(ledger_id)
    metadata = found.value
    component, made_for = metadata.custom.get("component", b"").decode(), metadata.custom.get("log", b"").decode()
    if component != COMPONENT or made_for != name:
        raise ArgumentError(f"ledger {ledger_id} is {component or 'no part'} of {made_for or 'nothing'}, not staging for log {name!r}")
    if not metadata.is_closed:
        raise ArgumentError(f"ledger {ledger_id} is not sealed and cannot be published")
    reduced = reduced_quorums_of(log, metadata)
    if isinstance(ledger, StagedLedger):
        if metadata.last_entry_id != ledger.last_entry:
            raise ArgumentError(f"ledger {ledger_id} ends at entry {metadata.last_entry_id}, not at {ledger.last_entry} as its writer said")
        times = (ledger.min_time_us, ledger.max_time_us)
        segment = LogSegment(
            ledger_id, 0, ledger.records, ledger.size_bytes, ledger.last_entry, *times, SegmentState.CLOSED, reduced=reduced
        )
        return segment, found
    view = await client.open(ledger_id, password=password_of(settings))
    try:
        return await count_segment(view, LogSegment(ledger_id, 0, reduced=reduced)), found
    finally:
        await view.aclose()


async def check_password(store: HeadStore, name: str, head: Head, passwords: Collection[bytes]) -> None:
    """Check that ledgers with these passwords can be read together with those of a log.

    Raises:
        Unauthorized: the log's newest ledger has another password. A reader opens all ledgers of a log with one password.
    """
    listed = [head.open] if head.open is not None else [item for item in head.recent if item.state is SegmentState.CLOSED]
    if not listed or not passwords:
        return
    try:
        newest = (await store.ledgers.get(listed[-1].ledger_id)).value
    except NoSuchLedger:
        return  # Retention has deleted it, or it is lost.
    if newest.credentials_stored and any(password != newest.password for password in passwords):
        raise Unauthorized(
            f"log {name!r}: the ledgers to be published have another password than ledger {listed[-1].ledger_id} of the log, so no reader "
            "could read both. Write them with the cluster's log_client.ledger_password (in Spark the option 'ledgerPassword')"
        )


class Candidates:
    """The ledgers of one publish: the segment that each would become, and whether the log lists it already."""

    def __init__(
        self, client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str, ledgers: Sequence[int | StagedLedger]
    ) -> None:
        ids = [item if isinstance(item, int) else item.ledger_id for item in ledgers]
        if len(set(ids)) != len(ids):
            raise ArgumentError("a ledger is given twice")
        if len(ids) > LEDGERS_MAXIMUM:
            raise ArgumentError(f"{len(ids)} ledgers are more than one publish takes ({LEDGERS_MAXIMUM}): write the batch with fewer tasks")
        self.segments: list[LogSegment] = []
        """The ledgers with records, in order, without first offsets."""
        self._client = client
        self._store = store
        self._settings = settings
        self._name = name
        self._ledgers = ledgers
        self._found: dict[int, Versioned] = {}
        self._tried: int | None = None
        """The version of the head at the last attempt."""

    async def read(self) -> None:
        """Describe every ledger. Raises as `describe`. Unauthorized: see `check_password`. ArgumentError: see `check_staging_mark`."""
        head = (await self._store.read(self._name)).head

        async def describe_one(item: int | StagedLedger) -> tuple[LogSegment, Versioned]:
            return await describe(self._client, self._store, self._settings, head.settings, self._name, item)

        described = await map_bounded(describe_one, self._ledgers, most=READ_AT_ONCE, name="describe")
        await check_password(self._store, self._name, head, {found.value.password for _, found in described})
        for segment, found in described:
            check_staging_mark(self._name, head, segment.ledger_id, found.value)
        self.segments = [segment for segment, _ in described if segment.records]
        self._found = {segment.ledger_id: found for segment, found in described}

    async def refresh(self, stored: StoredHead) -> None:
        """Read again what a failed attempt may have changed.

        An attempt that was applied after all has marked every ledger. One that failed with an unchanged head failed because of a ledger.
        """
        tried, self._tried = self._tried, stored.version
        if tried is None or not self.segments:
            return
        again = self.segments if tried == stored.version or self._is_large(stored) else self.segments[:1]
        await self._read_again(again)
        if len(again) == 1 and self._mark(again[0]) is not None:
            await self._read_again(self.segments[1:])

    async def _read_again(self, segments: Sequence[LogSegment]) -> None:
        ids = [segment.ledger_id for segment in segments]
        self._found.update(zip(ids, await map_bounded(self._store.ledgers.get, ids, most=READ_AT_ONCE, name="refresh"), strict=True))

    async def already_listed(self, stored: StoredHead) -> list[LogSegment]:
        """The ledgers that the log lists already, with their first offsets. Raises NoNode if the head is out of date."""
        return await listed_among(self._store, self._name, stored, self.segments, self._found)

    async def begins_at(self, stored: StoredHead) -> int | None:
        """Offset at which the log lists the first of the ledgers, or None. Raises NoNode if the head is out of date."""
        try:
            await self._read_again(self.segments[:1])
        except NoSuchLedger:
            return None
        known = await listed_among(self._store, self._name, stored, self.segments[:1], self._found)
        return known[0].first_offset if known else None

    async def announce(self, stored: StoredHead) -> None:
        """Announce the ledgers ahead of the change, if they are too many to be marked in one transaction."""
        if self._is_large(stored):
            await self._announce(stored)
        self._tried = None

    async def marks(self, stored: StoredHead, first: int) -> list[TreeOperation]:
        """The operations of the change on the ledgers: each is marked with its offset, or its announcement is checked.

        Args:
            first: offset of the first ledger.
        """
        if self._is_large(stored):
            await self._announce(stored)
            return [CheckVersion(self._path(segment), self._found[segment.ledger_id].version) for segment in self.segments]
        return self._exact_marks(stored, first)

    def _exact_marks(self, stored: StoredHead, first: int) -> list[TreeOperation]:
        operations: list[TreeOperation] = []
        offset = first
        for segment in self.segments:
            found = self._found[segment.ledger_id]
            data = encode_metadata(marked(found.value, PublishMark(stored.head.log_id, offset, exact=True)))
            operations.append(SetData(self._path(segment), data, found.version))
            offset += segment.records
        return operations

    async def _announce(self, stored: StoredHead) -> None:
        """Mark the ledgers as perhaps listed from here on, in several transactions. One that is announced already keeps its offset."""
        missing = [segment for segment in self.segments if self._mark(segment) is None or self._mark_log(segment) != stored.head.log_id]
        mark = PublishMark(stored.head.log_id, stored.head.closed_end, exact=False)
        for start in range(0, len(missing), ANNOUNCED_AT_ONCE):
            some = missing[start : start + ANNOUNCED_AT_ONCE]
            changed = {segment.ledger_id: marked(self._found[segment.ledger_id].value, mark) for segment in some}
            operations = [
                SetData(self._path(segment), encode_metadata(changed[segment.ledger_id]), self._found[segment.ledger_id].version)
                for segment in some
            ]
            await self._store.persist(lambda operations=operations: self._store.tree.multi(operations))  # type: ignore[misc]
            for segment in some:
                before = self._found[segment.ledger_id]
                self._found[segment.ledger_id] = replace(before, value=changed[segment.ledger_id], version=before.version + 1)

    def _is_large(self, stored: StoredHead) -> bool:
        """Whether the marks are too much for one transaction."""
        return cost_of(self._exact_marks(stored, stored.head.closed_end)) > MARKS_BYTES_MAXIMUM

    def _mark(self, segment: LogSegment) -> PublishMark | None:
        return mark_of(self._found[segment.ledger_id].value, segment.ledger_id)

    def _mark_log(self, segment: LogSegment) -> str | None:
        mark = self._mark(segment)
        return None if mark is None else mark.log_id

    def _path(self, segment: LogSegment) -> str:
        return self._store.ledgers.node_path(segment.ledger_id)


def cost_of(operations: Sequence[TreeOperation]) -> int:
    """The approximate size of operations in a transaction, bytes."""
    return sum(MARK_OVERHEAD_BYTES + (len(operation.data) if isinstance(operation, SetData) else 0) for operation in operations)


class Publication:
    """One batch to be listed: it finds what the log already has, and makes the operations of the change that lists the batch.

    Raises:
        ArgumentError: a ledger is given twice, there are too many, or only one of application and batch is given.
    """

    def __init__(
        self,
        client: LedgerClient,
        store: HeadStore,
        settings: LogClientSettings,
        name: str,
        ledgers: Sequence[int | StagedLedger],
        application: str | None,
        batch: int | None,
    ) -> None:
        if (application is None) != (batch is None):
            raise ArgumentError("an application publishes batches: give both names, or neither")
        if application is not None:
            check_text("the application's name", application)
        self.application = application
        self.batch = batch if batch is not None else -1
        self._client = client
        self._store = store
        self._name = name
        self._candidates = Candidates(client, store, settings, name, ledgers)
        self._publisher_version: int | None = None

    @property
    def segments(self) -> list[LogSegment]:
        """The ledgers with records, in order. Empty before `read`."""
        return self._candidates.segments

    @property
    def records(self) -> int:
        """The number of records in them."""
        return sum(segment.records for segment in self.segments)

    async def read(self) -> None:
        """Read the ledgers' metadata. Raises as `describe`."""
        await self._candidates.read()

    async def find(self, stored: StoredHead, *, attempted: bool = False, requested: bool = False) -> PublishResult | None:
        """The result if the log has the batch already; None if it is to be listed.

        Args:
            attempted: an earlier attempt of this publish had an unknown outcome and may have listed the batch.
            requested: the log's writer was requested to list it and may have done so.

        Raises:
            ArgumentError: some of the ledgers are listed, but not as this batch. PublisherForgotten. NoSuchLedger. NoNode: the head is
            out of date.
        """
        last = await read_publisher(self._store, self._name, self.application)
        self._publisher_version = last.version if last is not None else None
        if last is not None and is_old_batch(last.state, self.batch):
            state = last.state
            # Another driver of the same application may have published the same batch from ledgers of its own.
            is_ours = attempted and state.batch == self.batch and await self._candidates.begins_at(stored) == state.first_offset
            return replace(_already(state), already=not is_ours, by_writer=is_ours and requested)
        if last is None and self.application is not None:
            await check_not_forgotten(self._store, self._name, self.application, self.batch)
        await self._candidates.refresh(stored)
        known = await self._candidates.already_listed(stored)
        if known and self.application is None and len(known) == len(self.segments):
            return PublishResult(known[0].first_offset, known[-1].end_offset, not attempted, -1, requested)
        if known:
            raise ArgumentError(f"ledger {known[0].ledger_id} is a segment of log {self._name!r} already, from another batch")
        return None

    async def prepare(self, stored: StoredHead) -> None:
        """Do the part that can precede the change."""
        await self._candidates.announce(stored)

    async def operations(self, stored: StoredHead, first: int) -> list[TreeOperation]:
        """The operations of the change in addition to the head. `find` was called with this head before.

        Args:
            first: offset of the batch's first record.
        """
        operations = await self._candidates.marks(stored, first)
        if self.application is not None:
            version, time_ms = self._publisher_version, self._client.host.clock.wall_us() // 1000
            data = encode_publisher(PublisherState(self.batch, first, first + self.records, time_ms))
            path = own_paths.publisher_path(self._store.own_root, self._name, self.application)
            operations.append(CreateNode(path, data) if version is None else SetData(path, data, version))
        return operations


async def listed_among(
    store: HeadStore, name: str, stored: StoredHead, segments: Sequence[LogSegment], metadata: Mapping[int, Versioned]
) -> list[LogSegment]:
    """Those of the given ledgers that a log lists, with their first offsets, in the order given.

    A ledger's own mark suffices for most. The list is searched only for announced ledgers and for those of earlier releases, from the
    first offset at which they can be listed.

    Raises:
        NoNode: the head is out of date.
    """
    offsets: dict[int, int] = {}
    searched: dict[int, int] = {}
    for segment in segments:
        found = metadata[segment.ledger_id].value
        mark = mark_of(found, segment.ledger_id)
        if mark is not None and mark.log_id == stored.head.log_id:
            (offsets if mark.exact else searched)[segment.ledger_id] = mark.offset
        elif mark is None and not promises_mark(found):
            searched[segment.ledger_id] = 0
    if searched:
        lowest = min(searched.values())
        pages = await store.pages(name, stored.head, lambda reference: reference.end_offset > lowest)
        listed = [segment for page in pages.values() for segment in page.segments] + list(stored.head.recent)
        offsets.update((segment.ledger_id, segment.first_offset) for segment in listed if segment.ledger_id in searched)
    return [replace(segment, first_offset=offsets[segment.ledger_id]) for segment in segments if segment.ledger_id in offsets]


async def is_published(store: HeadStore, name: str, ledger_ids: Sequence[int]) -> bool:
    """Whether all given ledgers are segments of a log. False if the log does not exist."""
    await store.sync()
    backoff = store.backoff()
    while True:
        try:
            stored = await store.read(name)
            metadata = {ledger_id: await store.ledgers.get(ledger_id) for ledger_id in ledger_ids}
            segments = [LogSegment(ledger_id, 0) for ledger_id in ledger_ids]
            return len(await listed_among(store, name, stored, segments, metadata)) == len(ledger_ids)
        except (NoSuchLog, NoSuchLedger):
            return False
        except NoNode:
            if backoff.attempts >= store.settings.change_attempts:
                raise
            await sleep(store.host.clock, backoff.next_s())
