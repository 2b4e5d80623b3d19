"""The model of the log workload: the names of the logs, their owners and ends, and the settings with which its processes use logs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from triplicate.client import Client
from triplicate.errors import (
    BookieError,
    EntryNotAuthentic,
    EnvironmentFault,
    LedgerError,
    LogError,
    LogKeyMissing,
    MetadataError,
    SessionExpired,
)
from triplicate.log import KnownKeys, LogClientSettings, LogEntry, Logs, LogSettings, PageLimits, SegmentState
from triplicate_simulator.checkers.log_rules import EndRead, ListedSegment, LogRead, ReadingBegan, ReadingRefused, SegmentsListed
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.log.log_load import RETAIN_AGE_S, LogLoad
from triplicate_simulator.workloads.recreation.held_nodes import wait_for

WRITTEN = "written"
"""The log that writers compete for."""
PUBLISHED = "published"
"""The log that publishers feed."""
MIXED = "mixed"
"""The log that alternates between a writer and a publisher."""
LOGS = (WRITTEN, PUBLISHED, MIXED)

KEYS = {"first": bytes(range(32)), "second": bytes(range(32, 64))}
"""Keys of encrypted logs."""
SMALL_PAGES = PageLimits(recent=5, recent_kept=2, page_segments=3, references=4, references_folded=3)

UNKNOWN_OUTCOMES = (BookieError, LedgerError, LogError, MetadataError, EnvironmentFault)
"""Errors of a client under faults that leave the outcome unknown. `OffsetGap` and `NoSuchLedger` are among them and are checked first."""


class LogModel:
    """The logs of one run."""

    def __init__(self, context: RunContext, load: LogLoad) -> None:
        self.context = context
        self.load = load
        self.owner: dict[str, str] = {}
        """By log, the node of the last writer that acquired it."""
        self.takeover_wanted = asyncio.Event()
        """Set when a writer may have died, so that another acquires the log."""
        self.staged: list[str] = []
        """Logs with staged ledgers, which may be published by now. They are worth a sweep."""
        self.has_staged = asyncio.Event()
        self.ends: dict[str, int] = {}
        """By log, the end that the final reader found: readers that have reached it are done."""
        self.ends_known = asyncio.Event()
        self.numbered: dict[tuple[str, str], int] = {}
        """By log and producer, the number after the last one that it has seen acknowledged."""
        self.counted: dict[str, int] = {}
        self._readings = 0

    @property
    def faults_are_over(self) -> bool:
        return self.context.faults_over.is_set()

    def time(self) -> float:
        return self.context.time()

    def add(self, event: object) -> None:
        """Record an event of a client."""
        self.context.history.add(event)

    def rng(self, *purpose: object) -> random.Random:
        return self.context.rng(*purpose)

    def count(self, name: str, number: int = 1) -> None:
        self.counted[name] = self.counted.get(name, 0) + number

    def count_error(self, error: BaseException) -> None:
        """Count an error that leaves the outcome unknown.

        Raises:
            SessionExpired: the client is unusable. EntryNotAuthentic, LogKeyMissing: no fault of the simulation leads to them.
        """
        self.context.count_unknown(error)
        if isinstance(error, (SessionExpired, EntryNotAuthentic, LogKeyMissing)):
            raise error

    @property
    def client_settings(self) -> LogClientSettings:
        """Settings of the workload's processes: small entries and windows, and waits that fit into a minute."""
        return LogClientSettings(
            entry_target_bytes=1024,
            window_entries=self.load.window_entries,
            window_bytes=16 * 1024,
            staging_window_entries=4,
            owner_grace_s=1.0,
            repair_timeout_s=15.0,
            read_ahead_entries=8,
            page_sweep_age_s=3.0,
            page_cache_entries=4,
            orphan_grace_s=self.load.orphan_grace_s,
            staging_grace_s=self.load.orphan_grace_s,
            publishers_kept=self.load.publishers_kept,
            publisher_idle_s=self.load.publisher_idle_s,
            publish_wait_s=self.load.publish_wait_s,
        )

    def logs(self, client: Client) -> Logs:
        """Return the logs with the settings of this workload."""
        keys = KnownKeys(KEYS) if self.load.encrypted else None
        return Logs(client, self.client_settings, SMALL_PAGES if self.load.small_pages else PageLimits(), keys=keys)

    def log_settings(self, name: str) -> LogSettings:
        """Settings of a log of the workload."""
        return LogSettings(
            ensemble_size=self.load.ensemble_size,
            write_quorum=self.load.write_quorum,
            ack_quorum=self.load.ack_quorum,
            roll_size_bytes=self.load.roll_size_bytes,
            roll_age_s=self.load.roll_age_s,
            retain_size_bytes=self.load.retain_size_bytes if name == WRITTEN else 0,
            retain_age_s=RETAIN_AGE_S if self.load.sweeper_ahead_s else 0,
            compression=self.load.compression,
        )

    async def pause(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the faults."""
        await wait_for(self.context.faults_over, seconds)

    async def keep_running(self, name: str, program: Callable[[Client], Awaitable[None]]) -> None:
        """Run a program on its own node to its end, in as many lives and sessions as needed."""
        while True:
            try:
                await self.context.keep_running(name, program)
            except SessionExpired as error:
                self.context.cluster.report_end(name, error)
                await asyncio.sleep(0.2)
            else:
                return

    def begin_reading(self, log: str, name: str, offset: int) -> str:
        """Record the start of a reader, and return a unique name for it."""
        self._readings += 1
        reading = f"{name}/{self._readings}"
        self.add(ReadingBegan(self.time(), log, reading, offset))
        return reading

    def note_read(self, log: str, reading: str, entry: LogEntry) -> None:
        """Record an entry that a reader received."""
        if entry.is_control:
            self.count("controls_read")
            return
        keys = entry.keys or [None] * entry.count
        records = tuple(record_bytes(key, value) for key, value in zip(keys, entry.values, strict=True))
        time_us = entry.wall_time_us
        self.add(LogRead(self.time(), log, reading, entry.first_offset, records, entry.ledger_id, entry.epoch, time_us))

    def note_refused(self, log: str, reading: str, error: Exception) -> None:
        """Record a reader's error that reports missing records."""
        self.add(ReadingRefused(self.time(), log, reading, f"{type(error).__name__}: {error}"))

    async def list_segments(self, logs: Logs, log: str, name: str) -> bool:
        """Record a log's first offset and its closed segments. False where it was cut meanwhile, so that the two do not match."""
        first = (await logs.head(log)).first_offset
        segments = await logs.segments(log)
        if (await logs.head(log)).first_offset != first:
            return False
        listed = tuple(
            ListedSegment(
                segment.ledger_id, segment.first_offset, segment.end_offset, segment.size_bytes, segment.state is SegmentState.DELETING
            )
            for segment in segments
            if segment.state is not SegmentState.OPEN
        )
        self.add(SegmentsListed(self.time(), log, name, first, listed))
        self.count("segments_listed")
        return True

    async def read_end(self, logs: Logs, log: str, name: str) -> int:
        """Read the readable end, and record it."""
        started_s = self.time()
        end = await logs.end_offset(log)
        self.add(EndRead(started_s, self.time(), log, name, end))
        return end


def record_bytes(key: bytes | None, value: bytes | None) -> bytes:
    """A record as one byte string, as the checkers use it."""
    return b"%b|%b" % (key if key is not None else b"", value if value is not None else b"(null)")


class RecordGenerator:
    """Generates records that are unique in the run."""

    def __init__(self, name: str, rng: random.Random, value_high_bytes: int) -> None:
        self.name = name
        self._rng = rng
        self._high = value_high_bytes
        self._number = 0

    def values(self, count: int) -> tuple[list[bytes], list[bytes] | None]:
        """Values, and keys for some calls."""
        values: list[bytes] = []
        for _ in range(count):
            self._number += 1
            values.append(f"{self.name} {self._number} ".encode() + b"." * self._rng.randrange(self._high))
        keys = [f"k{self._rng.randrange(9)}".encode() for _ in values] if self._rng.random() < 0.3 else None
        return values, keys


def records_of(values: Sequence[bytes], keys: Sequence[bytes] | None) -> tuple[bytes, ...]:
    """Records as the checkers use them."""
    return tuple(record_bytes(keys[place] if keys is not None else None, value) for place, value in enumerate(values))
