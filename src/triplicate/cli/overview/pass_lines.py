"""The progress of copying, as lines on standard error."""

from __future__ import annotations

import time

from triplicate.autorecovery import DiskRoom, PassProgress
from triplicate.cli.overview.core.text_table import size_text
from triplicate.cli.terminal.output import remarks

REMARK_S = 2.0


class PassLines:
    """Writes the progress of a pass to standard error, at most one line in `REMARK_S` seconds."""

    def __init__(self) -> None:
        self.progress = PassProgress(on_change=self._changed)
        self._started = self._said = time.monotonic()
        self._warned = False

    def _changed(self) -> None:
        now, room = time.monotonic(), self.progress.room
        if room is not None and room.is_doubtful and not self._warned:
            self._warned = True
            remarks.print(f"the disks may be too small: {room_text(room)}")
        if now - self._said >= REMARK_S:
            self._said = now
            remarks.print(progress_line(self.progress, now - self._started))


def progress_line(progress: PassProgress, seconds: float) -> str:
    """The ledgers, bytes, rate and remaining time of a pass that has run for some seconds."""
    rate = progress.bytes_copied / max(seconds, 0.001)
    line = f"ledgers {progress.ledgers_done} of {progress.ledgers_total}, {size_text(progress.bytes_copied)} copied, {size_text(rate)}/s"
    if progress.waits_for:
        return f"{line}; waits for {progress.waits_for}"
    left = progress.bytes_expected - progress.bytes_copied
    return f"{line}, about {left / rate:.0f} s left" if left > 0 and rate > 0 else line


def room_text(room: DiskRoom) -> str:
    """The copies to make and the free disk, in numbers."""
    silent = f"; no answer from {', '.join(room.silent)}" if room.silent else ""
    shared = f", {size_text(room.certain_bytes)} if their disks are shared" if room.certain_bytes < room.free_bytes else ""
    needed, free = size_text(room.needed_bytes), size_text(room.free_bytes)
    return f"about {needed} are to be copied, and the bookies that get them have {free} free{shared}{silent}"
