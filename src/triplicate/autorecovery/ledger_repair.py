"""One repair of a locked ledger: its fragments are found, copied, verified, and only then named by the metadata.

The metadata is changed by compare-and-set. If others changed it meanwhile, it is read and examined again, so that no change of a writer
or of another worker is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from triplicate.autorecovery.core.fragments import LedgerFragment, awaits_recovery, lacking_fragments, missing_runs, with_copies_moved
from triplicate.autorecovery.core.ledger_copies import damaged_fragments, expected_fragments
from triplicate.autorecovery.core.misplaced_copies import misplaced_copies
from triplicate.autorecovery.core.writer_presence import WriterPresence, writer_presence
from triplicate.autorecovery.entry_finder import EntryFinder
from triplicate.autorecovery.ledger_copier import CopyJob, LedgerCopier
from triplicate.autorecovery.open_ledger_view import (
    awaits_writer,
    confirmed_fragments,
    doubt_of_replaced_disks,
    last_stored,
    view_open_ledger,
)
from triplicate.autorecovery.repair_tools import BookieStates, RepairCounts, RepairedLedgers, RepairOutcome, RepairResult, RepairTools
from triplicate.errors import BadVersion, BookieError, CorruptionError, LedgerError, NoGoodCopy, NotEnoughBookies, ReadFailed, Unauthorized
from triplicate.ledger import (
    Availability,
    EntryCodec,
    LedgerMetadata,
    LedgerState,
    ensemble_verdict,
    rearrange_bookies,
    replace_bookies,
    with_bookies,
)
from triplicate.metadata import UnderreplicatedLedger, Versioned, may_have_lost_entries
from triplicate.runtime import fault_point

MOVES_PER_POSITION = 2
"""How often the copies of one position are moved in one repair for the sake of placement, on average over a segment."""
CHANGES_MAX = 32
"""How many times others may change a ledger's metadata during one repair."""
REFILLED_AT_ONCE = 10_000
"""Entries of a bookie in limbo that are read, copied and read back in one round, which bounds the memory for their ids."""


