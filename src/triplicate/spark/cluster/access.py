"""Logs and ledgers as the sources use them: composed calls on the blocking facade, over the process's client (`connections`)."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

from triplicate.blocking import BackgroundLoop, BlockingClient, BlockingLogs, BlockingRangeReader, BlockingReader, BlockingStagingWriter
from triplicate.errors import (
    ConnectionLost,
    HandleClosed,
    NoSuchLedger,
    NoSuchLog,
    OffsetGap,
    OffsetTruncated,
    SessionExpired,
    TriplicateError,
)
from triplicate.ledger import Entry
from triplicate.log import (
    USER,
    EntryView,
    Head,
    JoinResult,
    LogClientSettings,
    LogEntry,
    Logs,
    OffsetRange,
    PublisherState,
    PublishResult,
    SegmentState,
    StagedLedger,
    StagingOrigin,
    decode_header,
)
from triplicate.runtime import deadline_after, map_bounded, sleep, timeout_at
from triplicate.spark.cluster import connections
from triplicate.spark.cluster.arrow import EntryRange
from triplicate.spark.cluster.progress import DataLoss, LogState
from triplicate.spark.core.given_options import ClientOptions
from triplicate.spark.core.offsets import LogPosition, Span, limited_by_bytes

Decided = TypeVar("Decided")

KEYS_VARIABLE = "TRIPLICATE_LOG_CLIENT_KEYS_FILE"
"""The variable of an executor that names the key file where no option does."""
STATE_ATTEMPTS = 20
STATES_AT_ONCE = 64
"""Maximum number of logs whose states are read at the same time."""
LOOK_SHARE = 4
"""A pause between two looks is at least this number of times as long as the look took."""
BEHIND_PAUSE_S = 0.1
OPEN_LEDGERS = 32
READ_BYTES = 2 * 1024 * 1024
"""Approximate size of one read of ledger entries."""


@dataclass(frozen=True, slots=True)
class Unread:
    """The records of a log from a position on: from `first` to `end`.

    Args:
        age_s: of the first one's entry, in seconds; 0 without any; None if it cannot be read, for the reason in `error`.
    """

    first: int
    end: int
    age_s: float | None
    error: str = ""


@contextmanager
def logs(metadata_uri: str, ledger_password: str = "", keys_file: str = "", client: ClientOptions = ()) -> Iterator[LogAccess]:
    """The logs of a cluster, over the process's client.

    Args:
        keys_file: the keys of encrypted logs, on this machine; empty: the file that the environment names.
        client: settings of the client that differ from those of the environment.
    """
    settings = LogClientSettings(ledger_password=ledger_password, keys_file=keys_file or os.environ.get(KEYS_VARIABLE, ""))
    with _connected(metadata_uri, client) as connected:
        yield LogAccess(connected.loop, Logs(connected.client, settings))


@contextmanager
def ledgers(metadata_uri: str, ledger_password: str = "", client: ClientOptions = ()) -> Iterator[LedgerAccess]:
    """The ledgers of a cluster, over the process's client."""
    with _connected(metadata_uri, client) as connected:
        yield LedgerAccess(connected, ledger_password.encode())


@contextmanager
def _connected(metadata_uri: str, client: ClientOptions = ()) -> Iterator[BlockingClient]:
    try:
        yield connections.client(metadata_uri, client)
    except (SessionExpired, HandleClosed):
        # The next attempt must not meet the same dead session.
        connections.forget(metadata_uri, client)
        raise


