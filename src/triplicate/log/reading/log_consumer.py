"""A named consumer of a log: reading that continues where it was saved, also in another process. The position is kept in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from types import TracebackType

from triplicate.errors import ArgumentError, HandleClosed, OffsetTruncated
from triplicate.log.core.positions import check_offset
from triplicate.log.reading.log_reader import check_identity
from triplicate.log.reading.log_record import LogRecord, check_limit
from triplicate.log.reading.record_reader import LogRecords
from triplicate.log.store.consumer_nodes import ConsumerNodes, StoredConsumer
from triplicate.log.store.head_store import HeadStore
from triplicate.runtime import TaskScope, deadline_after


@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    """One named consumer.

    Args:
        position: offset of the first record that it has not saved as consumed.
        lag: the number of readable records from there on.
        truncated: how many of the records from its position on are truncated, and cannot be consumed any more.
        owner: the process that consumes at present, or None.
        saved_ms: when it saved last, ms since the epoch, by its own clock.
    """

    name: str
    position: int
    lag: int
    truncated: int
    owner: str | None
    saved_ms: int


class LogConsumer:
    """Made by `Logs.consumer`; use it with ``async with``. Iterate over it for records, and `save` what was processed.

    Records are delivered again if the process ends between their processing and the next save: at least once. `save` without a position
    counts the record that was delivered last as processed.

    Raises while reading: as `LogReader`, so NoSuchLog where the log was deleted, also if another one got its name. Raises while saving:
    `ConsumerFenced` once another process has the consumer; it names that.
    """

    def __init__(
        self,
        store: HeadStore,
        nodes: ConsumerNodes,
        stored: StoredConsumer,
        records_from: Callable[[int, str], LogRecords],
        *,
        save_interval_s: float | None,
        skip_truncated: bool,
    ) -> None:
        self.owner = stored.state.owner
        """This process, as it names itself to others."""
        self.missed: list[tuple[int, int]] = []
        """The first and the last offset of each range that was truncated before this consumer reached it."""
        self._store = store
        self._clock = store.host.clock
        self._nodes = nodes
        self._stored = stored
        self._records_from = records_from
        self._position = stored.state.position
        self._log_id = stored.state.log_id
        self._records = records_from(self._position, self._log_id)
        self._save_interval_s = save_interval_s
        self._skip_truncated = skip_truncated
        self._saved_at_s = self._clock.monotonic()
        self._saving = asyncio.Lock()
        self._unsettled = False
        """Whether the last save was not answered, so that the node may have another position than is known."""
        self._closed = False
        # The owner's node is for messages only; `ConsumerNodes.keep` traces its errors.
        self._scope = TaskScope(str(nodes), on_failure=lambda error: None)
        self._scope.spawn(nodes.keep(self.owner), name="owner")

    @property
    def position(self) -> int:
        """Offset of the next record to be delivered."""
        return self._position

    @property
    def saved_position(self) -> int:
        """The position that another process would continue at."""
        return self._stored.state.position

    async def next_record(self, timeout_s: float | None = None) -> LogRecord | None:
        """The next record, or None if there is none within the time. Saves before it waits or delivers, where a save is due.

        Args:
            timeout_s: None: no limit.
        """
        records = await self.next_records(1, timeout_s)
        return records[0] if records else None

    async def next_records(self, limit: int = 1024, timeout_s: float | None = None) -> list[LogRecord]:
        """The next records, up to `limit`: waits for one, and adds those that were fetched with it. Empty if there is none in time."""
        check_limit(limit)
        deadline = deadline_after(self._clock, timeout_s)
        while True:
            self._check_open()
            now = self._clock.monotonic()
            due = self._save_due_s()
            if due is not None and now >= due:
                await self.save()
                due = None
            ends = [moment for moment in (deadline, due) if moment is not None]
            records = await self._fetch(limit, max(0.0, min(ends) - now) if ends else None)
            if records:
                self._position = records[-1].offset + 1
                return records
            if deadline is not None and self._clock.monotonic() >= deadline:
                return []

    async def _fetch(self, limit: int, timeout_s: float | None) -> list[LogRecord]:
        try:
            return await self._records.next_records(limit, timeout_s)
        except OffsetTruncated:
            if not self._skip_truncated:
                raise
        await self._records.aclose()
        log = self._nodes.log
        first = check_identity(log, (await self._store.read(log, synced=True)).head, self._log_id).first_offset
        if first > self._position:
            self.missed.append((self._position, first - 1))
            self._position = first
        self._records = self._records_from(self._position, self._log_id)
        return []

    def _save_due_s(self) -> float | None:
        """When to save by itself; None: nothing to save, or only on request."""
        if self._save_interval_s is None or self._position == self.saved_position:
            return None
        return self._saved_at_s + self._save_interval_s

    async def save(self, position: int | None = None) -> int:
        """Save a position in the cluster and return it. A save that is cancelled may have happened; the next one decides.

        Args:
            position: offset of the first record that was not processed; None: everything that was delivered was.

        Raises:
            ConsumerFenced: another process has taken the consumer over, or reset it; nothing was saved. ArgumentError: the position lies
            beyond what was delivered.
        """
        async with self._saving:
            self._check_open()
            chosen = self._position if position is None else position
            if not 0 <= check_offset(chosen) <= self._position:
                raise ArgumentError(f"{self._nodes} has delivered the records before {self._position}: {chosen} cannot be its position")
            if chosen != self.saved_position or self._unsettled:
                state = replace(self._stored.state, position=chosen, saved_ms=self._clock.wall_us() // 1000)
                self._unsettled = True
                self._stored = await self._nodes.write(state, self._stored)
                self._unsettled = False
            self._saved_at_s = self._clock.monotonic()
            return chosen

    def _check_open(self) -> None:
        if self._closed:
            raise HandleClosed(f"{self._nodes} is closed")

    async def close(self) -> None:
        """Give the consumer up without saving. Idempotent."""
        self._closed = True
        await self._scope.aclose()
        await self._records.aclose()
        await self._nodes.release(self.owner)

    async def __aiter__(self) -> AsyncIterator[LogRecord]:
        while (record := await self.next_record()) is not None:
            yield record

    async def __aenter__(self) -> LogConsumer:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None and self._save_interval_s is not None and not self._closed:
                await self.save()
        finally:
            await self.close()
