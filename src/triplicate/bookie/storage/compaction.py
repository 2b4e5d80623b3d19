"""Compaction: rewrites entry logs that are mostly dead, to free their space.

The copying is limited in bytes per second and done in small portions on the worker that also flushes, so that no flush waits for long. A
log is copied only if a disk has room for the copy. Source of the thresholds: BookKeeper `GarbageCollectorThread` (minor and major
compaction).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.core.file_header import HEADER_BYTES
from triplicate.bookie.files import NO_SPACE
from triplicate.bookie.storage.storage import Storage
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError
from triplicate.runtime import Host, fault_point, sleep, sleep_until

PORTION_BYTES = 256 * 1024
"""Bytes copied at once. A flush waits for at most one such portion."""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """One round of compaction.

    Attributes:
        threshold: logs with a smaller living share were to be rewritten.
        logs: rewritten ones. freed_bytes: of their files. written_bytes: of the copies.
        without_room: logs that were left because no disk has room for the copy.
        damaged: logs that could not be copied since the bookie's start.
        began_ms, ended_ms: milliseconds since the epoch.
    """

    threshold: float
    logs: int
    freed_bytes: int
    written_bytes: int
    without_room: int
    damaged: int
    began_ms: int
    ended_ms: int


class Compactor:
    """See the module's text. Rounds run one at a time, also those that an operator has requested.

    `on_full_disk` is called when a round found no space, or too little for a copy.
    """

    def __init__(
        self, host: Host, storage: Storage, settings: BookieSettings, metrics: BookieMetrics, on_full_disk: Callable[[], None]
    ) -> None:
        self._host = host
        self._storage = storage
        self._settings = settings
        self._metrics = metrics
        self._on_full_disk = on_full_disk
        self._damaged: set[int] = set()
        """Logs that could not be copied. They are skipped until the next major round."""
        self.running_since_ms: int | None = None
        """When the present round began, milliseconds since the epoch; None: no round is under way."""
        self.last_report: CompactionReport | None = None
        """Of the last complete round of this process."""
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        settings, clock = self._settings, self._host.clock
        started = clock.monotonic()
        minor, major = started + settings.compaction_interval_s, started + settings.major_compaction_interval_s
        while True:
            await sleep_until(clock, min(minor, major))
            is_major = clock.monotonic() >= major
            if is_major:
                # Their entries may have been stored again meanwhile.
                self._damaged.clear()
            threshold = settings.major_compaction_threshold if is_major else settings.compaction_threshold
            (self._metrics.major_compactions if is_major else self._metrics.minor_compactions).inc()
            try:
                await self.compact(threshold)
            except CorruptionError as error:
                self._host.trace("bookie.compaction_put_off", error=str(error))
            except OSError as error:
                # Any other error may be a failed sync, and such a disk must not be written to.
                if error.errno not in NO_SPACE:
                    raise
                self._host.trace("bookie.compaction_put_off", error=str(error))
                self._on_full_disk()
            minor = clock.monotonic() + settings.compaction_interval_s
            if is_major:
                major = clock.monotonic() + settings.major_compaction_interval_s

    async def compact(self, threshold: float) -> int:
        """Run one round; returns how many logs were rewritten. Raises as `run_round`."""
        return (await self.run_round(threshold)).logs

    async def run_round(self, threshold: float) -> CompactionReport:
        """Rewrite every finished log whose living share is below the threshold, the emptiest first, after the round under way.

        Raises:
            OSError: a disk is full or failed. CorruptionError: of the index.
        """
        async with self._turn:
            self.running_since_ms = self._now_ms()
            try:
                self.last_report = await self._compact_below(threshold, self.running_since_ms)
            finally:
                self.running_since_ms = None
            return self.last_report

    async def _compact_below(self, threshold: float, began_ms: int) -> CompactionReport:
        logs = freed_bytes = written_bytes = without_room = 0
        storage = self._storage
        for log, size, living in await self._below(threshold):
            if not await storage.on_writer(storage.stored.has_room, living):
                self._host.trace("bookie.compaction_lacks_room", log=log, living_bytes=living)
                without_room += 1
                continue
            freed = await self._compact(log, size, living)
            if freed is not None:
                logs += 1
                freed_bytes += freed
                written_bytes += living
        await storage.on_writer(storage.stored.copier.finish)
        if without_room:
            self._on_full_disk()
        return CompactionReport(threshold, logs, freed_bytes, written_bytes, without_room, len(self._damaged), began_ms, self._now_ms())

    def _now_ms(self) -> int:
        return self._host.clock.wall_us() // 1000

    async def _below(self, threshold: float) -> list[tuple[int, int, int]]:
        """(log, size, living bytes) of the logs to rewrite."""
        stored = self._storage.stored
        found: list[tuple[float, int, int, int]] = []
        sizes: dict[int, int] = await self._storage.on_writer(stored.finished_logs)
        total = 0
        for log, size in sizes.items():
            # One by one: each query takes time in proportion to the log's runs, and a flush may wait.
            living: int = await self._storage.on_writer(stored.index.living_bytes, log)
            share = living / max(1, size - HEADER_BYTES)
            total += size
            # A log in which nothing lives is left to garbage collection.
            if 0 < share < threshold and log not in self._damaged:
                found.append((share, log, size, living))
        self._metrics.entry_logs.set(len(sizes))
        self._metrics.entry_log_bytes.set(total)
        return [(log, size, living) for _, log, size, living in sorted(found)]

    @fault_point("bookie.compaction.log")
    async def _compact(self, log: int, size: int, living: int) -> int | None:
        """Rewrite one log. Returns the bytes freed; None if it is damaged."""
        storage, rate = self._storage, self._settings.compaction_bytes_per_s
        await storage.on_writer(storage.stored.begin_compaction, log, living)
        done = False
        while not done:
            try:
                copied, done = await storage.on_writer(storage.stored.copier.portion, min(PORTION_BYTES, rate))
            except CorruptionError as error:
                # Damaged entries stay in place until they are stored again: a copy could not be read either, and a backup may restore them.
                self._damaged.add(log)
                self._host.trace("bookie.compaction_met_damage", log=log, error=str(error))
                return None
            self._metrics.compacted_bytes.inc(copied)
            await sleep(self._host.clock, copied / rate)
        freed = await storage.delete_dead_logs([log])
        self._metrics.bytes_compacted.inc(max(0, size - living))
        self._host.trace("bookie.log_compacted", log=log, size_bytes=size, living_bytes=living, freed_bytes=freed)
        return freed
