"""How fast entries are read that are not in the write cache, while others are being added.

Whoever catches up takes what the processors and the disk give, and whoever appends waits behind it. So the bookie measures the time from
the beginning of each portion of such reads to its answers. While adds arrive, portions are small and may take only a share of all time
together: behind each comes a pause that is longer the longer it took, on a machine that is busy therefore longer than on an idle one. No
pause is longer than `PAUSE_MAX_S`, so reading always goes on; who has not read for that long begins without one; and without adds there
is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from triplicate.bookie.journal.journal import Journal
from triplicate.config import BookieSettings
from triplicate.runtime import Clock, timeout_at

PAUSE_MAX_S = 0.1
"""So at least ten portions a second are read, each with one answer at least."""
ADDS_ARE_RECENT_S = 0.25
"""Adds arrive as long as the last came so short a time ago."""
PORTIONS_BESIDE_WRITES = 16
"""Into so many a portion is divided while adds arrive."""
BATCHES_BESIDE_WRITES = 8
"""An answer to a batch read may then have this part of a whole portion, and ends its own. Where the reader runs on the same processors,
decoding a large one holds up others for longer than finding it."""
BATCHES_AT_ONCE = 4
"""Of so many answers from the write cache to batch reads a turn of the loop consists at least."""


class ReadThrottle:
    """See the module's text. All of it runs on the loop.

    Args:
        journals: whose newest item says when the last add came.
    """

    def __init__(self, clock: Clock, journals: Sequence[Journal], settings: BookieSettings) -> None:
        self._clock = clock
        self._journals = journals
        self._settings = settings
        self._free_at = 0.0
        """When what was read is paid for."""
        self._hurried = asyncio.Event()

    @property
    def _beside_writes(self) -> bool:
        if self._settings.read_share_beside_writes >= 1:
            return False
        return max([journal.submitted_at for journal in self._journals]) >= self._clock.monotonic() - ADDS_ARE_RECENT_S

    @property
    def portion_bytes(self) -> int:
        """After so many bytes of answers a portion ends."""
        whole = self._settings.read_turn_bytes
        return whole // PORTIONS_BESIDE_WRITES if self._beside_writes else whole

    @property
    def batch_bytes(self) -> int:
        """The largest answer to a batch read."""
        most = self._settings.batch_read_bytes
        return min(most, self._settings.read_turn_bytes // BATCHES_BESIDE_WRITES) if self._beside_writes else most

    @property
    def batch_bytes_at_once(self) -> int:
        """The largest from the write cache, which is answered in the turn of the loop that asks."""
        return min(self._settings.batch_read_bytes, self._settings.read_turn_bytes // BATCHES_AT_ONCE)

    async def wait(self, *, urgent: bool) -> bool:
        """Return when the next portion may be read; says whether it had to wait. With somebody `urgent` in it it may be at once."""
        self._hurried.clear()
        if urgent or self._free_at <= self._clock.monotonic() or not self._beside_writes:
            return False
        try:
            async with timeout_at(self._free_at):
                await self._hurried.wait()
        except TimeoutError:
            pass  # The pause is over.
        return True

    def hurry(self) -> None:
        """Somebody waits whom a pause must not hold up."""
        self._hurried.set()

    def spent(self, began: float) -> None:
        """A portion was begun then and has just been answered."""
        now = self._clock.monotonic()
        if self._beside_writes:
            earned = max(self._free_at, began - PAUSE_MAX_S)
            self._free_at = min(earned + (now - began) / self._settings.read_share_beside_writes, now + PAUSE_MAX_S)