class RepairRun:
    """One repair of one locked ledger.

    Args:
        mark: of the ledger. One without bookies is for placement, as an auditor of BookKeeper makes it, too.
        ledgers: has the ledger's metadata; None for the ledgers of the cluster.

    Attributes:
        counts: the entries copied so far.
        fragments: number of fragments that have got their copies.
        moved: how many of them for the sake of placement.
    """

    def __init__(self, tools: RepairTools, mark: UnderreplicatedLedger, ledgers: RepairedLedgers | None = None) -> None:
        self.counts = RepairCounts()
        self.fragments = 0
        self.moved = 0
        self._tools = tools
        self._ledger_id = mark.ledger_id
        self._marked_ms = mark.created_ms
        self._missing = dict.fromkeys((*mark.missing, *sorted(tools.leaving)))
        self._moves_misplaced = tools.moves_misplaced or not mark.missing
        self._moves: dict[int, int] = {}
        """Moves for the sake of placement so far, by the first entry of their segment."""
        self._refused: tuple[str, ...] = ()
        """Why copies that break a rule of placement could not be moved."""
        self._ledgers: RepairedLedgers = tools.client.metadata.ledgers if ledgers is None else ledgers
        self._rng = tools.client.host.entropy.stream("placement")
        self._unusable: dict[str, None] = {}
        """Targets that failed during this repair."""
        self._incarnations: dict[str, int] = {}
        """The incarnations of the targets when the first copies for a change of the metadata were made."""
        self._recovered: dict[str, None] = {}
        """The bookies to which a recovery copied entries. It ends when an ack quorum has them, so some may lack their copies."""
        self._failures: dict[LedgerFragment, str] = {}
        self._completed: dict[LedgerFragment, None] = {}
        """Fragments of which copies were stored again on their bookie."""
        self._bad_copies: dict[str, set[int]] = {}
        """Entries whose copies were found damaged when they were read for a copy, by bookie."""
        self._stored_again: dict[str, set[int]] = {}
        """Entries that were stored again because their copies are recorded as damaged, by bookie."""

    async def repair(self) -> RepairResult:
        """Repair all fragments that can be repaired. May be interrupted and repeated.

        Raises:
            NoSuchLedger: the ledger was deleted. RecoveryFailed: it is open, its writer is gone, and it cannot be recovered now.
            Unauthorized: the metadata does not hold the ledger's password. MetadataError: the metadata store failed.
        """
        while True:
            found = await self._ledgers.get(self._ledger_id)
            states = await self._states(found)
            lost = [bookie_id for bookie_id in self._missing if states.is_lost(bookie_id)]
            has_writer = not awaits_writer(found.value)
            self._fail_unknown(found.value, states, has_writer=has_writer)
            self._expect(found.value, lost, has_writer=has_writer)
            fragment = self._next(found.value, lost, has_writer=has_writer)
            if fragment is not None:
                await self._replace(found, fragment, states, has_writer=has_writer)
                continue
            if await self._complete_present(found, states, has_writer=has_writer):
                continue
            if await self._replace_damaged(found, states, has_writer=has_writer):
                continue
            if self._moves_misplaced and await self._move_misplaced(found, states):
                continue
            lost += [*states.in_limbo, *await self._complete_open(found.value, states)]
            if not has_writer or not awaits_recovery(found.value, lost):
                return self._result()
            presence = await self._presence(found.value, [bookie_id for bookie_id in lost if not states.shows_entries(bookie_id)])
            if presence is WriterPresence.GONE:
                await self._recover(found.value)
            elif self._failures:
                return self._result()
            elif presence is WriterPresence.ALIVE and await self._refill_open(found, states):
                return RepairResult(RepairOutcome.FAILED if self._failures else RepairOutcome.REFILLED, "; ".join(self._failures.values()))
            else:
                is_alive = presence is WriterPresence.ALIVE
                return RepairResult(
                    RepairOutcome.HAS_WRITER if is_alive else RepairOutcome.GRACE_PERIOD,
                    f"{', '.join(lost)} in the last segment of an open ledger{_log_of(found.value)}, whose writer "
                    + ("lives and replaces it if another bookie can be chosen" if is_alive else "may be alive")
                    + await doubt_of_replaced_disks(self._tools.client.metadata, self._ledger_id, found),
                )

    def _result(self) -> RepairResult:
        reasons = (*self._failures.values(), *self._refused)
        return RepairResult(RepairOutcome.FAILED, "; ".join(reasons)) if reasons else RepairResult(RepairOutcome.REPAIRED)

    def _expect(self, metadata: LedgerMetadata, lost: list[str], *, has_writer: bool) -> None:
        fragments = lacking_fragments(metadata, lost, has_writer=has_writer)
        self.counts.expect(sum(fragment.count for fragment in fragments if fragment not in self._failures))

    def _next(self, metadata: LedgerMetadata, lost: list[str], *, has_writer: bool) -> LedgerFragment | None:
        fragments = lacking_fragments(metadata, lost, has_writer=has_writer)
        return next((fragment for fragment in fragments if fragment not in self._failures), None)

    def _fail_unknown(self, metadata: LedgerMetadata, states: BookieStates, *, has_writer: bool) -> None:
        """Record the fragments on bookies of the mark whose registrations cannot be decoded, so that the mark stays."""
        unknown = [bookie_id for bookie_id in self._missing if states.is_unknown(bookie_id)]
        for fragment in lacking_fragments(metadata, unknown, has_writer=has_writer):
            self._fail_unreadable(fragment, states)

    def _fail_unreadable(self, fragment: LedgerFragment, states: BookieStates) -> None:
        reason = states.unreadable[fragment.bookie_id]
        self._fail(fragment, f"{_described(fragment)}: the bookie is registered, and its registration cannot be decoded: {reason}")

    # Fragments.

    async def _replace(self, found: Versioned, fragment: LedgerFragment, states: BookieStates, *, has_writer: bool) -> None:
        """Copy a fragment to another bookie, and replace its bookie in the metadata.

        The bookie is chosen together with those for the other lost bookies of the segment, so that one choice does not forbid the next.
        """
        usable = [bookie_id for bookie_id in states.writable if bookie_id not in self._unusable and not states.is_lost(bookie_id)]
        placement = self._tools.client.placement
        rules = await placement.rules(found.value.write_quorum, states.writable, fragment.ensemble)
        lost = self._lost_positions(fragment, states)
        last_resort = frozenset(bookie_id for bookie_id in fragment.ensemble if states.is_lost(bookie_id))
        try:
            ensemble = replace_bookies(fragment.ensemble, lost, usable, self._rng, (), rules)
        except NotEnoughBookies as error:
            refused = f"; failed during this repair: {', '.join(self._unusable)}" if self._unusable else ""
            reason, ensemble = f"no bookie for the copies of {_described(fragment)}: {error}{refused}", fragment.ensemble
        if any(ensemble[position] == fragment.ensemble[position] for position in lost):
            rearranged = rearrange_bookies(fragment.ensemble, lost, usable, self._rng, rules)
            if rearranged is not None:
                await self._rearrange(found, fragment, rearranged, last_resort, has_writer=has_writer)
                return
        changed = [position for position in lost if ensemble[position] != fragment.ensemble[position]]
        if not changed:
            self._fail(fragment, reason)
            return
        chosen = fragment if fragment.position in changed else replace(fragment, position=changed[0])
        target = ensemble[chosen.position]
        alone = with_bookies(fragment.ensemble, [chosen.position], [target])
        if ensemble_verdict(alone, rules).adherence > ensemble_verdict(ensemble, rules).adherence:
            # The bookies that are to be replaced next may be back by then, so that the target would stay beside them.
            await self._rearrange(found, fragment, ensemble, last_resort, has_writer=has_writer)
            return
        if await self._copy(found.value, CopyJob(chosen, Availability(()), target, last_resort)):
            placement.report(self._ledger_id, ensemble, rules)
            await self._name_targets(found, [(chosen, target)], has_writer=has_writer)

    def _lost_positions(self, fragment: LedgerFragment, states: BookieStates) -> list[int]:
        """The positions of the fragment's segment that are to be replaced: its own, and those of lost bookies that have not failed yet."""
        return [
            position
            for position, bookie_id in enumerate(fragment.ensemble)
            if position == fragment.position or (states.is_lost(bookie_id) and replace(fragment, position=position) not in self._failures)
        ]

    @fault_point("autorecovery.rearrange")
    async def _rearrange(
        self, found: Versioned, fragment: LedgerFragment, ensemble: tuple[str, ...], last_resort: frozenset[str], *, has_writer: bool
    ) -> None:
        """Copy several fragments of a segment to other bookies, and then replace all of these bookies by one change of the metadata."""
        metadata = found.value
        moves = [
            (replace(fragment, position=position), name) for position, name in enumerate(ensemble) if name != fragment.ensemble[position]
        ]
        failed_before = set(self._failures)
        for moved, target in moves:
            stored = Availability(())
            if target in fragment.ensemble and moved.count:
                try:
                    # It comes from another position, and entries that both positions store may have no other copy.
                    stored = (await self._finder(metadata).find(target, [moved])).good
                except BookieError:
                    self._unusable[target] = None
                    return
            if not await self._copy(metadata, CopyJob(moved, stored, target, last_resort)):
                if moved in self._failures and (moved in failed_before or moved.bookie_id not in last_resort):
                    # A lost bookie that fails now is left out of the next choice. Others would be moved again, without end.
                    self._failures.setdefault(fragment, self._failures[moved])
                return
        left, named = ",".join(fragment.ensemble), ",".join(ensemble)
        self._tools.client.host.trace(
            "autorecovery.rearranged", ledger=self._ledger_id, entry=fragment.first_entry_id, left=left, named=named
        )
        await self._name_targets(found, moves, has_writer=has_writer)

    async def _move_misplaced(self, found: Versioned, states: BookieStates) -> bool:
        """Move the copies of one position, if that mends the placement. The bookie keeps its copy until the metadata name the other one.

        Returns:
            Whether copies were to be moved, so that the metadata may have changed.
        """
        metadata, placement = found.value, self._tools.client.placement
        ensembles = [bookie_id for segment in metadata.segments for bookie_id in segment.ensemble]
        rules = await placement.rules(metadata.write_quorum, states.writable, ensembles)
        if placement.problems:
            # A location that is not known may be a rack of its own, or not.
            self._refused = (f"the locations of bookies are not certain: {'; '.join(placement.problems)}",)
            return False
        usable = [bookie_id for bookie_id in states.writable if bookie_id not in self._unusable and not states.is_lost(bookie_id)]
        plan = misplaced_copies(metadata, rules, usable, {*states.writable, *states.readonly}, self._rng)
        self._refused = plan.refused
        move = next((move for move in plan.moves if move.fragment not in self._failures), None)
        if move is None:
            return False
        fragment = move.fragment
        moves = self._moves[fragment.first_entry_id] = self._moves.get(fragment.first_entry_id, 0) + 1
        if moves > MOVES_PER_POSITION * len(fragment.ensemble):
            self._fail(fragment, f"{_described(fragment)}: its placement was not mended by {moves - 1} moves, since others changed it")
            return True
        if await self._copy(metadata, CopyJob(fragment, Availability(()), move.target, frozenset())):
            before = self.fragments
            await self._name_targets(found, [(fragment, move.target)], has_writer=True)
            self.moved += self.fragments - before
        return True

    async def _complete_present(self, found: Versioned, states: BookieStates, *, has_writer: bool) -> bool:
        """Copy what they lack to bookies of the mark that are registered again, and to those of a recovery.

        One that is read-only, or gives no usable answer, is replaced instead.

        Returns:
            Whether a bookie was to be replaced, so that the metadata may have changed.
        """
        metadata = found.value
        listing = [bookie_id for bookie_id in self._missing | self._recovered if bookie_id not in states.in_limbo]
        present = [bookie_id for bookie_id in listing if not states.is_lost(bookie_id) and not states.is_unknown(bookie_id)]
        for fragment in lacking_fragments(metadata, present, has_writer=has_writer):
            if fragment in self._failures or not fragment.count:
                continue
            try:
                stored = (await self._finder(metadata).find(fragment.bookie_id, [fragment])).good
            except BookieError:
                await self._replace(found, fragment, states, has_writer=has_writer)
                return True
            if next(missing_runs(fragment, stored), None) is None:
                continue
            if fragment.bookie_id not in states.writable:
                await self._replace(found, fragment, states, has_writer=has_writer)
                return True
            if await self._copy(metadata, CopyJob(fragment, stored, fragment.bookie_id, frozenset())):
                self.fragments += 1
        return await self._refill(found, states, has_writer=has_writer)

    async def _refill(self, found: Versioned, states: BookieStates, *, has_writer: bool) -> bool:
        """Copy what they lack to bookies in limbo, which list nothing, and fence closed ledgers on them. Returns as `_complete_present`."""
        metadata = found.value
        for fragment in lacking_fragments(metadata, states.in_limbo, has_writer=has_writer):
            if not await self._refill_fragment(metadata, fragment, states):
                await self._replace(found, fragment, states, has_writer=has_writer)
                return True
        if metadata.is_closed and not self._failures:
            for bookie_id in states.in_limbo:
                # Its fence may be lost with its disk, and with that of enough bookies an old writer could go on.
                ends = (entry_id for fragment in lacking_fragments(metadata, [bookie_id]) for entry_id in fragment.ends())
                present_id = next(ends, 0)
                await self._tools.copies.fence(self._codec(metadata), present_id, bookie_id)
        return False

    async def _refill_fragment(self, metadata: LedgerMetadata, fragment: LedgerFragment, states: BookieStates) -> bool:
        """Copy what it lacks of a fragment to a bookie in limbo. Returns as `_store_again`."""
        refills = self._tools.open_refills
        is_repeated = refills is not None and refills.bookie_id == fragment.bookie_id and not metadata.is_closed
        if refills is not None and is_repeated and refills.is_complete(self._ledger_id, fragment):
            return True
        entry_ids = (entry_id for run in fragment.runs() for entry_id in run)
        while fragment not in self._failures and (chunk := list(islice(entry_ids, REFILLED_AT_ONCE))):
            if not await self._refill_chunk(metadata, fragment, chunk, states):
                return False
        if refills is not None and is_repeated and fragment not in self._failures:
            refills.completed(self._ledger_id, fragment)
        return True

    @fault_point("autorecovery.refill_open")
    async def _refill_open(self, found: Versioned, states: BookieStates) -> bool:
        """Copy to the bookie of a refill what it may have lost of the last segment of an open ledger, once its end is known.

        The ledger was open after the disks were replaced, so no fence was lost with them: a recovery marks the metadata first.

        Returns:
            Whether this was done, or has failed.
        """
        refills, metadata = self._tools.open_refills, found.value
        if refills is None or refills.bookie_id not in states.in_limbo or not await self._is_written_in_order(metadata):
            return False
        bookie_id, bound = refills.bookie_id, refills.bound_of(self._ledger_id)
        # The metadata may have been read from a server that was behind, or have changed since.
        await self._ledgers.refresh()
        if (await self._ledgers.get(self._ledger_id)).version != found.version or metadata.state is not LedgerState.OPEN:
            return False
        if bookie_id in metadata.last_segment.ensemble:
            answers = await last_stored(self._tools.copies, self._codec(metadata), metadata, bookie_id)
            bound.begin(metadata.last_segment, bookie_id, metadata.write_quorum, metadata.ack_quorum, answers)
            bound.observe(answers)
            if bound.end is None:
                return False
            for fragment in expected_fragments(metadata, bound.end):
                if fragment.bookie_id == bookie_id and not await self._refill_fragment(metadata, fragment, states):
                    self._fail(fragment, f"{_described(fragment)}: the bookie accepts no copies, or does not keep them")
        return True

    async def _is_written_in_order(self, metadata: LedgerMetadata) -> bool:
        """Whether the ledger's writer numbers its entries itself. The metadata do not say it, so only a known writer counts."""
        return await self._tools.has_living_writer(metadata)

    async def _replace_damaged(self, found: Versioned, states: BookieStates, *, has_writer: bool) -> bool:
        """Replace the copies that are recorded as damaged, or were found damaged in this repair, on their bookies.

        The bookie is not asked whether they are: it may answer from memory, and then its disk still has the damage. A bookie that accepts
        no copies, or whose copies stay damaged, is replaced instead. Copies that cannot be repaired stay recorded.

        Returns:
            Whether the metadata or the record may have changed.
        """
        records, metadata = self._tools.client.metadata.damaged_copies, found.value
        record = await records.get(self._ledger_id)
        damaged = {bookie_id: list(runs) for bookie_id, runs in (record.copies.items() if record is not None else ())}
        for bookie_id, bad in self._bad_copies.items():
            damaged.setdefault(bookie_id, []).extend(_single_ranges(bad))
        examined = {bookie_id: frozenset(bad) for bookie_id, bad in self._bad_copies.items()}
        for bookie_id, runs in damaged.items():
            if states.is_lost(bookie_id):
                continue
            for fragment, recorded in damaged_fragments(metadata, bookie_id, runs):
                if states.is_unknown(bookie_id):
                    self._fail_unreadable(fragment, states)
                    continue
                stored = self._stored_again.get(bookie_id, ())
                entry_ids = [entry_id for entry_id in recorded if entry_id not in stored]
                if fragment not in self._failures and not await self._store_again(metadata, fragment, entry_ids, states):
                    if fragment not in lacking_fragments(metadata, [bookie_id], has_writer=has_writer):
                        self._fail(fragment, f"{_described(fragment)}: its damaged copies cannot be replaced while the ledger is open")
                        continue
                    await self._replace(found, fragment, states, has_writer=has_writer)
                    return True
        if self._failures:
            for bookie_id, bad in self._bad_copies.items():
                await records.report(self._ledger_id, bookie_id, _single_ranges(bad))
            return False
        for bookie_id, handled in examined.items():
            self._bad_copies[bookie_id] -= handled
        if any(self._bad_copies.values()):
            return True  # The reads of this round have found further damaged copies.
        if record is None or await records.delete(record):
            return False
        # Further damage was recorded meanwhile, perhaps that of a copy which this repair has stored.
        self._stored_again.clear()
        return True

    async def _refill_chunk(self, metadata: LedgerMetadata, fragment: LedgerFragment, entry_ids: list[int], states: BookieStates) -> bool:
        """Store those of these entries again that the fragment's bookie does not deliver intact. Returns as `_store_again`."""
        if fragment.bookie_id not in states.writable:
            return False
        try:
            lacking = await self._copier(metadata).damaged(fragment, entry_ids)
        except BookieError as failure:
            self._fail(fragment, f"{_described(fragment)}: {failure}")
            return True
        return await self._store_again(metadata, fragment, lacking, states)

    async def _store_again(self, metadata: LedgerMetadata, fragment: LedgerFragment, entry_ids: list[int], states: BookieStates) -> bool:
        """Store copies on the fragment's bookie again, and read them back; False if it does not accept or keep them.

        Another failure, such as an entry without an intact copy, is recorded.
        """
        if not entry_ids:
            return True
        if fragment.bookie_id not in states.writable:
            return False
        try:
            if not await self._copy(metadata, CopyJob(fragment, Availability(()), fragment.bookie_id, frozenset(), entry_ids)):
                return True
            left = await self._copier(metadata).damaged(fragment, entry_ids)
        except BookieError as failure:
            self._fail(fragment, f"{_described(fragment)}: {failure}")
            return True
        self._tools.metrics.copies_replaced.inc(len(entry_ids) - len(left))
        self._stored_again.setdefault(fragment.bookie_id, set()).update(set(entry_ids).difference(left))
        if not left and fragment not in self._completed:
            self._completed[fragment] = None
            self.fragments += 1
        return not left

    async def _copy(self, metadata: LedgerMetadata, job: CopyJob) -> bool:
        """Make and verify the copies of a job; False if that failed, which is recorded."""
        tools = self._tools
        if not job.fragment.count:
            return True
        if job.target not in self._incarnations:
            self._incarnations[job.target] = (await tools.client.metadata.incarnations.get(job.target)).number
        copier = self._copier(metadata)
        self.counts.begin(job.count)
        try:
            await copier.copy(job)
        except NoGoodCopy as lacking:
            self._fail(job.fragment, str(lacking))
        except (BookieError, Unauthorized, CorruptionError) as failure:
            if job.target == job.fragment.bookie_id:
                self._fail(job.fragment, f"{_described(job.fragment)}: {failure}")
            else:
                # Another target is chosen while there is one.
                self._unusable[job.target] = None
                tools.client.host.trace("autorecovery.target_failed", ledger=self._ledger_id, bookie=job.target, error=str(failure))
        else:
            self.counts.finish(job.target, job.fragment.bookie_id, job.fragment.first_entry_id, job.fragment.last_entry_id)
            return True
        return False

    def _copier(self, metadata: LedgerMetadata) -> LedgerCopier:
        tools = self._tools
        codec, finder = self._codec(metadata), self._finder(metadata)
        entries = metadata.last_entry_id + 1
        average = metadata.length // entries + codec.overhead if metadata.is_closed and entries else 0
        return LedgerCopier(
            tools.copies, codec, finder, tools.settings, tools.pace, tools.metrics, self._count, self._bad_copies, average_bytes=average
        )

    def _codec(self, metadata: LedgerMetadata) -> EntryCodec:
        """Raises Unauthorized: the metadata has no password."""
        if not metadata.credentials_stored:
            error = Unauthorized(
                f"the metadata of ledger {self._ledger_id} is of the oldest format, without password and digest type: its entries cannot "
                "be verified; copy it with a client that knows the password into a new ledger"
            )
            error.ledger_id = self._ledger_id
            raise error
        return EntryCodec(self._ledger_id, metadata.digest_type, metadata.password)

    @fault_point("autorecovery.copied")
    async def _name_targets(self, found: Versioned, moves: Sequence[tuple[LedgerFragment, str]], *, has_writer: bool) -> None:
        """Put the targets into the places of these fragments of one segment, unless others have changed it: then nothing is changed."""
        for _ in range(CHANGES_MAX):
            changed = with_copies_moved(found.value, moves, has_writer=has_writer)
            if changed is None:
                return
            try:
                await self._ledgers.update(self._ledger_id, changed, found.version)
            except BadVersion:
                self._tools.client.host.trace("autorecovery.metadata_conflict", ledger=self._ledger_id)
                found = await self._ledgers.get(self._ledger_id)
                has_writer = not awaits_writer(found.value)
            else:
                self.fragments += len(moves)
                await self._look_again_at_replaced({target for _, target in moves})
                return
        error = LedgerError(f"the metadata of ledger {self._ledger_id} was changed by others {CHANGES_MAX} times during its repair")
        error.ledger_id = self._ledger_id
        raise error

    async def _look_again_at_replaced(self, targets: Iterable[str]) -> None:
        """Let this repair go on with those targets whose disks were replaced between their copies and their naming.

        Such a bookie has lost the copies. Its refill cannot know that, since the metadata did not name it for this ledger.
        """
        for target in sorted(targets):
            before = self._incarnations.pop(target, None)
            if before is not None and (await self._tools.client.metadata.incarnations.get(target)).number != before:
                self._missing[target] = None
                self._tools.client.host.trace("autorecovery.target_lost_its_disks", ledger=self._ledger_id, bookie=target)

    # Open ledgers.

    async def _presence(self, metadata: LedgerMetadata, silent: list[str]) -> WriterPresence:
        if await self._tools.has_living_writer(metadata):
            return WriterPresence.ALIVE
        self._tools.client.host.trace("autorecovery.view", ledger=self._ledger_id)
        present = await view_open_ledger(self._ledger_id, metadata, self._tools.copies, self._tools.client.host.clock, silent)
        first = self._tools.views.first(self._ledger_id, self._marked_ms, present)
        presence = writer_presence(first, present, self._tools.settings.open_ledger_grace_s)
        if presence is WriterPresence.ALIVE:
            self._tools.views.renew(self._ledger_id, self._marked_ms, present)
        if presence is WriterPresence.GONE:
            self._tools.client.host.trace("autorecovery.writer_gone", ledger=self._ledger_id, state=metadata.state.name.lower())
        return presence

    @fault_point("autorecovery.complete_open")
    async def _complete_open(self, metadata: LedgerMetadata, states: BookieStates) -> list[str]:
        """Copy what they lack of the confirmed entries to bookies of the mark that are in the last segment of an open ledger.

        Returns:
            The bookies that must leave the segment instead: they accept no copies, or it is not known what they lack.
        """
        own = [bookie_id for bookie_id in self._missing if not states.is_lost(bookie_id) and bookie_id not in states.in_limbo]
        present = [bookie_id for bookie_id in own if not metadata.is_closed and bookie_id in metadata.last_segment.ensemble]
        left: list[str] = []
        try:
            fragments = await confirmed_fragments(self._tools.client, self._ledger_id, metadata, present) if present else []
            for fragment in fragments:
                if states.is_unknown(fragment.bookie_id):
                    self._fail_unreadable(fragment, states)
                    continue
                stored = (await self._finder(metadata).find(fragment.bookie_id, [fragment])).good
                if next(missing_runs(fragment, stored), None) is None:
                    continue
                if fragment.bookie_id not in states.writable:
                    left.append(fragment.bookie_id)
                elif await self._copy(metadata, CopyJob(fragment, stored, fragment.bookie_id, frozenset())):
                    self.fragments += 1
        except (BookieError, ReadFailed):
            return present
        return left

    @fault_point("autorecovery.recover")
    async def _recover(self, metadata: LedgerMetadata) -> None:
        """Fence and close the ledger, so that its last segment can be repaired."""
        reader = await self._tools.client.recover(self._ledger_id, password=metadata.password, mark=False)
        segments = reader.metadata.segments[len(metadata.segments) - 1 :]
        await reader.aclose()
        self._recovered = dict.fromkeys(bookie_id for segment in segments for bookie_id in segment.ensemble)
        self._tools.views.drop(self._ledger_id)

    # Helpers.

    def _finder(self, metadata: LedgerMetadata) -> EntryFinder:
        """Raises Unauthorized: the metadata has no password."""
        tools = self._tools
        return EntryFinder(tools.copies, self._codec(metadata), tools.client.host.clock, pace=tools.pace)

    async def _states(self, found: Versioned) -> BookieStates:
        cluster = self._tools.client.metadata
        bookies = await cluster.bookies.registered()
        leaving = self._tools.leaving.union(await self._tools.client.metadata.read_only_requests.leaving())
        states = BookieStates(bookies.writable, tuple(bookies.readonly), leaving, bookies.unreadable)
        present = [bookie_id for bookie_id in self._missing if bookie_id in bookies.infos and not states.is_lost(bookie_id)]
        in_limbo: list[str] = []
        for bookie_id in present:
            incarnation = await cluster.incarnations.get(bookie_id)
            if not incarnation.visited and await may_have_lost_entries(cluster, bookie_id, incarnation, self._ledger_id, found):
                in_limbo.append(bookie_id)
        return replace(states, in_limbo=tuple(in_limbo))

    def _fail(self, fragment: LedgerFragment, reason: str) -> None:
        self._failures[fragment] = reason

    def _count(self, entries: int, size_bytes: int) -> None:
        self.counts.entries += entries
        self.counts.size_bytes += size_bytes
        self._tools.copied(size_bytes)


def _single_ranges(entry_ids: Iterable[int]) -> list[range]:
    return [range(entry_id, entry_id + 1) for entry_id in sorted(entry_ids)]


def _described(fragment: LedgerFragment) -> str:
    return f"{fragment.bookie_id} in the segment of entries {fragment.first_entry_id} to {fragment.last_entry_id}"


def _log_of(metadata: LedgerMetadata) -> str:
    """The log that the ledger says it belongs to, for a message."""
    name = metadata.custom.get("log", b"")
    return f" of log {name.decode('utf-8', 'replace')}" if name else ""
