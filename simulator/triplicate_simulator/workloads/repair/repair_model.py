"""The model of the repair workload: that of ledgers, with what each bookie held when the metadata named it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from triplicate.autorecovery import HasLivingWriter
from triplicate.autorecovery.repair_tools import no_known_writers
from triplicate.client import Client
from triplicate.ledger import LedgerMetadata, decode_metadata
from triplicate.log import has_living_writer, raise_all_copies
from triplicate_simulator.checkers.repair_rules import BookieDecommissioned, CopiesNamed, MarkDeleted, StoredInRacks
from triplicate_simulator.cluster.run_context import RunContext
from triplicate_simulator.workloads.ledger.ledger_model import KnownLedger, LedgerModel, holders, ledger_of
from triplicate_simulator.workloads.log.log_model import WRITTEN, LogModel
from triplicate_simulator.workloads.repair.domain_model import DomainModel
from triplicate_simulator.workloads.repair.held_entries import entries_at, fixed_segments, held_entries
from triplicate_simulator.workloads.repair.repair_load import MACHINES, RACKS, RepairLoad
from triplicate_simulator.workloads.repair.repair_log import log_load

MARK = re.compile(r"/ledgers/underreplication/ledgers/.*/urL(\d+)")
LOCK = re.compile(r"/ledgers/underreplication/locks/urL(\d+)")
COOKIE = re.compile(r"/ledgers/cookies/(bookie-\d+)")
REPLICA = re.compile(rb'replica: "([^"]+)"')
SEEN_AFTER_S = 11.0
"""Every client has seen by then that a bookie is gone: its session ends after 5 s at most, and servers of the metadata lag by 5 s."""


@dataclass(frozen=True)
class LockedLedger:
    """A marked ledger as it was when a worker locked it."""

    time_s: float
    metadata: LedgerMetadata


class RepairModel(LedgerModel):
    """All ledgers of a run, with their present metadata."""

    def __init__(self, context: RunContext, load: RepairLoad) -> None:
        super().__init__(context, load)
        self.load: RepairLoad = load
        self.metadata: dict[int, LedgerMetadata] = {}
        """The newest version of each ledger's metadata."""
        self._written_s: dict[int, float] = {}
        """When the newest version of each ledger's metadata was written."""
        self._marks: dict[int, tuple[str, ...]] = {}
        """The bookies that each mark names."""
        self._locked: dict[int, LockedLedger] = {}
        self.domains = DomainModel(context, load, self.metadata, self.acknowledged_to)
        self.log = LogModel(context, log_load(load)) if load.log_writers else None
        """The model of the log, if there is one."""
        self._of_logs: dict[int, None] = {}
        """Ledgers of logs."""
        self.healed = False
        """Whether everything was repaired, so that workers may end."""
        context.bears_loss = self.bears_loss
        context.companion_of = self.companion_of
        context.note_loss = self.domains.count_all_copies
        context.may_replace = self.may_replace

    def note_acknowledged(self, ledger: KnownLedger, entry_id: int, confirmed_carried: int) -> None:
        """Record in which racks an acknowledged entry is. A bookie that is down may have it."""
        super().note_acknowledged(ledger, entry_id, confirmed_carried)
        metadata = self.metadata.get(ledger.ledger_id)
        if self.load.ack_racks > 1 and metadata is not None:
            held = {name: held_entries(self.context.cluster.bookies[name], ledger.ledger_id) for name in holders(metadata, entry_id)}
            racks = {RACKS[MACHINES[name]]: None for name, entries in held.items() if entries is None or entry_id in entries}
            needed = min(self.load.ack_racks, metadata.write_quorum)
            self.context.history.add(StoredInRacks(self.context.time(), ledger.ledger_id, entry_id, tuple(racks), needed))

    def is_whole(self) -> bool:
        """Whether no ledger names a bookie that is gone for good, and no bookie waits for its refill."""
        if self.domains.in_limbo():
            return False
        gone = self.context.lost_bookies
        segments = (segment for metadata in self.metadata.values() for segment in metadata.segments)
        return not any(bookie_id in gone for segment in segments for bookie_id in segment.ensemble)

    def bears_loss(self) -> bool:
        """Whether one more loss leaves a copy of everything acknowledged: all is whole, and no rotten disk is in use."""
        return self.is_whole() and all(name in self.context.lost_bookies for name in self.context.rotten_bookies)

    def may_replace(self, bookie_id: str) -> bool:
        """Whether a bookie stays, so that its disks may be replaced."""
        node = self.context.cluster.bookies[bookie_id]
        return bookie_id != self.load.decommission and not node.lost and not node.rotten and not node.wiped

    def living_writers(self, client: Client) -> HasLivingWriter:
        """The knowledge of auto-recovery about writers besides their ledgers: those of logs have a session."""
        if self.log is None:
            return no_known_writers
        return partial(has_living_writer, self.log.logs(client))

    async def raise_copies(self, client: Client) -> None:
        """Raise the copies of the log's segments, as auditors do in their rounds."""
        if self.log is not None:
            await raise_all_copies(self.log.logs(client))

    async def reduced_segments(self, client: Client) -> list[int]:
        """Ledgers of closed segments that are listed with fewer copies than the log asks for."""
        if self.log is None:
            return []
        return [segment.ledger_id for run in await self.log.logs(client).rewritable(WRITTEN, merge=False) for segment in run]

    def is_of_log(self, ledger_id: int) -> bool:
        return ledger_id in self._of_logs

    def acknowledged_to(self, ledger_id: int) -> int:
        """The last acknowledged entry of a ledger, as far as writers of ledgers know; -1 if none."""
        return max((ledger.acknowledged_to for ledger in self.ledgers if ledger.ledger_id == ledger_id), default=-1)

    def companion_of(self, bookie_id: str) -> str | None:
        """The living bookie that is named beside another in the most segments."""
        shared: dict[str, int] = {}
        for metadata in self.metadata.values():
            for segment in metadata.segments:
                for other in segment.ensemble if bookie_id in segment.ensemble else ():
                    if other != bookie_id and self.context.cluster.bookies[other].alive:
                        shared[other] = shared.get(other, 0) + 1
        return max(shared, key=lambda name: shared[name], default=None)

    def _observe(self, paths: Sequence[str]) -> None:
        super()._observe(paths)
        for path in paths:
            self._observe_mark(path)
            self._observe_lock(path)
            self._observe_cookie(path)
            self.domains.observe_path(path)
        store = self.context.cluster.store
        for path in paths:
            ledger_id = ledger_of(path)
            if ledger_id is None:
                continue
            before = self.metadata.pop(ledger_id, None)
            if store.exists(path) is None:
                continue
            self._written_s[ledger_id] = self.context.time()
            present = self.metadata[ledger_id] = decode_metadata(store.get(path)[0])
            if present.custom.get("component") == b"log":
                self._of_logs[ledger_id] = None
            self.domains.note_ensembles(ledger_id, before, present)
            if before is not None:
                self._note_named(ledger_id, before, present)
                self.domains.note_raised(ledger_id, before, present)
                if before.segments != present.segments:
                    self.domains.count_copies(ledger_id)

    def _observe_lock(self, path: str) -> None:
        found, store = LOCK.fullmatch(path), self.context.cluster.store
        if found is not None and store.exists(path) is not None and int(found[1]) in self.metadata:
            self._locked[int(found[1])] = LockedLedger(self.context.time(), self.metadata[int(found[1])])

    def _observe_mark(self, path: str) -> None:
        found, store = MARK.fullmatch(path), self.context.cluster.store
        if found is None:
            return
        ledger_id = int(found[1])
        if store.exists(path) is not None:
            self._marks[ledger_id] = tuple(name.decode() for name in REPLICA.findall(store.get(path)[0]))
            return
        marked, locked, present = self._marks.pop(ledger_id, ()), self._locked.get(ledger_id), self.metadata.get(ledger_id)
        if locked is not None and present is not None:
            lacking = tuple(name for name in marked if self._lacks(name, ledger_id, locked, present))
            self.context.history.add(MarkDeleted(self.context.time(), ledger_id, lacking))

    def _observe_cookie(self, path: str) -> None:
        found, store = COOKIE.fullmatch(path), self.context.cluster.store
        if found is None or store.exists(path) is not None:
            return
        name, now = found[1], self.context.time()
        named_by = [
            ledger_id
            for ledger_id, metadata in self.metadata.items()
            if self._written_s[ledger_id] + SEEN_AFTER_S < now and any(name in segment.ensemble for segment in metadata.segments)
        ]
        alone = [(ledger_id, entry_id) for ledger_id in self.metadata for entry_id in self._held_alone(name, ledger_id)]
        self.context.history.add(BookieDecommissioned(now, name, tuple(named_by), tuple(alone)))
        node = self.context.cluster.bookies[name]
        # It cannot start again, nor make its index, from here on: the operator that removed the cookie may be interrupted before the stop.
        node.lost = node.lost or f"it was decommissioned at {now:.6f}"

    def _held_alone(self, bookie_id: str, ledger_id: int) -> Iterator[int]:
        """The entries of a closed ledger that a bookie holds, and none of those that are named for them; none if one of these is down."""
        metadata = self.metadata[ledger_id]
        held = held_entries(self.context.cluster.bookies[bookie_id], ledger_id)
        if not metadata.is_closed or not held:
            return
        for entry_id in sorted(held):
            if entry_id > metadata.last_entry_id:
                return
            copies = [held_entries(self.context.cluster.bookies[name], ledger_id) for name in holders(metadata, entry_id)]
            if all(copy is not None and entry_id not in copy for copy in copies):
                yield entry_id

    def _lacks(self, bookie_id: str, ledger_id: int, locked: LockedLedger, present: LedgerMetadata) -> bool:
        """Whether a bookie lacks copies of which the worker must have known when it locked the ledger."""
        gone_s = self.context.lost_for_good_s.get(bookie_id)
        if gone_s is not None:
            was_seen = gone_s + SEEN_AFTER_S < locked.time_s
            pairs = zip(locked.metadata.segments, present.segments, strict=False)
            return was_seen and any(bookie_id in before.ensemble and bookie_id in now.ensemble for before, now in pairs)
        held = held_entries(self.context.cluster.bookies[bookie_id], ledger_id)
        node = self.context.cluster.bookies[bookie_id]
        if held is None or bookie_id in self.context.rotten_bookies or (node.wiped and node.intact_from_s + SEEN_AFTER_S >= locked.time_s):
            return False
        for (segment, last_entry_id), (now, _) in zip(fixed_segments(locked.metadata), fixed_segments(present), strict=False):
            for position, (name, other) in enumerate(zip(segment.ensemble, now.ensemble, strict=True)):
                wanted = entries_at(segment, last_entry_id, position, present.write_quorum)
                if name == other == bookie_id and any(entry_id not in held for entry_id in wanted):
                    return True
        return False

    def _note_named(self, ledger_id: int, before: LedgerMetadata, present: LedgerMetadata) -> None:
        """Record what each bookie holds that has got the place of another in a segment whose end was fixed."""
        for (segment, last_entry_id), (now, _) in zip(fixed_segments(before), fixed_segments(present), strict=False):
            for position, (bookie_id, other) in enumerate(zip(segment.ensemble, now.ensemble, strict=True)):
                if bookie_id == other:
                    continue
                node = self.context.cluster.bookies[other]
                held = held_entries(node, ledger_id)
                if held is None:
                    # It was struck after its answer. Its copies are examined in the end.
                    self.count("named_while_down")
                    continue
                wanted = entries_at(segment, last_entry_id, position, present.write_quorum)
                missing = tuple(entry_id for entry_id in wanted if entry_id not in held)
                event = CopiesNamed(self.context.time(), other, ledger_id, segment.first_entry_id, last_entry_id, missing)
                self.context.history.add(event)
