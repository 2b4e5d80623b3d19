"""The parts of a ledger that lack copies, and the metadata after the copies are made.

A fragment is the share of one position of a segment's ensemble. Where the ensemble is larger than the write quorum, entries are
striped and a position stores only some of them. A fragment without entries needs no copies, but its bookie is replaced in the
metadata all the same, so that no ledger names a bookie that is gone.

The last segment of a ledger that is not closed is no fragment: its end is unknown and its ensemble belongs to the writer.

Source: BookKeeper `LedgerFragment`, `LedgerFragmentReplicator`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from triplicate.ledger import Availability, EnsembleSegment, LedgerMetadata, write_set


@dataclass(frozen=True, slots=True)
class LedgerFragment:
    """The entries that the bookie at one position of one segment's ensemble stores.

    Args:
        first_entry_id: where the segment begins.
        last_entry_id: its last entry; `first_entry_id` - 1 if the segment has none.
        ensemble: the bookies of the segment, by position.
        position: the position that lacks copies.
        write_quorum: copies of each entry.
    """

    first_entry_id: int
    last_entry_id: int
    ensemble: tuple[str, ...]
    position: int
    write_quorum: int

    @property
    def bookie_id(self) -> str:
        """The bookie that should store the entries."""
        return self.ensemble[self.position]

    @property
    def count(self) -> int:
        """Number of entries that the position stores."""
        return self._stored_below(self.last_entry_id + 1) - self._stored_below(self.first_entry_id)

    def runs(self) -> Iterator[range]:
        """The entries that the position stores, as ranges of entry ids, ascending."""
        end, size = self.last_entry_id + 1, len(self.ensemble)
        if size == self.write_quorum:
            if self.first_entry_id < end:
                yield range(self.first_entry_id, end)
            return
        # Entry e is at the positions e mod E to e mod E + Qw - 1, so position p stores the runs of Qw entries that end at p modulo E.
        last = self.position + -(-(self.first_entry_id - self.position) // size) * size
        while last - self.write_quorum + 1 < end:
            run = range(max(self.first_entry_id, last - self.write_quorum + 1), min(end, last + 1))
            if run:
                yield run
            last += size

    def ends(self) -> tuple[int, ...]:
        """The first and the last entry that the position stores; one if they are the same, none if it stores none."""
        first, last = next((run.start for run in self.runs()), None), self.last_stored
        if first is None or last is None:
            return ()
        return (first,) if first == last else (first, last)

    @property
    def last_stored(self) -> int | None:
        """The last entry that the position stores, or None."""
        return next((entry_id for entry_id in range(self.last_entry_id, self.first_entry_id - 1, -1) if self.stores(entry_id)), None)

    def stores(self, entry_id: int) -> bool:
        """Whether the position stores an entry of the segment."""
        return self.position in write_set(entry_id, len(self.ensemble), self.write_quorum)

    def sources(self, entry_id: int) -> tuple[str, ...]:
        """The other bookies that store an entry, in the order in which they are read."""
        positions = write_set(entry_id, len(self.ensemble), self.write_quorum)
        return tuple(self.ensemble[position] for position in positions if position != self.position)

    def _stored_below(self, end: int) -> int:
        """How many entries from 0 to `end` - 1 the position stores."""
        size = len(self.ensemble)
        whole, rest = divmod(end, size)
        return whole * self.write_quorum + sum((self.position - entry_id) % size < self.write_quorum for entry_id in range(rest))


def lacking_fragments(metadata: LedgerMetadata, lost: Collection[str], *, has_writer: bool = True) -> list[LedgerFragment]:
    """The fragments whose bookie is lost, in the order of their entries.

    Args:
        lost: bookies whose copies are gone, or are to be replaced.
        has_writer: whether a ledger that is not closed may have entries; False for one whose creator promised not to write it.
    """
    return [
        LedgerFragment(segment.first_entry_id, last_entry_id, segment.ensemble, position, metadata.write_quorum)
        for segment, last_entry_id in bounded_segments(metadata, has_writer=has_writer)
        for position, bookie_id in enumerate(segment.ensemble)
        if bookie_id in lost
    ]


def ended_fragments(metadata: LedgerMetadata) -> list[LedgerFragment]:
    """The fragments of all segments whose end is fixed, without empty ones."""
    bookies = [bookie_id for segment in metadata.segments for bookie_id in segment.ensemble]
    return [fragment for fragment in lacking_fragments(metadata, dict.fromkeys(bookies)) if fragment.count]


def awaits_recovery(metadata: LedgerMetadata, lost: Collection[str]) -> bool:
    """Whether a lost bookie is in the last segment of a ledger that is not closed. Only recovery can end that segment."""
    return not metadata.is_closed and any(bookie_id in lost for bookie_id in metadata.last_segment.ensemble)


def missing_runs(fragment: LedgerFragment, stored: Availability) -> Iterator[range]:
    """The entries of a fragment that a bookie does not list, as ranges, ascending."""
    for run in fragment.runs():
        position = run.start
        while position < run.stop:
            present = stored.run_from(position)
            gap = range(position, run.stop if present is None else min(run.stop, present.start))
            if gap:
                yield gap
            position = run.stop if present is None else present.stop


def with_copies_moved(
    metadata: LedgerMetadata, moves: Sequence[tuple[LedgerFragment, str]], *, has_writer: bool = True
) -> LedgerMetadata | None:
    """The metadata in which other bookies store fragments of one segment in place of theirs.

    Args:
        moves: fragments of one segment, at least one, each with its new bookie. A bookie may go from one of the positions to another.

    Returns:
        None if a writer or another worker changed the segment, also at another position: the new bookies were chosen for the places of
        the others. None also if a bookie would be in the segment's ensemble twice, or replace itself.
    """
    first_entry_id = moves[0][0].first_entry_id
    for index, (segment, last_entry_id) in enumerate(_segments_with_ends(metadata)):
        if segment.first_entry_id != first_entry_id:
            continue
        is_last = index == len(metadata.segments) - 1
        end_is_fixed = metadata.is_closed or not is_last or not has_writer
        is_same = all(
            last_entry_id == fragment.last_entry_id and segment.ensemble == fragment.ensemble and fragment.bookie_id != target
            for fragment, target in moves
        )
        ensemble = list(segment.ensemble)
        for fragment, target in moves:
            ensemble[fragment.position] = target
        if not end_is_fixed or not is_same or len(set(ensemble)) < len(ensemble):
            return None
        changed = replace(segment, ensemble=tuple(ensemble))
        return replace(metadata, segments=(*metadata.segments[:index], changed, *metadata.segments[index + 1 :]))
    return None


def bounded_segments(metadata: LedgerMetadata, *, has_writer: bool = True) -> list[tuple[EnsembleSegment, int]]:
    """The segments whose end is fixed, each with its last entry."""
    segments = _segments_with_ends(metadata)
    return segments if metadata.is_closed or not has_writer else segments[:-1]


def _segments_with_ends(metadata: LedgerMetadata) -> list[tuple[EnsembleSegment, int]]:
    """Each segment with its last entry: the entry before its first if it has none. The last segment of an open ledger has none."""
    following = [segment.first_entry_id - 1 for segment in metadata.segments[1:]]
    end = metadata.last_entry_id if metadata.is_closed else metadata.last_segment.first_entry_id - 1
    return [
        (segment, max(segment.first_entry_id - 1, min(last, end) if metadata.is_closed else last))
        for segment, last in zip(metadata.segments, [*following, end], strict=True)
    ]
