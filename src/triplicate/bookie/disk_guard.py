"""Keeps a bookie working on full disks: warns, refuses writes, frees reserved space, and resumes when there is room.

Every directory has a reserve, a file of a configured size. It is deleted when space runs out, so that a start, a flush, a fence and
garbage collection find room on a disk that others have filled. It is made again when there is room. Source of the thresholds: BookKeeper
`LedgerDirsMonitor`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.directories import CURRENT, RESERVE_NAME, Directories
from triplicate.bookie.files import NO_SPACE, join
from triplicate.config import BookieSettings
from triplicate.runtime import Disk, Host, timeout_at


class Reserve:
    """Space kept in one directory's ``current``. Everything blocks."""

    def __init__(self, disk: Disk, directory: str, size_bytes: int) -> None:
        self.directory = directory
        self.size_bytes = size_bytes
        self._disk = disk
        self._current = join(directory, CURRENT)
        self._path = join(self._current, RESERVE_NAME)

    def held_bytes(self) -> int:
        """Size of the reserve file, in bytes. Raises OSError."""
        if not self._disk.exists(self._path):
            return 0
        file = self._disk.open(self._path, readonly=True)
        try:
            return file.size()
        finally:
            file.close()

    def has_room(self) -> bool:
        """Whether the reserve fits and leaves as much space again. Raises OSError."""
        free, _ = self._disk.free_space(self._current)
        return free >= 2 * self.size_bytes

    def make(self) -> None:
        """Make the reserve if it is missing or has another size. Raises OSError: no space; then there is no reserve."""
        if self.held_bytes() == self.size_bytes:
            return
        self.release()
        if not self.size_bytes:
            return
        beside = self._path + ".new"
        file = self._disk.open(beside, create=True)
        try:
            file.truncate(0)
            file.allocate(0, self.size_bytes)
            file.sync()
        except OSError:
            self._disk.delete(beside)
            raise
        finally:
            file.close()
        self._disk.rename(beside, self._path)
        self._disk.sync_directory(self._current)

    def release(self) -> None:
        """Delete the reserve. Raises OSError."""
        if self._disk.exists(self._path):
            self._disk.delete(self._path)
            self._disk.sync_directory(self._current)


