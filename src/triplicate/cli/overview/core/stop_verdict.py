"""Whether bookies can be stopped now: which ledgers would be without a copy, and which without an ack quorum.

A closed ledger only needs a copy of each entry. A ledger that is not closed needs more: its writer needs an ack quorum of each write set,
and as many fault domains as its settings say, and its recovery needs answers that leave no ack quorum unknown.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from triplicate.ledger import BookieSite, LedgerMetadata, PlacementPolicy, PlacementRules, is_covered, is_endangered, write_sets


class Harm(enum.StrEnum):
    """The effect of a stop on a ledger, the gravest first."""

    NO_COPY = "no copy of some entries"
    NO_ACK_QUORUM = "no ack quorum"
    TOO_FEW_DOMAINS = "too few fault domains to acknowledge"
    NO_RECOVERY = "cannot be recovered"
    UNKNOWN = "unknown: its metadata cannot be decoded"


@dataclass(frozen=True, slots=True)
class AvailableCopies:
    """Where the copies of a cluster are not available, before the stop."""

    present: frozenset[str]
    """Bookies that are registered and answer."""
    marked: Mapping[int, Collection[str]] = field(default_factory=dict)
    """Bookies that lack copies, by under-replicated ledger."""
    unsure_below: Mapping[str, int] = field(default_factory=dict)
    """Bookies with replaced disks: ledgers with smaller ids may lack copies on them."""

    def has_copies(self, ledger_id: int, bookie_id: str) -> bool:
        """Whether the bookie counts as a holder of its copies of the ledger."""
        is_sure = ledger_id >= self.unsure_below.get(bookie_id, 0)
        return bookie_id in self.present and is_sure and bookie_id not in self.marked.get(ledger_id, ())


@dataclass(frozen=True, slots=True)
class HarmedLedger:
    """A ledger that the stop would harm."""

    ledger_id: int
    harm: Harm
    is_open: bool = False
    first_entry_id: int = 0
    """Where the segment begins that is harmed."""
    left: tuple[str, ...] = ()
    """The bookies of the segment that would still have copies."""


@dataclass(frozen=True, slots=True)
class StopVerdict:
    """The effect of stopping bookies at this moment."""

    bookies: tuple[str, ...]
    checked: int
    """Ledgers of the cluster."""
    concerned: int
    """Ledgers that name one of the bookies."""
    harmed: tuple[HarmedLedger, ...]
    single: int
    """Closed ledgers that would have one copy of some entries."""
    largest_open: int
    """Bookies in the largest ensemble of a ledger that is not closed; 0 if all are closed."""

    @property
    def is_safe(self) -> bool:
        return not self.harmed


class StopCheck:
    """Judges ledgers one by one.

    Args:
        stopping: the bookies to be stopped together.
        policy: of the writers, by their client settings. sites: of the bookies.
    """

    def __init__(
        self,
        stopping: Sequence[str],
        copies: AvailableCopies,
        policy: PlacementPolicy = PlacementPolicy(),  # noqa: B008
        sites: Mapping[str, BookieSite] | None = None,
    ) -> None:
        self._stopping = tuple(stopping)
        self._copies = copies
        self._policy = policy
        self._sites = sites or {}
        self._checked = 0
        self._concerned = 0
        self._harmed: list[HarmedLedger] = []
        self._single = 0
        self._largest_open = 0

    def add(self, ledger_id: int, metadata: LedgerMetadata | None) -> None:
        """Judge one ledger; `metadata` is None if it cannot be decoded."""
        self._checked += 1
        if metadata is None:
            self._harmed.append(HarmedLedger(ledger_id, Harm.UNKNOWN))
            return
        if not metadata.is_closed:
            self._largest_open = max(self._largest_open, metadata.ensemble_size)
        if not any(name in self._stopping for segment in metadata.segments for name in segment.ensemble):
            return
        self._concerned += 1
        harmed = self._without_copy(ledger_id, metadata) or self._without_quorum(ledger_id, metadata)
        if harmed is not None:
            self._harmed.append(harmed)
        elif metadata.is_closed and any(len(left) == 1 for one in _write_sets_of(metadata) if (left := self._left(ledger_id, one.bookies))):
            self._single += 1

    def verdict(self) -> StopVerdict:
        return StopVerdict(self._stopping, self._checked, self._concerned, tuple(self._harmed), self._single, self._largest_open)

    def _left(self, ledger_id: int, bookies: Sequence[str]) -> tuple[str, ...]:
        """Those of the bookies that would have copies after the stop."""
        return tuple(name for name in bookies if name not in self._stopping and self._copies.has_copies(ledger_id, name))

    def _without_copy(self, ledger_id: int, metadata: LedgerMetadata) -> HarmedLedger | None:
        for one in _write_sets_of(metadata):
            if any(name in self._stopping for name in one.bookies) and not self._left(ledger_id, one.bookies):
                left = self._left(ledger_id, metadata.ensemble_of(one.first_entry_id))
                return HarmedLedger(ledger_id, Harm.NO_COPY, not metadata.is_closed, one.first_entry_id, left)
        return None

    def _without_quorum(self, ledger_id: int, metadata: LedgerMetadata) -> HarmedLedger | None:
        last = metadata.last_segment
        if metadata.is_closed or not any(name in self._stopping for name in last.ensemble):
            return None
        left = self._left(ledger_id, last.ensemble)
        away = [position for position, name in enumerate(last.ensemble) if name not in left]
        sizes = (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        if is_endangered(away, *sizes):
            return HarmedLedger(ledger_id, Harm.NO_ACK_QUORUM, True, last.first_entry_id, left)
        domains = PlacementRules(metadata.write_quorum, self._sites, self._policy).ack_domains(last.ensemble)
        if domains is not None and domains.is_endangered(away, metadata.write_quorum):
            return HarmedLedger(ledger_id, Harm.TOO_FEW_DOMAINS, True, last.first_entry_id, left)
        if not is_covered(away, *sizes):
            return HarmedLedger(ledger_id, Harm.NO_RECOVERY, True, last.first_entry_id, left)
        return None


@dataclass(frozen=True, slots=True)
class WriteSetBookies:
    """The bookies of some entries of one segment."""

    first_entry_id: int
    """Where the segment begins."""
    bookies: tuple[str, ...]


def _write_sets_of(metadata: LedgerMetadata) -> Iterator[WriteSetBookies]:
    """Every write set that stores entries. The last segment of a ledger that is not closed may have any."""
    size = metadata.ensemble_size
    sets = write_sets(size, metadata.write_quorum)
    stops = [segment.first_entry_id for segment in metadata.segments[1:]]
    for segment, stop in zip(metadata.segments, [*stops, None], strict=True):
        first = segment.first_entry_id
        if metadata.is_closed:
            stop = min(metadata.last_entry_id + 1, stop if stop is not None else metadata.last_entry_id + 1)
        # Write sets repeat after `size` entries.
        for entry_id in range(first, first + size if stop is None else min(stop, first + size)):
            yield WriteSetBookies(first, tuple(segment.ensemble[position] for position in sets[entry_id % size]))
