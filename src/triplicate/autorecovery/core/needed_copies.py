"""Whether a ledger still needs the copies of a bookie that is being decommissioned: the verdict by lists of entries.

Every entry that the bookie lists must be listed by all bookies that the metadata names for it. Entries behind the end of a closed ledger,
and those of the last segment of an open one, do not count: the former belong to no ledger, and the writer sends the latter to the
ensemble that it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from triplicate.autorecovery.core.ledger_copies import BookieAnswer, expected_fragments
from triplicate.ledger import Availability, LedgerMetadata


@dataclass(frozen=True, slots=True)
class LackingBookie:
    """A bookie that should hold entries of a ledger, and does not list them.

    Args:
        runs: the entries that the leaving bookie lists and this one does not, ascending.
        silence: why it gave no list; empty if it gave one.
    """

    bookie_id: str
    runs: tuple[range, ...]
    silence: str = ""


def settled_end(metadata: LedgerMetadata) -> int:
    """The last entry whose bookies no writer changes any more; -1 if there is none."""
    return metadata.last_entry_id if metadata.is_closed else metadata.last_segment.first_entry_id - 1


def names_any(metadata: LedgerMetadata, bookie_ids: Iterable[str]) -> bool:
    """Whether a segment of the ledger names one of the bookies."""
    wanted = dict.fromkeys(bookie_ids)
    return any(name in wanted for segment in metadata.segments for name in segment.ensemble)


def lacking_bookies(metadata: LedgerMetadata, stored: Availability, answers: Mapping[str, BookieAnswer]) -> tuple[LackingBookie, ...]:
    """The bookies that do not hold an entry which the leaving bookie has; none if its copies are not needed.

    Args:
        metadata: of a ledger that does not name the leaving bookie.
        stored: the entries that the leaving bookie lists.
        answers: of the bookies of the metadata; a bookie without an answer counts as silent.
    """
    found: dict[str, list[range]] = {}
    silent: dict[str, str] = {}
    for fragment in expected_fragments(metadata, settled_end(metadata)):
        answer = answers.get(fragment.bookie_id, BookieAnswer(silence="no answer"))
        wanted = intersection(fragment.runs(), stored.runs())
        if answer.silence:
            silent[fragment.bookie_id] = answer.silence
        else:
            wanted = difference(wanted, answer.stored.runs())
        found.setdefault(fragment.bookie_id, []).extend(wanted)
    return tuple(
        LackingBookie(bookie_id, tuple(sorted(runs, key=lambda run: run.start)), silent.get(bookie_id, ""))
        for bookie_id, runs in found.items()
        if runs
    )


def intersection(first: Iterable[range], second: Iterable[range]) -> Iterator[range]:
    """The entries in both. Each argument has disjoint runs, ascending; so has the result."""
    others = iter(second)
    other = next(others, None)
    for run in first:
        while other is not None and other.stop <= run.start:
            other = next(others, None)
        while other is not None and other.start < run.stop:
            yield range(max(run.start, other.start), min(run.stop, other.stop))
            if other.stop > run.stop:
                break
            other = next(others, None)


def difference(first: Iterable[range], second: Iterable[range]) -> Iterator[range]:
    """The entries of the first that are not in the second. Each argument has disjoint runs, ascending; so has the result."""
    others = iter(second)
    other = next(others, None)
    for run in first:
        start = run.start
        while other is not None and other.start < run.stop:
            if start < other.start:
                yield range(start, other.start)
            start = max(start, other.stop)
            if other.stop > run.stop:
                break
            other = next(others, None)
        if start < run.stop:
            yield range(start, run.stop)
