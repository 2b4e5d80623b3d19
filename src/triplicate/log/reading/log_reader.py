"""Reading a log from an offset on: all its segments, and then new records as they are appended."""

from __future__ import annotations

from types import TracebackType

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ArgumentError, NoNode, NoSuchLedger, NoSuchLog, OffsetGap, OffsetTruncated
from triplicate.ledger import Entry
from triplicate.log.core.head import Head, LogSegment, SegmentState
from triplicate.log.core.locate import check_not_lost, reference_at, segment_at
from triplicate.log.core.positions import check_offset
from triplicate.log.reading.current_segment import CurrentSegment, open_segment
from triplicate.log.reading.log_entries import BusyGuard, LogEntry, check_continuity
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.log_encryption import LogEncryption
from triplicate.log.store.log_metrics import LogMetrics
from triplicate.log.store.segments import password_of, read_header
from triplicate.runtime import deadline_after, timeout_at

STALE_ATTEMPTS = 20
"""How often a head that is out of date is read again before that is an error."""


class LogReader:
    """Made by `Logs.reader`. Iterate over it with ``async for``, or call `next_entry`. It does not end: at the log's end it waits.

    Every record is delivered once and in order. Otherwise an error is raised: `OffsetTruncated`, `OffsetGap`, or an error of reading a
    ledger. The reader keeps its position after an error.
    """

    def __init__(
        self,
        name: str,
        client: LedgerClient,
        store: HeadStore,
        settings: LogClientSettings,
        metrics: LogMetrics,
        head: Head,
        offset: int,
        include_control: bool,
        encryption: LogEncryption,
    ) -> None:
        self.name = name
        self._client = client
        self._store = store
        self._settings = settings
        self._metrics = metrics
        self.log_id = head.log_id
        self._position = offset
        self._include_control = include_control
        self._decoder = encryption.decoder(name, head.log_id, is_encrypted=bool(head.key_id))
        self._watch = store.watch(name)
        self._guard = BusyGuard(f"log {name!r}")
        self._current: CurrentSegment | None = None
        """None between two segments."""
        self._finished_ledger: int | None = None
        self._missing_ledger: int | None = None
        self._synced = False
        """Whether the segment was found in a head that is known to be current: only such a head may contradict the position."""
        self._is_contradicted = False
        """Whether an entry contradicted the position in a head that may be stale."""

    @property
    def position(self) -> int:
        """Offset of the next record to be delivered."""
        return self._position

    def __aiter__(self) -> LogReader:
        return self

    async def __anext__(self) -> LogEntry:
        entry = await self.next_entry()
        assert entry is not None, "without a time limit there is an entry or an error"
        return entry

    async def next_entry(self, timeout_s: float | None = None) -> LogEntry | None:
        """Return the next entry, or None if there is none within the time. Cancelling loses nothing.

        Args:
            timeout_s: None: no limit; 0: only an entry that was fetched already, for example together with the one before.

        Raises:
            OffsetTruncated: the position was truncated. OffsetGap: records are missing. NoSuchLog: the log was deleted.
        """
        with self._guard:
            if timeout_s is None:
                return await self._next()
            if timeout_s <= 0:
                return self._next_fetched()
            try:
                async with timeout_at(deadline_after(self._client.host.clock, timeout_s)):
                    return await self._next()
            except TimeoutError:
                return None

    async def end_offset(self) -> int:
        """Offset after the last record that may be read now."""
        return await readable_end(self._client, self._store, self._settings, self.name)

    async def _next(self) -> LogEntry | None:
        while True:
            if self._is_contradicted:
                await self._search_again()
            try:
                made = await self._step()
            except (OffsetGap, OffsetTruncated):
                if self._synced:
                    raise
                # The head may come from a metadata server that is behind.
                self._is_contradicted = True
                continue
            if made is not None:
                return made

    async def _step(self) -> LogEntry | None:
        """Read one entry, or leave a segment that has none."""
        while (current := self._current) is None:
            await self._enter()
        try:
            entry = await current.source.next()
        except NoSuchLedger:
            await self._lost(current.segment)
            return None
        if entry is None:
            await self._finish(current.segment)
            return None
        return self._accept(current, entry)

    async def _search_again(self) -> None:
        """Leave the segment, so that the position is searched in a current head."""
        await self._leave()
        self._synced = True
        self._is_contradicted = False

    def _next_fetched(self) -> LogEntry | None:
        while True:
            current = self._current
            entry = current.source.next_nowait() if current is not None else None
            if current is None or entry is None:
                return None
            try:
                made = self._accept(current, entry)
            except OffsetGap:
                if self._synced:
                    raise
                self._is_contradicted = True  # The next call searches again; the position is unchanged.
                return None
            if made is not None:
                return made

    def _accept(self, current: CurrentSegment, entry: Entry) -> LogEntry | None:
        """Check an entry's offset and return what is delivered of it; None if nothing is."""
        segment = current.segment
        view = self._decoder.decode(entry, segment.first_offset, is_copied=current.is_copied)
        first_offset = segment.first_offset + view.header.first_index
        end_offset = first_offset + view.count
        slot = 0
        if current.seeking and end_offset <= self._position and (view.control is None or end_offset < self._position):
            return None
        if current.seeking and first_offset < self._position:
            slot = self._position - first_offset
        else:
            check_continuity(f"log {self.name!r}", self._position, first_offset, entry.ledger_id, entry.entry_id)
        if view.control is not None:
            if view.control["kind"] == "segment":
                check_continuity(
                    f"log {self.name!r}", segment.first_offset, int(view.control["first_offset"]), entry.ledger_id, entry.entry_id
                )
            if not self._include_control:
                return None
        else:
            current.seeking = False
        made = LogEntry(
            view,
            first_offset=first_offset + slot,
            slot=slot,
            count=view.count - slot,
            ledger_id=entry.ledger_id,
            entry_id=entry.entry_id,
            epoch=current.epoch,
        )
        self._position = end_offset
        self._synced = False
        self._metrics.read.inc(made.count)
        return made

    async def _finish(self, segment: LogSegment) -> None:
        """Finish a segment without further entries: check that it delivered what the list says, and leave it."""
        if segment.state is not SegmentState.OPEN and self._position < segment.end_offset:
            raise OffsetGap(
                f"log {self.name!r}: ledger {segment.ledger_id} ended at offset {self._position}, the list says {segment.end_offset}"
            )
        self._finished_ledger = segment.ledger_id
        await self._leave()

    async def _lost(self, segment: LogSegment) -> None:
        """Handle a ledger that does not exist: it was truncated since the list was read, or is lost."""
        if self._missing_ledger == segment.ledger_id:
            raise NoSuchLedger(f"log {self.name!r}: ledger {segment.ledger_id} from offset {segment.first_offset} on is gone")
        self._missing_ledger = segment.ledger_id
        await self._search_again()

    async def _enter(self) -> None:
        """Find the segment of the position, if necessary wait for it, and begin to read it."""
        segment = await self._await_segment()
        fresh = self._finished_ledger in (None, segment.ledger_id)
        # A closed segment may have replaced several, including the finished one, and then begins before the position.
        if not fresh and segment.state is SegmentState.OPEN:
            check_continuity(f"log {self.name!r}", self._position, segment.first_offset, segment.ledger_id, 0)
        try:
            self._current = await open_segment(self._client, self._settings, segment, self._position)
        except NoSuchLedger:
            await self._lost(segment)

    async def _await_segment(self) -> LogSegment:
        while True:
            head = (await self._store.read(self.name, synced=self._synced)).head
            if head.log_id != self.log_id and not self._synced:
                self._synced = True
                continue
            check_identity(self.name, head, self.log_id)
            if self._position < head.first_offset:
                raise OffsetTruncated(
                    f"log {self.name!r}: offset {self._position} was truncated; the first that may be read is {head.first_offset}"
                )
            try:
                segment = await find_segment(self._store, self.name, head, self._position)
            except NoNode:
                continue  # The page was replaced since the head was read.
            if segment is not None and not (segment.state is SegmentState.OPEN and segment.ledger_id == self._finished_ledger):
                return segment
            await self._watch.changed()

    async def _leave(self) -> None:
        """Close the segment's ledger. The position is unchanged."""
        current, self._current = self._current, None
        if current is not None:
            await current.aclose()

    async def aclose(self) -> None:
        """Stop reading. Idempotent."""
        self._watch.close()
        await self._leave()

    async def __aenter__(self) -> LogReader:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()


