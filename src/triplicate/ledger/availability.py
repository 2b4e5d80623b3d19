"""Which entries of a ledger a bookie holds, as the answer to "list of entries".

A 64-byte header (i32 version 0, i32 number of groups, zeros), then 24 bytes per group: first start i64, last start i64,
size i32, period i32. A group is one run of `size` entries at each of first, first + period, …, last; striping makes such
patterns. Source: BookKeeper `AvailabilityOfEntriesOfLedger`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct

from triplicate.errors import ProtocolError

_HEADER = Struct(">ii56x")
_GROUP = Struct(">qqii")
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class AvailabilityGroup:
    """Runs of `size` entries that begin at `first`, `first` + `period`, … up to `last`; `period` is 0 where there is one run."""

    first: int
    last: int
    size: int
    period: int

    @property
    def count(self) -> int:
        """Entries in the group."""
        return self.size * (1 if self.period == 0 else (self.last - self.first) // self.period + 1)

    def __contains__(self, entry_id: int) -> bool:
        if not self.first <= entry_id < self.last + self.size:
            return False
        return self.period == 0 or (entry_id - self.first) % self.period < self.size

    def run_from(self, entry_id: int) -> range | None:
        """The first run that ends behind an entry, without what is before the entry; None if there is none."""
        step = 0 if self.period == 0 else max(0, entry_id - self.first) // self.period * self.period
        start = min(self.first + step, self.last)
        if entry_id >= start + self.size and self.period:
            start += self.period
        if start > self.last or entry_id >= start + self.size:
            return None
        return range(max(entry_id, start), start + self.size)

    def runs(self) -> Iterator[range]:
        """The runs as ranges of entry ids, ascending."""
        for start in range(self.first, self.last + 1, self.period or 1):
            yield range(start, start + self.size)


class Availability:
    """The entries that a bookie says it holds, for `in`, `count` and `runs()`. Groups are not expanded, since a peer chooses their size."""

    __slots__ = ("_firsts", "groups")

    def __init__(self, groups: Iterable[AvailabilityGroup]) -> None:
        self.groups = tuple(groups)
        self._firsts = [group.first for group in self.groups]

    @property
    def count(self) -> int:
        return sum(group.count for group in self.groups)

    def __contains__(self, entry_id: int) -> bool:
        index = bisect_right(self._firsts, entry_id) - 1
        return index >= 0 and entry_id in self.groups[index]

    def run_from(self, entry_id: int) -> range | None:
        """The first run of entries from `entry_id` on that the bookie holds; None if it holds none of them. Groups are not expanded."""
        index = max(0, bisect_right(self._firsts, entry_id) - 1)
        return next((run for group in self.groups[index : index + 2] if (run := group.run_from(entry_id)) is not None), None)

    def runs(self) -> Iterator[range]:
        """All runs as ranges of entry ids, ascending."""
        for group in self.groups:
            yield from group.runs()


def encode_availability(runs: Iterable[range]) -> bytes:
    """The encoding of these entries.

    Args:
        runs: ranges of entry ids with step 1, ascending; ranges that touch or overlap are joined.
    """
    groups = list(_grouped(_joined(runs)))
    return b"".join([_HEADER.pack(0, len(groups)), *(_GROUP.pack(group.first, group.last, group.size, group.period) for group in groups)])


def decode_availability(data: bytes) -> Availability:
    """Decode a list of entries, of a peer or of `encode_availability`.

    Raises:
        ProtocolError: another version, truncated data, or impossible groups.
    """
    if len(data) < _HEADER.size:
        raise ProtocolError(f"a list of entries of {len(data)} bytes is shorter than its header of {_HEADER.size}")
    version, count = _HEADER.unpack_from(data)
    if version != 0:
        raise ProtocolError(f"a list of entries has version {version}; this release reads version 0")
    if count < 0 or len(data) != _HEADER.size + count * _GROUP.size:
        raise ProtocolError(f"a list of {count} groups of entries has {len(data)} bytes")
    groups = [AvailabilityGroup(*fields) for fields in _GROUP.iter_unpack(data[_HEADER.size :])]
    end = 0
    for group in groups:
        if group.first < end or group.size < 1 or not _is_regular(group):
            raise ProtocolError(f"a list of entries has the impossible group {group}")
        end = group.last + group.size
    return Availability(groups)


def _is_regular(group: AvailabilityGroup) -> bool:
    if group.first == group.last:
        return group.period >= 0
    return group.first < group.last and group.period >= group.size and (group.last - group.first) % group.period == 0


def _joined(runs: Iterable[range]) -> Iterator[tuple[int, int]]:
    """(start, size) of maximal runs, each at most as long as the format allows."""
    start, stop = 0, 0
    for run in runs:
        if len(run) == 0:
            continue
        if run.start > stop or stop == start:
            yield from _split(start, stop)
            start, stop = run.start, run.stop
        else:
            stop = max(stop, run.stop)
    yield from _split(start, stop)


def _split(start: int, stop: int) -> Iterator[tuple[int, int]]:
    while start < stop:
        size = min(stop - start, _INT32_MAX)
        yield start, size
        start += size


def _grouped(runs: Iterator[tuple[int, int]]) -> Iterator[AvailabilityGroup]:
    group: AvailabilityGroup | None = None
    for start, size in runs:
        if group is not None:
            step = start - group.last
            if size == group.size and step <= _INT32_MAX and group.period in (0, step):
                group = AvailabilityGroup(group.first, start, size, step)
                continue
            yield group
        group = AvailabilityGroup(start, start, size, 0)
    if group is not None:
        yield group
