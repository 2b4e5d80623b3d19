"""How many bytes the captured rows of a transaction take once they are encoded, bounded from both sides as they come.

A transaction has a limit, and a statement that goes beyond it must stop then, not after it has filled the memory and held the
writer. Each row adds the most that it can take, which is a few additions. Only when the limit could be reached so, the rows are encoded to
be measured, without what depends on the rows around them: that is never more than what the encoder will write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from triplicate.sql.core.column_codec import Value, encode_column
from triplicate.sql.core.records import RowRun

MOST_PER_VALUE = 12
"""Bytes that a value takes at most, its text or bytes apart: eight, a tag, and its part of what a column begins with."""
MOST_PER_CHARACTER = 4
_MEASURED_ROWS = 512
_MEASURED_BYTES = 256 * 1024
"""Near the limit at least so many rows, or bytes at most, are measured at once."""
_COLUMN_SLACK = 16
"""Bytes of an encoded column beside its values: kinds, widths, the end of a bitmap. A column cut in two has them twice."""


class ByteCount:
    """Bounds the bytes of the rows that are appended to a list of captured events.

    Args:
        runs: the row runs of the events from one index to another.
        limit: bytes that a transaction may take.
    """

    def __init__(self, runs: Callable[[int, int], Iterable[RowRun]], limit: int) -> None:
        self._runs = runs
        self.limit = limit
        self._measured: list[tuple[int, int]] = [(0, 0)]
        """Indices of events with the least bytes of all before them, since the transaction began."""
        self.most = 0
        """Bytes that the rows take at most that are not measured. Callers add to it, and look at `room`."""
        self.room = limit
        """Bytes that the rows which are not measured may take for certain."""

    @property
    def least(self) -> int:
        """Bytes that the measured rows take at least."""
        return self._measured[-1][1]

    def begin(self, index: int) -> None:
        """A transaction begins with the event of this index."""
        self._measured = [(index, 0)]
        self.most, self.room = 0, self.limit

    def exceeds(self, count: int) -> bool:
        """Whether the events up to `count` take more than the limit for certain. To be asked when `most` is beyond `room`."""
        if count - self._measured[-1][0] < _MEASURED_ROWS and self.most - self.room < _MEASURED_BYTES:
            return False
        self._measure(count)
        return self.least > self.limit

    def cut(self, count: int) -> None:
        """The events beyond `count` are forgotten. What they added to `most` stays: it is a bound still."""
        if self._measured[-1][0] <= count:
            return
        while len(self._measured) > 1 and self._measured[-1][0] > count:
            self._measured.pop()
        if self._measured[0][0] > count:
            self.begin(count)
        else:
            self._measure(count)

    def _measure(self, count: int) -> None:
        start, before = self._measured[-1]
        runs = list(self._runs(start, count))
        size = sum(_size(run, is_whole=0 < index < len(runs) - 1) for index, run in enumerate(runs))
        self._measured.append((count, before + size))
        self.most, self.room = 0, max(0, self.limit - before - size)


def _size(run: RowRun, *, is_whole: bool) -> int:
    """Bytes of a run at least.

    Args:
        is_whole: rows of other kinds come before and after it, so that it is encoded just so.
    """
    found = 0
    for column in _columns(run):
        out = bytearray()
        encode_column(out, column)
        found += len(out) if is_whole else max(0, len(out) - _COLUMN_SLACK)
    return found


def _columns(run: RowRun) -> Iterator[Sequence[Value]]:
    """What is encoded of a run."""
    if run.rowids is not None:
        yield run.rowids
    if run.new_rowids is not None:
        yield run.new_rowids
    yield from run.keys or ()
    for columns in (run.new, run.old):
        for index, column in enumerate(columns or ()):
            if index != run.table.rowid_column:
                yield column