async def find_segment(store: HeadStore, name: str, head: Head, offset: int) -> LogSegment | None:
    """The segment that holds an offset, or the open one that will; None if the offset lies after the last segment.

    Raises:
        NoNode: the head is out of date. OffsetGap: no segment holds the offset, or it is lost.
    """
    segment = await find_listed_segment(store, name, head, offset)
    if segment is not None:
        check_not_lost(segment)
    return segment


async def find_listed_segment(store: HeadStore, name: str, head: Head, offset: int) -> LogSegment | None:
    """As `find_segment`, also where the segment's records are lost."""
    segment = segment_at(head.recent, offset)
    references = head.pages
    reference = reference_at(references, offset)
    while reference is not None:
        page = await store.page(name, head.log_id, reference.page)
        if page.level == 0:
            segment = segment_at(page.segments, offset)
            break
        reference = reference_at(page.references, offset)
    if segment is None:
        segment = head.open
        if segment is None or segment.first_offset > offset:
            if segment is not None or offset < head.closed_end:
                raise OffsetGap(f"log {name!r}: no segment holds offset {offset}")
            return None
    if segment.first_offset > offset:
        raise OffsetGap(f"log {name!r}: ledger {segment.ledger_id} begins at {segment.first_offset}; no segment holds offset {offset}")
    return segment


