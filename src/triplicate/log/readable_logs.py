"""Reading the logs of a cluster: readers of entries and of records, positions, named consumers."""

from __future__ import annotations

import datetime
import functools

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import ArgumentError
from triplicate.log import consumers
from triplicate.log.core.encryption import KeySource
from triplicate.log.core.head import Head, LogSegment, Owner
from triplicate.log.core.head_changes import DEFAULT_LIMITS, PageLimits
from triplicate.log.core.locate import OffsetRange
from triplicate.log.core.positions import EARLIEST, LATEST, Position, TransactionId, check_position, time_us
from triplicate.log.reading import range_reader
from triplicate.log.reading.backward_reader import BackwardReader
from triplicate.log.reading.log_consumer import ConsumerInfo, LogConsumer
from triplicate.log.reading.log_reader import LogReader, head_for, readable_end
from triplicate.log.reading.log_record import LogRecord
from triplicate.log.reading.range_reader import RangeReader
from triplicate.log.reading.record_reader import LogRecords
from triplicate.log.reading.seek import Seek
from triplicate.log.reading.written_end import await_acknowledged, find_written_end
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.log_encryption import LogEncryption
from triplicate.log.store.log_metrics import LogMetrics
from triplicate.log.store.ownership import live_owner
from triplicate.log.store.segments import can_recover


