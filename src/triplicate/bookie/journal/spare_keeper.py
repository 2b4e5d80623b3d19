"""Keeps the file that comes next ready before it is needed, in the background."""

from __future__ import annotations

import asyncio
import math

from triplicate.bookie.core.journal_format import GroupPosition
from triplicate.bookie.core.journal_machine import wants_file
from triplicate.bookie.journal.group_writer import GroupWriter
from triplicate.bookie.journal.journal_files import PIECE_BYTES, JournalFiles
from triplicate.runtime import Clock, Worker, fault_point, sleep

PREPARE_REST = 2.0
"""Pause between pieces while a spare file is written, as a multiple of the piece's duration."""
PREPARE_AGAIN_S = 10.0
"""Wait after a spare could not be made."""


class SpareKeeper:
    """Makes files ready from spares, and spares from zeros. All methods are for the loop."""

    def __init__(self, clock: Clock, files: JournalFiles, writer: GroupWriter) -> None:
        self._clock = clock
        self._files = files
        self._writer = writer
        self._wanted = asyncio.Event()
        self._synced = GroupPosition(0, 0, 0)
        self._prepare_at = -math.inf
        """A spare is not made before this time."""

    def group_synced(self, end: GroupPosition) -> None:
        """Wake `run` if the file after the one of `end` should be made ready."""
        self._synced = end
        if self._wants_file():
            self._wanted.set()

    def _wants_file(self) -> bool:
        files, end = self._files, self._synced
        return wants_file(
            end,
            files.file_bytes,
            ready=files.ready_after(end.file_number) is not None,
            spares=files.spares,
            may_prepare=files.may_prepare and self._clock.monotonic() >= self._prepare_at,
        )

    async def run(self, worker: Worker) -> None:
        """Make files ready whenever they are wanted. Ends by being cancelled.

        Raises:
            OSError: the disk failed.
        """
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if self._wants_file() and not await worker.run(self._files.make_ready, self._writer.number):
                if await self._prepare(worker):
                    await worker.run(self._files.make_ready, self._writer.number)
                else:
                    self._prepare_at = self._clock.monotonic() + PREPARE_AGAIN_S

    @fault_point("bookie.journal.prepare")
    async def _prepare(self, worker: Worker) -> bool:
        """Make a spare, slowly, since appends have the disk first. Returns False if there is no space for it."""
        if not await worker.run(self._files.begin_preparing):
            return False
        for offset in range(0, self._files.file_bytes, PIECE_BYTES):
            before = self._clock.monotonic()
            if not await worker.run(self._files.prepare_piece, offset):
                return False
            await sleep(self._clock, PREPARE_REST * (self._clock.monotonic() - before))
        await worker.run(self._files.finish_preparing)
        return True
