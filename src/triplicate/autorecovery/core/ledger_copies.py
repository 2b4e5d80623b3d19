"""The copies of a ledger: which entries each bookie should store, and which of them it has.

Bookies answer with lists of entries, and, if copies are read, with copies that are right, damaged or denied. A bookie that gives no
usable answer proves nothing: its copies are neither present nor missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from triplicate.autorecovery.core.fragments import LedgerFragment, missing_runs
from triplicate.ledger import Availability, LedgerMetadata


@dataclass(frozen=True, slots=True)
class BookieAnswer:
    """The answers of one bookie about one ledger."""

    stored: Availability = field(default_factory=lambda: Availability(()))
    """The entries that it lists."""
    denied: tuple[int, ...] = ()
    """Entries that it lists, and denies when they are read."""
    bad: tuple[int, ...] = ()
    """Entries whose copy does not match its digest, or which the bookie cannot read."""
    silence: str = ""
    """Why it gave no usable answer; empty if it answered."""


@dataclass(frozen=True, slots=True)
class CopiesOnBookie:
    """The copies of one ledger on one bookie."""

    bookie_id: str
    expected: int
    """Number of entries that it should store."""
    missing: tuple[range, ...] = ()
    """Entries that it should store and does not have, ascending. Empty if it is silent."""
    bad: tuple[int, ...] = ()
    """Entries whose copy is damaged, ascending."""
    silence: str = ""

    @property
    def lacks(self) -> int:
        """Number of missing copies."""
        return sum(map(len, self.missing))

    @property
    def has(self) -> int:
        """Number of copies that are not known to be missing or damaged; 0 if the bookie is silent."""
        return 0 if self.silence else self.expected - self.lacks - len(self.bad)

    @property
    def needs_repair(self) -> bool:
        """Whether a copy is known to be missing or damaged."""
        return bool(self.missing or self.bad)


@dataclass(frozen=True, slots=True)
class LedgerCopies:
    """All copies of one ledger."""

    ledger_id: int
    last_entry_id: int
    """The last entry that was checked: the last one of a closed ledger, the last-add-confirmed of another one; -1 if there is none."""
    is_closed: bool
    bookies: tuple[CopiesOnBookie, ...]
    without_copy: tuple[range, ...]
    """Entries of which no bookie that answered has a good copy."""

    @property
    def is_complete(self) -> bool:
        """Whether every copy is known to be present and not known to be damaged."""
        return not any(one.needs_repair or (one.silence and one.expected) for one in self.bookies)


def expected_fragments(metadata: LedgerMetadata, last_entry_id: int) -> list[LedgerFragment]:
    """The entries up to `last_entry_id` that each position of each segment should store, without empty ones."""
    stops = [segment.first_entry_id for segment in metadata.segments[1:]]
    ends = [min(last_entry_id, stop - 1) for stop in stops] + [last_entry_id]
    fragments = [
        LedgerFragment(segment.first_entry_id, end, segment.ensemble, position, metadata.write_quorum)
        for segment, end in zip(metadata.segments, ends, strict=True)
        for position in range(len(segment.ensemble))
    ]
    return [fragment for fragment in fragments if fragment.count]


def damaged_fragments(metadata: LedgerMetadata, bookie_id: str, damaged: Iterable[range]) -> list[tuple[LedgerFragment, list[int]]]:
    """The fragments of a bookie that hold damaged copies, each with the ids of its damaged entries, ascending.

    Entries that the metadata do not promise on this bookie are left out.
    """
    runs = list(damaged)
    last = max((run.stop - 1 for run in runs), default=-1)
    end = metadata.last_entry_id if metadata.is_closed else max(last, metadata.last_segment.first_entry_id - 1)
    found: list[tuple[LedgerFragment, list[int]]] = []
    for fragment in expected_fragments(metadata, end):
        if fragment.bookie_id != bookie_id:
            continue
        entry_ids = {
            entry_id
            for run in runs
            for entry_id in range(max(run.start, fragment.first_entry_id), min(run.stop, fragment.last_entry_id + 1))
            if fragment.stores(entry_id)
        }
        if entry_ids:
            found.append((fragment, sorted(entry_ids)))
    return found


def copies_of(ledger_id: int, metadata: LedgerMetadata, last_entry_id: int, answers: Mapping[str, BookieAnswer]) -> LedgerCopies:
    """Compare what each bookie should store with its answer.

    Args:
        answers: one for each bookie of the metadata; a bookie without an answer counts as silent.
    """
    fragments = expected_fragments(metadata, last_entry_id)
    known = {bookie_id: answers.get(bookie_id, BookieAnswer(silence="no answer")) for bookie_id in _bookies_of(metadata)}
    found: list[CopiesOnBookie] = []
    lacking: list[range] = []
    for bookie_id, answer in known.items():
        own = [fragment for fragment in fragments if fragment.bookie_id == bookie_id]
        expected = sum(fragment.count for fragment in own)
        if answer.silence:
            found.append(CopiesOnBookie(bookie_id, expected, silence=answer.silence))
            lacking += [run for fragment in own for run in fragment.runs()]
            continue
        absent = [run for fragment in own for run in missing_runs(fragment, answer.stored)]
        absent += [range(entry_id, entry_id + 1) for entry_id in answer.denied]
        missing = tuple(covered_by(absent, 1))
        found.append(CopiesOnBookie(bookie_id, expected, missing, tuple(sorted(answer.bad))))
        lacking += [*missing, *(range(entry_id, entry_id + 1) for entry_id in answer.bad)]
    without_copy = tuple(covered_by(lacking, metadata.write_quorum))
    return LedgerCopies(ledger_id, last_entry_id, metadata.is_closed, tuple(found), without_copy)


def covered_by(runs: Iterable[range], depth: int) -> Iterator[range]:
    """The entry ids that at least `depth` of the runs contain, as maximal ranges, ascending."""
    changes: dict[int, int] = {}
    for run in runs:
        changes[run.start] = changes.get(run.start, 0) + 1
        changes[run.stop] = changes.get(run.stop, 0) - 1
    present, start = 0, 0
    for place in sorted(changes):
        before, present = present, present + changes[place]
        if before < depth <= present:
            start = place
        elif before >= depth > present:
            yield range(start, place)


def _bookies_of(metadata: LedgerMetadata) -> list[str]:
    return list(dict.fromkeys(bookie_id for segment in metadata.segments for bookie_id in segment.ensemble))