class DiskGuard:
    """Watches the disks and decides whether the bookie is read-only, which operators can also request. Implements `ServerState`."""

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        directories: Directories,
        metrics: BookieMetrics,
    ) -> None:
        self._host = host
        self._settings = settings
        self._metrics = metrics
        self._directories = directories
        self._reserves = [Reserve(host.disk, directory, settings.reserve_bytes) for directory in directories.configured]
        self._worker = host.new_worker("bookie-disks")
        self._wanted = asyncio.Event()
        self._requested = False
        """Whether an operator has requested that the bookie be read-only."""
        self._flush_without_space = False
        self._journal_without_space = False
        self._disks_full = False
        self._warned = False
        self._reserved = False
        """Whether every reserve exists."""
        self._free_bytes = 0
        metrics.reserve_bytes.set_function(lambda: settings.reserve_bytes * len(self._reserves) if self._reserved else 0)

    @property
    def read_only(self) -> bool:
        """Whether normal writes are refused, for lack of space or on request."""
        return self._requested or self._is_short

    @property
    def _is_short(self) -> bool:
        return self._disks_full or self._flush_without_space or self._journal_without_space

    @property
    def accepts_high_priority(self) -> bool:
        """Whether the adds of recoveries are accepted: they are few and free space in the end, so they may use the last of it."""
        return not self._flush_without_space and self._free_bytes >= self._settings.recovery_adds_free_bytes

    def set_requested(self, value: bool) -> None:
        """Record whether an operator has requested that the bookie be read-only."""
        if value != self._requested:
            self._host.trace("bookie.read_only_requested" if value else "bookie.read_only_request_withdrawn")
        self._requested = value

    def before_start(self) -> None:
        """Delete the reserve of a disk that is too full to start on. Blocks; raises OSError."""
        for reserve in self._reserves:
            free, _ = self._host.disk.free_space(join(reserve.directory, CURRENT))
            if free < max(reserve.size_bytes, self._settings.journal_preallocate_bytes) and reserve.held_bytes():
                self._host.trace("bookie.reserve_released", directory=reserve.directory, free_bytes=free)
                reserve.release()

    def set_flush_without_space(self, value: bool) -> None:
        """Record whether a flush found the disk full."""
        self._flush_without_space = value
        if value:
            self._wanted.set()

    def set_journal_without_space(self) -> None:
        """Record that a group was refused for lack of space."""
        if not self._journal_without_space:
            self._host.trace("bookie.journal_without_space")
        self._journal_without_space = True
        self._wanted.set()

    def lack_space_to_collect(self) -> None:
        """Record that garbage collection or compaction found no space. Frees the reserve for the next round if no adds could use it."""
        if self.read_only:
            self._wanted.set()

    def measure_disks(self) -> None:
        """Measure the free space of every directory. Read-only above the threshold; writable again only below the low water mark."""
        fullest = 0.0
        least: int | None = None
        for directory in self._directories.configured:
            free, total = self._host.disk.free_space(directory)
            used = 1.0 - free / total if total else 1.0
            self._metrics.disk_used.labels(directory).set(used)
            fullest = max(fullest, used)
            least = free if least is None else min(least, free)
        self._free_bytes = least or 0
        settings = self._settings
        before = self._disks_full
        limit = settings.disk_usage_low_water if before else settings.disk_usage_threshold
        self._disks_full = fullest > limit
        if self._disks_full != before:
            self._host.trace("bookie.disks_full" if self._disks_full else "bookie.disks_have_room", used=round(fullest, 4), limit=limit)
        warned, self._warned = self._warned, fullest > settings.disk_usage_warn_threshold
        self._metrics.disk_warning.set(self._warned)
        if self._warned and not warned:
            self._host.trace("bookie.disks_nearly_full", used=round(fullest, 4), limit=settings.disk_usage_warn_threshold)

    async def run(self, set_short: Callable[[bool], None]) -> None:
        """Measure the disks periodically, and at once when space ran out.

        Args:
            set_short: called on a worker after each check, with True while space is short: frees what is kept for speed alone. May raise
            OSError.
        """
        clock = self._host.clock
        while True:
            try:
                async with timeout_at(clock.monotonic() + self._settings.disk_check_interval_s):
                    await self._wanted.wait()
            except TimeoutError:
                pass  # Nothing has run out: a periodic check.
            ran_out = self._wanted.is_set()
            self._wanted.clear()
            try:
                if ran_out:
                    await self._release()
                self.measure_disks()
                await self._worker.run(set_short, ran_out or self._is_short)
                if not ran_out:
                    await self._recover()
            except OSError as error:
                self._host.trace("bookie.disk_check_failed", error=str(error))

    async def _release(self) -> None:
        if self._reserved:
            self._host.trace("bookie.reserve_released")
        self._reserved = False
        if self._settings.reserve_bytes:
            for reserve in self._reserves:
                await self._worker.run(reserve.release)

    async def _recover(self) -> None:
        """Make the reserves again once there is room, and let the journal try again."""
        if self._flush_without_space or (self._reserved and not self._journal_without_space):
            return
        if not self._reserved and self._settings.reserve_bytes:
            for reserve in self._reserves:
                if not reserve.held_bytes() and not reserve.has_room():
                    return
                try:
                    await self._worker.run(reserve.make)
                except OSError as error:
                    if error.errno not in NO_SPACE:
                        raise
                    return
        self._reserved = True
        if self._journal_without_space and self._free_bytes >= 2 * self._settings.journal_preallocate_bytes:
            self._journal_without_space = False
            self._host.trace("bookie.journal_has_room", free_bytes=self._free_bytes)

    async def make_reserves(self) -> None:
        """Make the reserves at the start, as far as there is room; the rest follows later."""
        try:
            await self._recover()
        except OSError as error:
            self._host.trace("bookie.disk_check_failed", error=str(error))

    async def aclose(self) -> None:
        """End the worker. The reserves stay for the next start."""
        await self._worker.close()
