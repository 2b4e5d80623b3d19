"""The repair workload's knowledge of copies and domains: entries without a copy, racks of ensembles, limbo, raised segments of logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from triplicate.ledger import LedgerMetadata, LedgerState, parse_location, write_sets
from triplicate.metadata.incarnations import decode_incarnation
from triplicate_simulator.checkers.domain_rules import CopiesCounted, EnsembleChosen, LimboEnded, SegmentRaised
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.ledger.ledger_model import holders
from triplicate_simulator.workloads.repair.held_entries import entries_at, fixed_segments, held_entries
from triplicate_simulator.workloads.repair.repair_load import DOMAINS_LEAST, MACHINES, RACKS, RepairLoad

INCARNATION = re.compile(r"/triplicate/[^/]+/incarnations/(bookie-\d+)")
RAISED = "rewritten"
"""The custom metadata of a ledger that is to replace a segment of a log."""
REGISTERED_S = 2.0
"""A bookie that has served for this long is registered, and clients that follow the registrations know its location."""


class DomainModel:
    """See the module. Every version of every ledger's metadata is passed to it, and every loss.

    Args:
        metadata: the newest version of each ledger's metadata; the caller keeps it.
        acknowledged_to: gives the last acknowledged entry of a ledger, as far as its writer knows.
    """

    def __init__(
        self, context: RunContext, load: RepairLoad, metadata: Mapping[int, LedgerMetadata], acknowledged_to: Callable[[int], int]
    ) -> None:
        self._context = context
        self._load = load
        self._metadata = metadata
        self._acknowledged_to = acknowledged_to
        self._refilled: dict[str, None] = {}
        """Bookies with replaced disks whose limbo has ended."""
        self._named: dict[str, dict[tuple[int, int], None]] = {}
        """Segments, by ledger and first entry, that named a bookie when its disks were replaced."""

    # Bookies with replaced disks.

    def in_limbo(self) -> list[str]:
        """Bookies whose disks were replaced, and which are not filled again."""
        return [name for name, node in self._context.cluster.bookies.items() if node.wiped and not node.lost and name not in self._refilled]

    def observe_path(self, path: str) -> None:
        """Note the begin and the end of a bookie's limbo."""
        found, store = INCARNATION.fullmatch(path), self._context.cluster.store
        if found is None or store.exists(path) is None:
            return
        name = found[1]
        if not decode_incarnation(store.get(path)[0]).visited:
            self._refilled.pop(name, None)
        elif name not in self._refilled and self._context.cluster.bookies[name].wiped:
            self._refilled[name] = None
            lacking = tuple(
                (ledger_id, number)
                for ledger_id, metadata in self._metadata.items()
                if (number := self._lacking(name, ledger_id, metadata))
            )
            self._context.history.add(LimboEnded(self._context.time(), name, lacking))

    def _lacking(self, bookie_id: str, ledger_id: int, metadata: LedgerMetadata) -> int:
        """Number of entries of a closed ledger that a bookie lacks, of the segments that named it when its disks were replaced."""
        held = held_entries(self._context.cluster.bookies[bookie_id], ledger_id)
        if held is None or not metadata.is_closed:
            return 0
        number = 0
        for segment, last_entry_id in fixed_segments(metadata):
            if (ledger_id, segment.first_entry_id) in self._named.get(bookie_id, {}) and bookie_id in segment.ensemble:
                wanted = entries_at(segment, last_entry_id, segment.ensemble.index(bookie_id), metadata.write_quorum)
                number += sum(entry_id not in held for entry_id in wanted)
        return number

    # Copies of acknowledged entries.

    def count_all_copies(self) -> None:
        """Look for acknowledged entries without a copy after a loss."""
        for name, node in self._context.cluster.bookies.items():
            if node.wiped and name not in self._named:
                self._named[name] = {
                    (ledger_id, segment.first_entry_id): None
                    for ledger_id, metadata in self._metadata.items()
                    for segment in metadata.segments
                    if name in segment.ensemble
                }
        for ledger_id in self._metadata:
            self.count_copies(ledger_id)

    def count_copies(self, ledger_id: int) -> None:
        """Look for acknowledged entries of a ledger without a copy on a bookie that the metadata name."""
        metadata = self._metadata[ledger_id]
        last = metadata.last_entry_id if metadata.is_closed else self._acknowledged_to(ledger_id)
        copies = {name: self._may_hold(name, ledger_id) for segment in metadata.segments for name in segment.ensemble}
        without = tuple(entry_id for entry_id in range(last + 1) if not self._has_copy(copies, holders(metadata, entry_id), entry_id))
        self._context.history.add(CopiesCounted(self._context.time(), ledger_id, last + 1, without))

    def _may_hold(self, bookie_id: str, ledger_id: int) -> set[int] | None:
        """The entries that a bookie holds; None if it is down, or its disks rot, and may hold any."""
        node = self._context.cluster.bookies[bookie_id]
        if bookie_id in self._context.lost_for_good_s or node.intact_from_s == float("inf"):
            return set()
        return None if node.rotten else held_entries(node, ledger_id)

    @staticmethod
    def _has_copy(copies: dict[str, set[int] | None], names: list[str], entry_id: int) -> bool:
        return any((held := copies[name]) is None or entry_id in held for name in names)

    # Placement.

    def note_ensembles(self, ledger_id: int, before: LedgerMetadata | None, present: LedgerMetadata) -> None:
        """Record the ensembles that a version of the metadata has and the one before has not, where all of their bookies run."""
        known = {} if before is None else {segment.first_entry_id: segment.ensemble for segment in before.segments}
        for segment in present.segments:
            if known.get(segment.first_entry_id) == segment.ensemble:
                continue
            if any(not self._is_registered(name) for name in segment.ensemble):
                continue
            racks, regions = domains_of(segment.ensemble, present.write_quorum)
            wanted = min(DOMAINS_LEAST, present.write_quorum) if self._load.enforced else 1
            self._context.history.add(EnsembleChosen(self._context.time(), ledger_id, segment.ensemble, racks, regions, wanted))

    def _is_registered(self, bookie_id: str) -> bool:
        node = self._context.cluster.bookies[bookie_id]
        return node.serves and self._context.time() - node.serves_since_s > REGISTERED_S

    # Logs.

    def note_raised(self, ledger_id: int, before: LedgerMetadata, present: LedgerMetadata) -> None:
        """Record what bookies hold of a ledger with raised copies when its writer closes it."""
        if RAISED not in present.custom or before.state is not LedgerState.OPEN or not present.is_closed:
            return
        limbo = self.in_limbo()
        self._context.history.add(
            SegmentRaised(self._context.time(), ledger_id, tuple(self._missing(ledger_id, present, passed_over=limbo)))
        )

    def _missing(self, ledger_id: int, metadata: LedgerMetadata, passed_over: list[str]) -> Iterator[tuple[str, int]]:
        for segment, last_entry_id in fixed_segments(metadata):
            for position, name in enumerate(segment.ensemble):
                held = held_entries(self._context.cluster.bookies[name], ledger_id)
                if held is None or name in passed_over:
                    continue
                for entry_id in entries_at(segment, last_entry_id, position, metadata.write_quorum):
                    if entry_id not in held:
                        yield name, entry_id


def domains_of(ensemble: tuple[str, ...], write_quorum: int) -> tuple[int, int]:
    """The least number of racks, and of regions, of the write sets of an ensemble."""
    locations = [parse_location(RACKS[MACHINES[name]]) for name in ensemble]
    sets = [[locations[position] for position in positions] for positions in write_sets(len(ensemble), write_quorum)]
    return min(len(set(members)) for members in sets), min(len({one.region for one in members}) for members in sets)
