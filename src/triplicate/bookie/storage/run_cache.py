"""The runs of ledgers that are being read, kept between reads: who reads on needs no look into the index for every entry.

A window is what the index says about a stretch of a ledger's entry ids: every run that holds one of them. It counts until the index
changes. Only the reader's worker uses it; the index's version goes up before a flush lets go of what it wrote, so whoever finds nothing
in the write cache any more sees here that the window is old.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass
from itertools import pairwise

from triplicate.bookie.core.entry_log_format import BlockInfo
from triplicate.bookie.storage.index import Index

FEW_RUNS = 4
"""So many are asked for first; who goes on behind them gets more at a time."""
MANY_RUNS = 32
STEP_MAX = 16
"""A ledger whose entries are spread over more bookies than have a copy is read in such steps."""
WINDOWS_MAX = 256
"""With `MANY_RUNS` each they take about 3 MiB."""


@dataclass(slots=True)
class _Window:
    version: int
    first: int
    last: int
    """The stretch of entry ids, both included."""
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
        self._asked: OrderedDict[int, int] = OrderedDict()
        """By ledger the entry that was asked for last."""

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
        """(log, run, last) where from the entry up to `last` nothing but this run counts; None where that is not known at once."""
        window = self._window(ledger_id, entry_id, reads_on=True)
        if window is None or not window.apart:
            return None
        at = bisect_left(window.lasts, entry_id)
        if at == len(window.runs) or window.runs[at][1].first > entry_id:
            return None
        log, run = window.runs[at]
        return log, run, min(run.last, window.last)

    def _reads_on(self, ledger_id: int, entry_id: int) -> bool:
        """Whether the entry comes soon behind the one asked for before: who reads here and there has nothing of a window."""
        before = self._asked.pop(ledger_id, -STEP_MAX - 1)
        self._asked[ledger_id] = entry_id
        if len(self._asked) > WINDOWS_MAX:
            self._asked.popitem(last=False)
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