class LogAccess:
    """The operations of the sources on logs.

    Args:
        loop: the loop on which `logs` runs.
    """

    def __init__(self, loop: BackgroundLoop, logs: Logs) -> None:
        self._loop = loop
        self._logs = logs
        self._blocking = BlockingLogs(loop, logs)

    def run(self, work: Callable[[Logs], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine function on the client's loop, and wait for its end."""
        self._loop.call(work(self._logs))

    def post(self, work: Callable[[Logs], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine function on the client's loop in the background. Its errors are dropped."""
        self._loop.post(work(self._logs))

    def bounds(self, log: str) -> tuple[int, int]:
        """First offset that may be read, and the offset after the last.

        Raises:
            NoSuchLog.
        """
        state = self.state(log)
        return state.first, state.end

    def state(self, log: str) -> LogState:
        """The state of a log, perhaps from a metadata server that is behind the others.

        Raises:
            NoSuchLog.
        """
        return self._loop.call(self._state(log))

    async def _state(self, log: str, head: Head | None = None) -> LogState:
        for _ in range(STATE_ATTEMPTS):
            head = head or await self._logs.head(log)
            if head.open is None:
                return LogState(head.log_id, head.first_offset, head.closed_end)
            end = await self._logs.end_offset(log)
            again = await self._logs.head(log)
            # The id must not change between the reads: the end belongs to this log.
            if again.log_id == head.log_id:
                return LogState(again.log_id, again.first_offset, max(again.first_offset, end))
            head = again
        raise NoSuchLog(f"log {log!r} is deleted and created again repeatedly; try again later")

    def synced_state(self, log: str, reached: int) -> LogState:
        """The state of a log that includes every change of the metadata made before this call. For an open segment, an end below `reached`
        is returned only after `log_client.behind_timeout_s`, so that bookies can learn what was confirmed.

        Raises:
            NoSuchLog.
        """
        return self._loop.call(self._synced_state(log, reached))

    async def _synced_state(self, log: str, reached: int) -> LogState:
        clock = self._logs.client.host.clock
        deadline = clock.monotonic() + self._logs.settings.behind_timeout_s
        while True:
            head = (await self._logs.store.read(log, synced=True)).head
            state = await self._state(log)
            if state.end >= reached or head.open is None or clock.monotonic() >= deadline:
                return state
            await sleep(clock, BEHIND_PAUSE_S)

    def offset_at(self, log: str, time: datetime, end: int) -> int | None:
        """The offset of the first record whose entry was written at a time or later; None if there is none.

        Args:
            end: an earlier end of the log.
        """
        return self._loop.call(self._offset_at(log, time, end))

    async def _offset_at(self, log: str, time: datetime, end: int) -> int | None:
        for _ in range(STATE_ATTEMPTS):
            # The end of the log, if there is none. A record that is appended meanwhile must not be taken for one of that time.
            offset = await self._logs.offset_at(log, time)
            if offset < end:
                return offset
            end = max(end, await self._logs.end_offset(log))
            if offset >= end:
                break
        return None

    def states(self, names: Iterable[str]) -> dict[str, LogState]:
        """State of each log that exists."""
        return self._loop.call(self._states(list(names), self._state))

    def synced_states(self, names: Iterable[str], matches: Callable[[str], bool] | None = None) -> dict[str, LogState]:
        """State of each log, including every change of the metadata made before this call, also by other processes.

        Args:
            matches: the states are those of all logs of users with such names, instead of `names`.

        Raises:
            NoSuchLog: one of `names` does not exist.
        """
        return self._loop.call(self._synced_states(list(names), matches))

    async def _synced_states(self, names: list[str], matches: Callable[[str], bool] | None) -> dict[str, LogState]:
        await self._sync()
        if matches is not None:
            names = [name for name in await self._logs.store.nodes() if matches(name)]
            return await self._states(names, self._users_state)
        states = await map_bounded(self._state, names, most=STATES_AT_ONCE, name="states")
        return dict(zip(names, states, strict=True))

    async def _sync(self) -> None:
        """Let the next reads see every change of the metadata of logs that was made before this call."""
        store = self._logs.store
        await store.persist(lambda: store.tree.sync(store.root))

    async def _states(self, names: list[str], state: Callable[[str], Coroutine[Any, Any, LogState | None]]) -> dict[str, LogState]:
        async def ask(name: str) -> LogState | None:
            with suppress(NoSuchLog):
                return await state(name)
            return None

        states = await map_bounded(ask, names, most=STATES_AT_ONCE, name="states")
        return {name: found for name, found in zip(names, states, strict=True) if found is not None}

    async def _users_state(self, log: str) -> LogState | None:
        """The state of a log, unless it belongs to a database, a key-value store or a pipeline."""
        head = await self._logs.head(log)
        return await self._state(log, head) if head.purpose == USER else None

    def unread(self, positions: Mapping[str, LogPosition], limit_s: float) -> dict[str, Unread]:
        """The unread records of each log, without logs that do not exist, or are others than those of the positions.

        Raises:
            TimeoutError: that takes longer than `limit_s`. Errors of the metadata.
        """

        async def ask(item: tuple[str, LogPosition]) -> Unread | None:
            with suppress(NoSuchLog):
                return await self._unread(*item)
            return None

        async def ask_all() -> list[Unread | None]:
            async with timeout_at(deadline_after(self._logs.client.host.clock, limit_s)):
                return await map_bounded(ask, list(positions.items()), most=STATES_AT_ONCE, name="unread")

        return {log: found for log, found in zip(positions, self._loop.call(ask_all()), strict=True) if found is not None}

    async def _unread(self, log: str, position: LogPosition) -> Unread | None:
        state = await self._state(log)
        if position.log_id not in (None, state.log_id):
            return None
        begin = max(position.offset, state.first)
        if begin >= state.end:
            return Unread(begin, state.end, 0.0)
        try:
            return Unread(begin, state.end, await self._age_s(log, begin, state.end))
        except (SessionExpired, HandleClosed, ConnectionLost):
            raise
        except TriplicateError as error:
            return Unread(begin, state.end, None, f"log {log!r}: {error}")

    async def _age_s(self, log: str, begin: int, end: int) -> float:
        for part in await self._logs.plan(log, begin, end, end - begin, skip_lost=True):
            async with self._logs.read_range(part) as reader:
                async for entry in reader:
                    return max(0, self._logs.client.host.clock.wall_us() - entry.view.header.wall_time_us) / 1_000_000
        return 0.0  # All of them are lost.

    def decide_synced(
        self,
        states: dict[str, LogState],
        decide: Callable[[Mapping[str, LogState]], tuple[Decided, list[DataLoss]]],
        *,
        may_be_gone: bool = False,
    ) -> tuple[Decided, list[DataLoss], dict[str, LogState]]:
        """Decide on the states of logs. If the decision finds lost records, decide again on synced states.

        Args:
            may_be_gone: decide without the logs that do not exist any more.

        Raises:
            NoSuchLog: a log does not exist any more, and `may_be_gone` is False.
        """
        decided, losses = decide(states)
        doubtful = {loss.log: loss.reached for loss in losses if not loss.certain}
        if not doubtful:
            return decided, losses, states
        states = {log: state for log, state in states.items() if log not in doubtful}
        allowed = (NoSuchLog,) if may_be_gone else ()
        for log, reached in doubtful.items():
            with suppress(*allowed):
                states[log] = self.synced_state(log, reached)
        return *decide(states), states

    def plan(self, log: str, start: int, end: int, max_records: int, *, skip_lost: bool = False) -> list[OffsetRange]:
        """Ranges for parallel readers. See `Logs.plan`."""
        return self._blocking.plan(log, start, end, max_records, skip_lost=skip_lost)

    def skip_lost_records(self, log: str, start: int, end: int) -> int:
        """The first offset from `start` on whose record is not lost; at most `end`."""
        try:
            if start >= end or self.plan(log, start, start + 1, 1, skip_lost=True):
                return start
            planned = self.plan(log, start, end, end - start, skip_lost=True)
        except (OffsetGap, OffsetTruncated, NoSuchLog):
            return start  # The log has changed since its state was read. The plan of the batch reports that.
        return planned[0].first_offset if planned else end

    def entries(self, part: OffsetRange) -> Iterator[EntryRange]:
        """The records of a planned range, entry by entry. Raises as `RangeReader`."""
        with self._blocking.read_range(part) as reader:
            yield from map(_entry_range, reader)

    def parts(self, log: str, start: int, end: int) -> LogParts:
        """The records between two offsets, for reads of single pieces. Close the result."""
        return LogParts(self._blocking, self.plan(log, start, end, end - start) if start < end else [])

    def limit_bytes(self, begins: Mapping[str, int], ends: Mapping[str, int], max_bytes: int) -> dict[str, int]:
        """Ends about `max_bytes` after the beginnings, in all logs together."""
        spans = {log: self._loop.call(self._spans(log)) for log in ends if begins[log] < ends[log]}
        return limited_by_bytes(begins, ends, spans, max_bytes)

    async def _spans(self, log: str) -> list[Span]:
        spans: list[Span] = []
        for segment in await self._logs.segments(log):
            if segment.state is not SegmentState.OPEN:
                spans.append(Span(segment.first_offset, segment.end_offset, segment.size_bytes))
                continue
            try:
                records, size_bytes = await self._confirmed(segment.ledger_id)
            except NoSuchLedger:
                continue
            if records:
                spans.append(Span(segment.first_offset, segment.first_offset + records, size_bytes))
        return [span for span in spans if span.end > span.first]

    async def _confirmed(self, ledger_id: int) -> tuple[int, int]:
        """Records and payload bytes of an open segment, as far as they are confirmed."""
        view = await self._logs.client.open(ledger_id, password=self._logs.settings.ledger_password.encode())
        try:
            last_entry = view.last_add_confirmed
            if last_entry < 0:
                return 0, 0
            (entry,) = await view.read(last_entry, last_entry)
            return decode_header(entry.payload).end_index, entry.length
        finally:
            await view.aclose()

    def stage(self, origin: StagingOrigin) -> BlockingStagingWriter:
        """Begin a staging ledger for one task. Leaving ``with`` by an error deletes the ledger. See `Logs.staging`."""
        return self._blocking.staging(origin)

    def stage_beside(self, origin: StagingOrigin) -> BlockingStagingWriter:
        """As `stage`, for a log that belongs to a database. Its ledgers are read by `staged_entries`, never published, and deleted."""
        logs = self._logs.acting_for(self._loop.call(self._logs.head(origin.log)).purpose)
        return BlockingLogs(self._loop, logs).staging(origin)

    def staged_entries(self, log: str, ledger: StagedLedger) -> Iterator[EntryView]:
        """The entries of a staging ledger. Raises as `RangeReader`."""
        if not ledger.records:
            return
        head = self._loop.call(self._logs.head(log))
        # Without the log's name the ledger is not searched among the log's segments, of which it is none.
        part = OffsetRange(ledger.ledger_id, 0, 0, ledger.records, ledger.last_entry, log_id=head.log_id, is_encrypted=bool(head.key_id))
        for entry in self.entries(part):
            yield entry.view

    def join_staged(
        self, log: str, ledgers: Sequence[StagedLedger], target_bytes: int, *, application: str | None, batch: int | None
    ) -> JoinResult:
        """Copy small ledgers of a batch into larger ones, unless the batch is in the log already. See `Logs.join_staged`."""
        return self._loop.call(self._join_staged(StagingOrigin(log, application or "", batch=batch or 0), ledgers, target_bytes, batch))

    async def _join_staged(
        self, origin: StagingOrigin, ledgers: Sequence[StagedLedger], target_bytes: int, batch: int | None
    ) -> JoinResult:
        if batch is not None:
            state = await self._logs.last_batch(origin.log, origin.application)
            if state is not None and batch <= state.batch:
                return JoinResult(tuple(ledgers))
        return await self._logs.join_staged(origin, ledgers, target_bytes)

    def check_publish(self, log: str, *, application: str | None, batch: int | None) -> PublisherState | None:
        """Raise the errors that a publish would raise now. Returns the application's last publication if it includes this batch. See
        `Logs.check_publish`."""
        return self._blocking.check_publish(log, application=application, batch=batch)

    def require(self, names: Iterable[str]) -> None:
        """Raise NoSuchLog unless all logs exist."""
        self._loop.call(self._require(list(names)))

    async def _require(self, names: list[str]) -> None:
        await self._sync()
        await map_bounded(self._logs.head, names, most=STATES_AT_ONCE, name="require")

    def publish(self, log: str, ledgers: Sequence[StagedLedger], *, application: str | None, batch: int | None) -> PublishResult:
        """Publish staged ledgers to a log, all or none, and each batch of an application once. See `Logs.publish`."""
        return self._blocking.publish(log, ledgers, application=application, batch=batch, publisher=application or "Spark")

    def discard(self, log: str, ledgers: Sequence[StagedLedger]) -> None:
        """Delete staged ledgers, except those that the log lists."""
        self._blocking.discard(log, [ledger.ledger_id for ledger in ledgers])


class LogParts:
    """Reads pieces of planned ranges. The last `OPEN_LEDGERS` ledgers stay open, because a search returns to the same few.

    Args:
        planned: the readable ranges, in order.
    """

    def __init__(self, logs: BlockingLogs, planned: Sequence[OffsetRange]) -> None:
        self._logs = logs
        self._planned = planned
        self._begins = [part.first_offset for part in planned]
        self._readers: OrderedDict[int, BlockingRangeReader] = OrderedDict()

    def entries(self, start: int, end: int) -> Iterator[EntryRange]:
        """The records from one offset to another, entry by entry. The next call ends the iterator. Raises as `RangeReader`."""
        for index in range(max(0, bisect_right(self._begins, start) - 1), len(self._planned)):
            part = self._planned[index]
            begin, stop = max(start, part.first_offset), min(end, part.end_offset)
            if part.first_offset >= end:
                return
            if begin < stop:
                reader = self._reader(index)
                reader.seek(begin, stop)
                yield from map(_entry_range, reader)

    def _reader(self, index: int) -> BlockingRangeReader:
        reader = self._readers.pop(index, None) or self._logs.read_range(self._planned[index])
        self._readers[index] = reader
        if len(self._readers) > OPEN_LEDGERS:
            _, oldest = self._readers.popitem(last=False)
            oldest.close()
        return reader

    def __enter__(self) -> LogParts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while self._readers:
            self._readers.popitem()[1].close()


class LedgerAccess:
    """The operations of the sources on ledgers."""

    def __init__(self, client: BlockingClient, password: bytes) -> None:
        self._client = client
        self._password = password

    def last_add_confirmed(self, ledger_id: int) -> int:
        """Id of the last readable entry, -1 if there is none.

        Raises:
            NoSuchLedger, Unauthorized.
        """
        with self._client.open(ledger_id, password=self._password) as reader:
            return reader.last_add_confirmed

    def entries(self, ledger_id: int, first_entry: int, last_entry: int) -> Iterator[Entry]:
        """Entries, both ends included."""
        with self._client.open(ledger_id, password=self._password) as reader:
            yield from _entries(reader, first_entry, last_entry)


def _entries(reader: BlockingReader, first_entry: int, last_entry: int) -> Iterator[Entry]:
    count = 1
    while first_entry <= last_entry:
        entries = reader.read(first_entry, min(last_entry, first_entry + count - 1))
        yield from entries
        first_entry += len(entries)
        # As many entries as fit the limit at the last average size, but at most eight times more than before.
        average = sum(len(entry.payload) for entry in entries) // len(entries)
        count = max(1, min(READ_BYTES // max(1, average), count * 8, 4096))


class LogStatePoller:
    """The states of some logs, read at most once in an interval, which is longer if that takes long: with 10,000 logs a few seconds.

    Args:
        interval_s: minimum time in seconds between two reads.
        matches: the logs are those with such names, instead of `names`; the list is read again each time.
    """

    def __init__(
        self,
        metadata_uri: str,
        ledger_password: str,
        names: Iterable[str],
        interval_s: float,
        keys_file: str = "",
        matches: Callable[[str], bool] | None = None,
        client: ClientOptions = (),
    ) -> None:
        self._metadata_uri = metadata_uri
        self._ledger_password = ledger_password
        self._keys_file = keys_file
        self._client = client
        self._names = tuple(names)
        self._matches = matches
        self._interval_s = interval_s
        self._due_at = 0.0
        self._states: dict[str, LogState] | None = None

    def states(self) -> dict[str, LogState]:
        """The state of each log, including everything published before this call.

        A call within the interval since the last read waits for its end. The last result would not do: a query that finds no further
        records reports to `processAllAvailable` that it has read all records.
        """
        if self._states is not None:
            time.sleep(max(0.0, self._due_at - time.monotonic()))
        began = time.monotonic()
        with logs(self._metadata_uri, self._ledger_password, self._keys_file, self._client) as access:
            self._states = access.synced_states(self._names, self._matches)
        ended = time.monotonic()
        self._due_at = max(began + self._interval_s, ended + LOOK_SHARE * (ended - began))
        return dict(self._states)

    def last_states(self) -> dict[str, LogState]:
        """The result of the last read, however old; a first read, if there was none."""
        return self.states() if self._states is None else dict(self._states)


def _entry_range(entry: LogEntry) -> EntryRange:
    first_offset = entry.first_offset - entry.slot
    return EntryRange(entry.view, first_offset, entry.slot, entry.slot + entry.count, entry.ledger_id, entry.entry_id)
