"""The outcome of a repair, the bookies as it sees them, and the objects that the repairs of one worker share."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from triplicate.autorecovery.copy_pace import CopyPace
from triplicate.autorecovery.core.open_refill import OpenRefills
from triplicate.autorecovery.core.writer_presence import FirstViews
from triplicate.autorecovery.recovery_metrics import RecoveryMetrics
from triplicate.client import BookieCopies, Client
from triplicate.config import AutorecoverySettings
from triplicate.ledger import LedgerMetadata
from triplicate.metadata import BookieServiceInfo, Versioned

HasLivingWriter = Callable[[LedgerMetadata], Awaitable[bool]]
"""Whether the writer of an open ledger is known to live, by something other than the ledger itself. Such a writer numbers its
entries itself, in the order in which it creates them."""


async def no_known_writers(metadata: LedgerMetadata) -> bool:
    """A `HasLivingWriter` for clusters in which nothing but the ledgers shows their writers."""
    return False


class RepairOutcome(enum.Enum):
    """The end of one repair of a ledger."""

    REPAIRED = "repaired"
    """Every fragment has its copies, and the mark is deleted."""
    MARKED_AGAIN = "marked again"
    """Every fragment has its copies, and the ledger was marked again during the repair."""
    NOT_MARKED = "not marked"
    """The ledger has no mark."""
    LOCKED = "locked"
    """Another worker has locked the ledger."""
    GRACE_PERIOD = "grace period"
    """A lost bookie is in the last segment of an open ledger whose grace period is not over."""
    HAS_WRITER = "has a writer"
    """A lost bookie is in the last segment of an open ledger whose writer lives, and replaces it if another one can be chosen."""
    REFILLED = "refilled"
    """A bookie in limbo has got every entry back that it may have lost of an open ledger whose writer lives. The ledger stays marked."""
    FAILED = "failed"
    """Something could not be repaired; the reason names it. The ledger stays marked."""


@dataclass(frozen=True, slots=True)
class RepairResult:
    """An outcome and, unless all is well, the reason."""

    outcome: RepairOutcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CopiesMade:
    """Copies that a repair has stored and verified.

    Args:
        target: the bookie that has got them.
        replaced: the bookie whose place it takes in the metadata; the same one if it got back what it lacked.
        first_entry_id, last_entry_id: the segment.
        size_bytes: with headers.
    """

    target: str
    replaced: str
    first_entry_id: int
    last_entry_id: int
    entries: int
    size_bytes: int


@dataclass(slots=True)
class RepairCounts:
    """The copies of one repair so far.

    Attributes:
        entries, size_bytes: the entries copied so far, and their bytes with headers.
        expected_entries: how many it will have copied, as far as it knows; None before it knows anything.
        made: the copies that were stored and verified, in this order.
    """

    entries: int = 0
    size_bytes: int = 0
    expected_entries: int | None = None
    made: list[CopiesMade] = field(default_factory=list)
    _begun: tuple[int, int] = (0, 0)

    def expect(self, entries: int) -> None:
        """This number of entries is left, as the metadata show."""
        if entries:
            self.expected_entries = self.entries + entries

    def begin(self, entries: int) -> None:
        """A job with this number of entries begins. One job runs at a time."""
        self._begun = (self.entries, self.size_bytes)
        self.expected_entries = max(self.expected_entries or 0, self.entries + entries)

    def finish(self, target: str, replaced: str, first_entry_id: int, last_entry_id: int) -> None:
        """The job has stored and verified its copies."""
        entries, size_bytes = self.entries - self._begun[0], self.size_bytes - self._begun[1]
        if entries:
            self.made.append(CopiesMade(target, replaced, first_entry_id, last_entry_id, entries, size_bytes))


@dataclass(frozen=True, slots=True)
class BookieStates:
    """The bookies of a cluster as one repair sees them.

    Args:
        writable: registered bookies that accept entries, with their registrations, sorted.
        readonly: other registered bookies, which only serve reads.
        leaving: bookies that are to be replaced although they may be registered.
        unreadable: registered bookies whose registration cannot be decoded, with the reason. Nothing is known about their copies.
        in_limbo: registered bookies whose disks were replaced, and which may have lost entries and a fence of this ledger.
    """

    writable: Mapping[str, BookieServiceInfo]
    readonly: tuple[str, ...]
    leaving: frozenset[str]
    unreadable: Mapping[str, str]
    in_limbo: tuple[str, ...] = ()

    def is_lost(self, bookie_id: str) -> bool:
        """Whether the copies of a bookie are to be made on others."""
        if bookie_id in self.leaving:
            return True
        return not (bookie_id in self.writable or bookie_id in self.readonly or bookie_id in self.unreadable)

    def is_unknown(self, bookie_id: str) -> bool:
        """Whether the bookie runs, and its copies can neither be checked nor replaced."""
        return bookie_id in self.unreadable and bookie_id not in self.leaving

    def shows_entries(self, bookie_id: str) -> bool:
        """Whether the last entry on a bookie says something of a ledger's writer: also on one that is leaving."""
        return (bookie_id in self.writable or bookie_id in self.readonly) and bookie_id not in self.in_limbo


class RepairedLedgers(Protocol):
    """The metadata that a repair reads and changes: `LedgerStore`, or `TrashedLedgerStore`."""

    async def get(self, ledger_id: int) -> Versioned:
        """Raises NoSuchLedger, FormatError, MetadataError."""

    async def update(self, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned:
        """Raises BadVersion: others have changed it since `version`. As `get`."""

    async def refresh(self) -> None:
        """Wait until reads see every earlier change."""


@dataclass(frozen=True, slots=True)
class RepairTools:
    """The objects that the repairs of one worker share.

    Args:
        leaving: bookies that are to be replaced although they may be registered, in addition to those that are being decommissioned.
        has_living_writer: a ledger for which this is true is not fenced.
        views: the first view of each open ledger whose grace period runs.
        copied: called with the bytes of entries that were copied.
        open_refills: of a refill, which also copies the entries of open ledgers back; None for other repairs.
        moves_misplaced: whether every repair also moves copies that break the rules of placement, and not only that of a mark without
            bookies.
    """

    client: Client
    copies: BookieCopies
    settings: AutorecoverySettings
    pace: CopyPace
    metrics: RecoveryMetrics
    leaving: frozenset[str]
    has_living_writer: HasLivingWriter
    views: FirstViews
    copied: Callable[[int], None]
    open_refills: OpenRefills | None = None
    moves_misplaced: bool = False