async def readable_end(client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str) -> int:
    """Offset after the last record that may be read now."""
    for _ in range(STALE_ATTEMPTS):
        stored = await store.read(name)
        segment = stored.head.open
        if segment is None:
            return stored.head.closed_end
        try:
            view = await client.open(segment.ledger_id, password=password_of(settings))
            try:
                last_entry = view.last_add_confirmed
                header = await read_header(view, last_entry) if last_entry >= 0 else None
            finally:
                await view.aclose()
        except NoSuchLedger:
            if (await store.read(name)).version == stored.version:
                raise
            continue
        return max(stored.head.first_offset, segment.first_offset + (header.end_index if header is not None else 0))
    raise NoSuchLedger(f"log {name!r}: its open segment changed at every attempt to read it; try again")


async def head_for(store: HeadStore, name: str, offset: int, log_id: str = "") -> Head:
    """The head of a log in which reading can begin at an offset. If the head lacks the offset, it is read again after a sync.

    Args:
        log_id: of the log that was read before; empty for the one that has the name now.

    Raises:
        NoSuchLog, also where another log has the name. ArgumentError, OffsetTruncated: see `check_start`.
    """
    head = (await store.read(name)).head
    try:
        check_start(name, check_identity(name, head, log_id), offset)
    except (ArgumentError, OffsetTruncated, NoSuchLog):
        head = (await store.read(name, synced=True)).head
        check_start(name, check_identity(name, head, log_id), offset)
    return head


def check_identity(name: str, head: Head, log_id: str) -> Head:
    """Return the head if it is of this log, or if `log_id` is empty. Raises NoSuchLog: of another one that got its name."""
    if log_id not in ("", head.log_id):
        raise NoSuchLog(f"log {name!r} was deleted and created again")
    return head


def check_start(name: str, head: Head, offset: int) -> int:
    """Return the offset if reading can begin there.

    Raises:
        ArgumentError: it lies below 0, or beyond the end of a log without open segment. OffsetTruncated: before the first.
    """
    if check_offset(offset) < 0 or (head.open is None and offset > head.closed_end):
        raise ArgumentError(f"log {name!r} ends at {head.closed_end}; reading cannot begin at {offset}")
    if offset < head.first_offset:
        raise OffsetTruncated(f"log {name!r}: offset {offset} was truncated; the first that may be read is {head.first_offset}")
    return offset