class ReadableLogs:
    """The part of `Logs` that changes no log. Arguments as for `Logs`."""

    def __init__(
        self,
        client: LedgerClient,
        settings: LogClientSettings | None = None,
        limits: PageLimits = DEFAULT_LIMITS,
        *,
        keys: KeySource | None = None,
    ) -> None:
        self.client = client
        self._metrics = client.metrics
        self.settings = settings if settings is not None else LogClientSettings()
        self._store = HeadStore(client.metadata, client.host, self.settings, limits)
        self._encryption = LogEncryption(client.host, self.settings, keys)

    @property
    def store(self) -> HeadStore:
        """The heads of all logs in the metadata, for background work."""
        return self._store

    async def names(self) -> list[str]:
        """Names of all logs, sorted."""
        return await self._store.names()

    async def head(self, name: str) -> Head:
        """Read the present head. Raises NoSuchLog."""
        return (await self._store.read(name)).head

    async def segments(self, name: str) -> list[LogSegment]:
        """Every segment, oldest first, the open one last. Raises NoSuchLog."""
        return await self._store.segments(name)

    async def owner(self, name: str) -> Owner | None:
        """The living writer, or None."""
        return await live_owner(self._store, name)

    async def end_offset(self, name: str) -> int:
        """Offset after the last record that may be read now."""
        return await readable_end(self.client, self._store, self.settings, name)

    async def reader(self, name: str, start_offset: int = 0, *, include_control: bool = False) -> LogReader:
        """Read from an offset on, then follow the log.

        Args:
            include_control: also deliver control records (segment headers, no-ops, aborts).

        Raises:
            NoSuchLog. OffsetTruncated: the offset lies before the first. ArgumentError: below 0 or beyond the end.
        """
        return await self._reader(name, start_offset, include_control=include_control)

    async def _reader(self, name: str, start_offset: int, *, include_control: bool = False, log_id: str = "") -> LogReader:
        """As `reader`. Raises NoSuchLog where another log than `log_id` has the name, unless that is empty."""
        head = await head_for(self._store, name, start_offset, log_id)
        metrics = LogMetrics(self._metrics, name)
        return LogReader(name, self.client, self._store, self.settings, metrics, head, start_offset, include_control, self._encryption)

    async def written_end(self, name: str) -> int:
        """An offset that no record acknowledged before this call exceeds. The records before it may not be readable yet.

        A copy of the records up to it lacks nothing that was acknowledged before the call. Nothing is fenced or appended.

        Raises:
            NoSuchLog. ReadFailed: too few bookies answer. ConnectionLost: the metadata store is away.
        """
        return await find_written_end(self.client, self._store, self.settings, name)

    async def acknowledged_end(self, name: str) -> int:
        """Wait until every record acknowledged before this call can be read. Returns the offset after the last one that can be.

        It waits for the no-op of an idle writer, and where the writer is gone for the next one, up to 15 s: nobody else makes the last
        records readable. After that it returns the end without them.

        Raises:
            ReadFailed: a living writer has not made its records readable within 60 s. Also the errors of `written_end`.
        """
        return await await_acknowledged(self.client, self._store, self.settings, name)

    async def plan(self, name: str, start: int, end: int, max_records: int, *, skip_lost: bool = False) -> list[OffsetRange]:
        """Cut the records from `start` to `end` (exclusive, at most `end_offset`) into ranges that can be read in parallel.

        The offsets of the ranges depend only on start, end, max_records and the begins of segments, not on later changes of the log.

        Args:
            skip_lost: leave out the records that are lost with their ledger; the ranges have gaps there.

        Raises:
            NoSuchLog, OffsetTruncated, OffsetGap; ArgumentError: start after end.
        """
        return await range_reader.plan(self._store, name, start, end, max_records, skip_lost=skip_lost)

    def read_range(self, planned: OffsetRange) -> RangeReader:
        """Read one planned range. Only its ledger is needed, unless that was rewritten since the planning."""
        return RangeReader(self.client, self._store, self.settings, planned, self._encryption)

    def records(self, name: str, from_: Position = EARLIEST, *, to: Position | None = None) -> LogRecords:
        """The records of a log one by one: ``async for record in logs.records("flights")``. It follows the log, or ends at `to`.

        Args:
            from_: an offset, ``"earliest"``, ``"latest"``, a time, or a `TransactionId`.
            to: the position to stop before, as it is when reading begins; None: wait for new records without end.

        Raises while reading: as `reader`; ArgumentError for a position that is none.
        """
        return self._records(name, from_, to)

    def _records(self, name: str, from_: Position, to: Position | None = None, *, log_id: str = "") -> LogRecords:
        """As `records`, of the log of this id, unless it is empty: of the one that has the name when reading begins."""
        known, limits = log_id, list[int | None]()

        async def begin(position: int | None) -> tuple[LogReader, int | None]:
            nonlocal known
            known = known or (await self._store.read(name)).head.log_id
            start = await self.offset_at(name, from_) if position is None else position
            if not limits:
                limits.append(None if to is None else await self.offset_at(name, to))
            return await self._reader(name, start, log_id=known), limits[0]

        return LogRecords(name, self.client.host.clock, begin)

    def backwards(self, name: str, from_: Position = LATEST, *, skip_lost: bool = False) -> BackwardReader:
        """The records before a position one by one, the last first, down to the log's first offset.

        Args:
            from_: as for `records`; reading begins with the record before it.
            skip_lost: pass over segments that are lost, instead of raising OffsetGap.
        """

        async def begin() -> int:
            position, end = await self.offset_at(name, from_), await self.end_offset(name)
            if position > end:
                raise ArgumentError(f"log {name!r} ends at {end}; reading backwards cannot begin at {position}")
            return position

        return BackwardReader(name, self.client, self._store, self.settings, self._encryption, begin, skip_lost=skip_lost)

    async def last_record(self, name: str) -> LogRecord | None:
        """The last record that may be read now; None if the log has none. Raises as `backwards`."""
        async with self.backwards(name) as reader:
            return await reader.next_record()

    async def offset_at(self, name: str, position: Position) -> int:
        """The offset of a position; the log's readable end for a time or a transaction id behind its last record.

        A time is compared with those at which entries were written. An offset is returned as it is.

        Raises:
            NoSuchLog. ArgumentError: it is no position. OffsetGap, and errors of reading a ledger.
        """
        position = check_position(position)
        if isinstance(position, int):
            return position
        if position == EARLIEST:
            return (await self._store.read(name)).head.first_offset
        end = await self.end_offset(name)
        seek = Seek(name, self.client, self._store, self.settings, self._encryption)
        if isinstance(position, TransactionId):
            return await seek.transaction(position.value, end)
        return await seek.time(time_us(position), end) if isinstance(position, datetime.datetime) else end

    async def consumer(
        self,
        name: str,
        consumer: str,
        *,
        start: Position = EARLIEST,
        save_interval_s: float | None = None,
        skip_truncated: bool = False,
        owner: str = "",
        take_over: bool = False,
    ) -> LogConsumer:
        """Read a log under a name whose position is kept in the cluster.

        ``async with await logs.consumer("flights", "billing") as consumer: async for record in consumer: …``

        Args:
            start: where a new consumer begins, at most at the end of what was acknowledged; one that exists goes on where it was saved.
            save_interval_s: save what was processed at this interval, and at the end of ``async with``; None: only `LogConsumer.save` does.
            skip_truncated: go on at the log's first offset if records were truncated before they were read; they are in `missed`.
            owner: name of this process, for messages; empty: that of the client's host.
            take_over: also while another process consumes, which then cannot save any more.

        Raises:
            NoSuchLog. ConsumerOwned: another process consumes. OffsetTruncated: records that were not read are gone; it says from where on
            they are there. LogReplaced: the position belongs to a deleted log of this name. ArgumentError: `start` lies beyond the end.
        """
        return await consumers.open_consumer(
            self._store,
            name,
            consumer,
            owner=self._own_name(owner),
            take_over=take_over,
            start=lambda: self._offset_within(name, start),
            records_from=lambda offset, log_id: self._records(name, offset, log_id=log_id),
            save_interval_s=save_interval_s,
            skip_truncated=skip_truncated,
        )

    async def _offset_within(self, name: str, position: Position) -> int:
        """As `offset_at`, of a position up to which records were acknowledged: a consumer beyond it would silently pass over all others.

        Raises:
            ArgumentError: it lies beyond the end.
        """
        offset = await self.offset_at(name, position)
        # The end of what may be read can be behind what was acknowledged, which takes longer to find.
        if offset > await self.end_offset(name) and offset > (end := await self.written_end(name)):
            raise ArgumentError(f"log {name!r} ends at {end}: no consumer can be put at {offset}; {LATEST!r} is the end")
        return offset

    async def consumers(self, name: str) -> list[ConsumerInfo]:
        """The named consumers of a log, by name. Raises NoSuchLog."""
        return await consumers.list_consumers(self._store, name, await self.end_offset(name))

    async def reset_consumer(self, name: str, consumer: str, position: Position, *, force: bool = False, create: bool = True) -> int:
        """Let a consumer go on at a position. Returns its offset.

        Args:
            force: also while a process consumes, which then cannot save any more.
            create: make a consumer that does not exist.

        Raises:
            NoSuchLog. NoSuchConsumer: it does not exist, and `create` is False. ConsumerOwned: a process consumes. ArgumentError: the
            position lies beyond the end; nothing was changed. Also as `offset_at`.
        """
        owner = self._own_name("")
        find = functools.partial(self._offset_within, name, position)
        return await consumers.reset_consumer(self._store, name, consumer, find, owner=owner, force=force, create=create)

    async def delete_consumer(self, name: str, consumer: str, *, force: bool = False) -> None:
        """Forget a consumer and its position. Raises NoSuchConsumer; ConsumerOwned: a process consumes, and `force` is False."""
        await consumers.delete_consumer(self._store, name, consumer, force=force)

    def _own_name(self, given: str) -> str:
        return given or self.client.host.name


async def can_be_taken_over(logs: ReadableLogs, name: str) -> bool:
    """Whether this process reaches enough bookies to become the writer of a log. Nothing is fenced or changed; True promises nothing.

    Raises:
        NoSuchLog, NoSuchLedger. ConnectionLost: the metadata store is away.
    """
    return await can_recover(logs.client, (await logs.store.read(name, synced=True)).head)
