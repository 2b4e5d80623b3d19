"""Bounds on the encoded size of the captured rows of a transaction, from above and below, while the rows are captured.

A statement must stop as soon as its transaction exceeds the limit, before it has filled the memory and held the writer for long. Each row
adds the upper bound of its size, which costs a few additions. Only when this sum exceeds the limit are the rows encoded and measured. The
measure leaves out bytes that depend on neighbouring rows, so it is a lower bound of the size that the encoder writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from triplicate.sql.core.column_codec import encode_column
from triplicate.sql.core.records import RowRun, encoded_columns

MOST_PER_VALUE = 12
"""Upper bound on the bytes of a value without its text or blob: eight, a tag, and its part of the column's header."""
MOST_PER_CHARACTER = 4
_MEASURED_ROWS = 512
_MEASURED_BYTES = 256 * 1024
"""Near the limit, the least number of rows, or of bytes by the upper bound, that are measured at once."""
_COLUMN_SLACK = 16
"""Bytes of an encoded column beside its values: kinds, widths, the end of a bitmap. A column that is split has them twice."""


class ByteCount:
    """Bounds the bytes of the rows that are appended to a list of captured events.

    Args:
        runs: the row runs of the events from one index to another.
        limit: upper bound on the bytes of a transaction.
    """

    def __init__(self, runs: Callable[[int, int], Iterable[RowRun]], limit: int) -> None:
        self._runs = runs
        self.limit = limit
        self._measured: list[tuple[int, int]] = [(0, 0)]
        """Indices of events, each with a lower bound on the bytes before it, since the transaction began."""
        self.most = 0
        """Upper bound on the bytes of the rows that are not measured. Callers add to it and compare it with `room`."""
        self.room = limit
        """Bytes that remain for the rows that are not measured."""

    @property
    def least(self) -> int:
        """Lower bound on the bytes of the measured rows."""
        return self._measured[-1][1]

    def begin(self, index: int) -> None:
        """A transaction begins with the event of this index."""
        self._measured = [(index, 0)]
        self.most, self.room = 0, self.limit

    def exceeds(self, count: int) -> bool:
        """Whether the events up to `count` exceed the limit for certain. For use when `most` exceeds `room`."""
        if count - self._measured[-1][0] < _MEASURED_ROWS and self.most - self.room < _MEASURED_BYTES:
            return False
        self._measure(count)
        return self.least > self.limit

    def cut(self, count: int) -> None:
        """The events beyond `count` are dropped. `most` keeps their bytes and remains an upper bound."""
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
    """Lower bound on the bytes of a run.

    Args:
        is_whole: rows of other kinds precede and follow it, so that it is encoded as it is.
    """
    found = 0
    for column in encoded_columns(run):
        out = bytearray()
        encode_column(out, column)
        found += len(out) if is_whole else max(0, len(out) - _COLUMN_SLACK)
    return found
