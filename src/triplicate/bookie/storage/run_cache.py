"""Caches the runs of ledgers that are being read, so that a sequential read does not query the index for every entry.

A window holds the index's answer for a range of a ledger's entry ids: every run that contains one of them. It is valid until the index
changes. Only the reader's worker uses it. The index's version increases before a flush releases the entries that it wrote, so a read that
misses the write cache finds an outdated window invalid.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass
from itertools import pairwise

from triplicate.bookie.core.entry_log_format import BlockInfo
from triplicate.bookie.storage.index import Index

FEW_RUNS = 4
"""Runs of a ledger's first window. Windows that continue a read have `MANY_RUNS`."""
MANY_RUNS = 32
STEP_MAX = 16
"""Largest distance between entry ids of a sequential read: an ensemble larger than the write quorum leaves gaps."""
WINDOWS_MAX = 256
"""With `MANY_RUNS` each they take about 3 MiB."""


@dataclass(slots=True)
class _Window:
    version: int
    first: int
    last: int
    """The range of entry ids, both ends included."""
    runs: list[tuple[int, BlockInfo]]
    """(log, run) by last entry."""
    lasts: list[int]
    apart: bool
    """No two runs overlap."""


class RunCache:
    """See the module's text."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._windows: OrderedDict[int, _Window] = OrderedDict()
        self._last_read: OrderedDict[int, int] = OrderedDict()
        """The last entry read, by ledger."""

    def holding(self, ledger_id: int, entry_id: int) -> list[tuple[int, BlockInfo]]:
        """(log, run) of every run whose range holds the entry, newest first. Raises CorruptionError, OSError."""
        window = self._window(ledger_id, entry_id, reads_on=self._reads_on(ledger_id, entry_id))
        if window is None:
            return self._index.runs_holding(ledger_id, entry_id)
        at = bisect_left(window.lasts, entry_id)
        if window.apart:
            return [window.runs[at]] if at < len(window.runs) and window.runs[at][1].first <= entry_id else []
        found = [place for place in window.runs[at:] if place[1].first <= entry_id]
        found.sort(key=lambda place: (place[1].flush_number, place[0], place[1].offset), reverse=True)
        return found

    def alone(self, ledger_id: int, entry_id: int) -> tuple[int, BlockInfo, int] | None:
        """(log, run, last) if this run alone holds the entries up to `last`; None if the window does not show it."""
        window = self._window(ledger_id, entry_id, reads_on=True)
        if window is None or not window.apart:
            return None
        at = bisect_left(window.lasts, entry_id)
        if at == len(window.runs) or window.runs[at][1].first > entry_id:
            return None
        log, run = window.runs[at]
        return log, run, min(run.last, window.last)

    def _reads_on(self, ledger_id: int, entry_id: int) -> bool:
        """Whether the entry follows closely on the last one read. Random reads do not profit from a window."""
        before = self._last_read.pop(ledger_id, -STEP_MAX - 1)
        self._last_read[ledger_id] = entry_id
        if len(self._last_read) > WINDOWS_MAX:
            self._last_read.popitem(last=False)
        return 0 <= entry_id - before <= STEP_MAX

    def _window(self, ledger_id: int, entry_id: int, *, reads_on: bool) -> _Window | None:
        version = self._index.version
        window = self._windows.get(ledger_id)
        if window is not None and window.version == version and window.first <= entry_id <= window.last:
            self._windows.move_to_end(ledger_id)
            return window
        if not reads_on:
            return None
        goes_on = window is not None and entry_id == window.last + 1
        runs, last = self._index.runs_from(ledger_id, entry_id, MANY_RUNS if goes_on else FEW_RUNS)
        if last < entry_id:
            return None
        apart = all(before[1].last < after[1].first for before, after in pairwise(runs))
        window = _Window(version, entry_id, last, runs, [run.last for _, run in runs], apart)
        self._windows[ledger_id] = window
        self._windows.move_to_end(ledger_id)
        if len(self._windows) > WINDOWS_MAX:
            self._windows.popitem(last=False)
        return window
