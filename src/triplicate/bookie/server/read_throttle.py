"""Limits reads that miss the write cache while adds arrive.

A reader that catches up uses all processors and the whole disk, and writers wait behind it. The bookie therefore measures the time from
the beginning of each portion of such reads to its answers. While adds arrive, portions are small, and together they may take only a share
of the time: each portion is followed by a pause in proportion to its duration, which is longer on a busy machine. No pause is longer than
`PAUSE_MAX_S`, so reading always progresses. There is no pause after a gap of that length in the reads, nor without adds.

The share grows with the time in which no add waits for its sync. Where adds are rare, an add meets a portion more often, and waits at most
for that one. Where adds follow each other closely, each delay also delays the adds behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from triplicate.bookie.journal.journal import Journal
from triplicate.config import BookieSettings
from triplicate.runtime import Clock, timeout_at

PAUSE_MAX_S = 0.1
"""At least ten portions a second are read, each with at least one answer."""
ADDS_ARE_RECENT_S = 0.25
"""Adds count as arriving for this time after the last one."""
PORTIONS_BESIDE_WRITES = 16
"""A portion shrinks to this fraction (1/n) while adds arrive."""
BATCHES_BESIDE_WRITES = 8
"""While adds arrive, an answer to a batch read is at most this fraction (1/n) of a whole portion, and ends its own portion. Where the
reader runs on the same processors, decoding a large answer delays others for longer than reading it."""
BUSY_SAMPLES = 32
"""Portions over which the share of busy time is averaged."""
BATCHES_AT_ONCE = 4
"""Minimum number of cached batch-read replies per loop iteration."""


class ReadThrottle:
    """See the module's text. Everything runs on the loop.

    Args:
        journals: their newest items show when the last add arrived.
    """

    def __init__(self, clock: Clock, journals: Sequence[Journal], settings: BookieSettings) -> None:
        self._clock = clock
        self._journals = journals
        self._settings = settings
        self._free_at = 0.0
        """When the pause after the last portion ends, on the clock's monotonic time."""
        self._busy = 1.0
        """Share of the time in which adds wait for a sync: a moving average of samples taken before portions."""
        self._hurried = asyncio.Event()

    @property
    def _beside_writes(self) -> bool:
        if self._settings.read_share_beside_writes >= 1:
            return False
        return max([journal.submitted_at for journal in self._journals]) >= self._clock.monotonic() - ADDS_ARE_RECENT_S

    @property
    def share(self) -> float:
        """Share of the time that reads may take beside adds."""
        return max(self._settings.read_share_beside_writes, self._settings.read_share_beside_rare_writes * (1 - self._busy) ** 2)

    @property
    def portion_bytes(self) -> int:
        """Bytes of answers after which a portion ends."""
        whole = self._settings.read_turn_bytes
        return whole // PORTIONS_BESIDE_WRITES if self._beside_writes else whole

    @property
    def batch_bytes(self) -> int:
        """Maximum size of an answer to a batch read."""
        most = self._settings.batch_read_bytes
        return min(most, self._settings.read_turn_bytes // BATCHES_BESIDE_WRITES) if self._beside_writes else most

    @property
    def batch_bytes_at_once(self) -> int:
        """Maximum size of a batch-read answer from the write cache, which is sent in the same loop iteration."""
        return min(self._settings.batch_read_bytes, self._settings.read_turn_bytes // BATCHES_AT_ONCE)

    async def wait(self, *, urgent: bool) -> bool:
        """Return when the next portion may be read. Returns whether it had to wait. An `urgent` portion never waits."""
        waited = await self._pause(urgent)
        is_busy = any(journal.commit.unsynced for journal in self._journals)
        self._busy += (is_busy - self._busy) / BUSY_SAMPLES
        return waited

    async def _pause(self, urgent: bool) -> bool:
        self._hurried.clear()
        if urgent or self._free_at <= self._clock.monotonic() or not self._beside_writes:
            return False
        try:
            async with timeout_at(self._free_at):
                await self._hurried.wait()
        except TimeoutError:
            pass  # The pause is over.
        return True

    def end_pause(self) -> None:
        """End the pause: a read waits that must not be delayed."""
        self._hurried.set()

    def spent(self, began: float) -> None:
        """Account for a portion that began at `began` and has just been answered."""
        now = self._clock.monotonic()
        if self._beside_writes:
            earned = max(self._free_at, began - PAUSE_MAX_S)
            self._free_at = min(earned + (now - began) / self.share, now + PAUSE_MAX_S)
